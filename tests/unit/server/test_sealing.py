"""Sealed secrets: read again by who has the key, refused in every other shape."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.server.sealing import NotSealed, seal, unseal

MASTER = "m" * 64


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200), st.text("ak1", max_size=9))
def test_gives_back_what_was_sealed(plain: str, about: str) -> None:
    assert unseal(MASTER, seal(MASTER, plain, about), about) == plain


def test_the_same_secret_looks_different_each_time() -> None:
    assert seal(MASTER, "secret", "a") != seal(MASTER, "secret", "a")


def test_nothing_of_the_secret_is_to_be_seen() -> None:
    raw = base64.urlsafe_b64decode(seal(MASTER, "s" * 64, "a")[3:])
    assert b"sss" not in raw
    body = raw[16:-32]
    assert body[:32] != body[32:]


@pytest.mark.parametrize(("master", "about"), [("n" * 64, "a"), (MASTER, "b"), (MASTER, "")])
def test_refuses_another_key_or_another_place(master: str, about: str) -> None:
    with pytest.raises(NotSealed):
        unseal(master, seal(MASTER, "secret", "a"), about)


@given(st.integers(0, 53), st.integers(1, 255))
def test_refuses_any_change(place: int, change: int) -> None:
    raw = bytearray(base64.urlsafe_b64decode(seal(MASTER, "secret", "a")[3:]))
    raw[place] ^= change
    with pytest.raises(NotSealed):
        unseal(MASTER, "v1." + base64.urlsafe_b64encode(raw).decode(), "a")


@pytest.mark.parametrize("text", ["", "v1.", "v1.AAAA", "v2.AAAA", "secret", "v1.\xff", "v1.!"])
def test_refuses_what_was_never_sealed(text: str) -> None:
    with pytest.raises(NotSealed):
        unseal(MASTER, text, "a")
