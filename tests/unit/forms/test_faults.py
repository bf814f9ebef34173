from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.faults import BadValue, FaultList, nearest, shorten


def test_raises_all_it_collected() -> None:
    faults = FaultList()
    faults.add("-p", "must be a number", "two")
    faults.add("-m", "is negative", -1)
    with pytest.raises(InvalidInput) as caught:
        faults.raise_if_any(hint="usage")
    assert [(f.field, f.value) for f in caught.value.faults] == [("-p", "two"), ("-m", "-1")]
    assert caught.value.hint == "usage"


def test_raises_nothing_when_nothing_is_wrong() -> None:
    faults = FaultList()
    assert faults.read("-p", "4", int) == 4
    faults.raise_if_any()


def test_turns_a_refusal_into_a_fault() -> None:
    def refuse(text: str) -> int:
        raise BadValue("must be odd")

    faults = FaultList()
    assert faults.read("-p", "4", refuse) is None
    assert len(faults) == 1


@given(st.text(max_size=300))
def test_shows_one_short_line(text: str) -> None:
    shown = shorten(text)
    assert len(shown) <= 60
    assert shown.isprintable()


def test_shows_short_texts_whole() -> None:
    assert shorten("10GB") == "10GB"
    assert shorten("x" * 61) == "x" * 59 + "…"


@pytest.mark.parametrize(
    ("word", "found"),
    [("wide-dep", "wide-deep"), ("RESNET", ""), ("resnet5", "resnet50"), ("", ""), ("zzz", "")],
)
def test_finds_the_nearest_word(word: str, found: str) -> None:
    assert nearest(word, ["wide-deep", "resnet50"]) == found
