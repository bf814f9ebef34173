"""Versions in the order of PEP 440."""

from __future__ import annotations

import itertools

import pytest

from paddlecloud.cli.update import versions

ORDER = "0.1.dev3 0.1a1 0.1b1 0.1rc1 0.1 0.1.post1 0.1.1 0.2.0rc2 0.2 0.10 1.0".split()


def test_knows_which_is_newer() -> None:
    for older, newer in itertools.pairwise(ORDER):
        assert versions.is_newer(newer, older), (newer, older)
        assert not versions.is_newer(older, newer)
    assert versions.key_of("1.0") == versions.key_of("v1.0.0")


@pytest.mark.parametrize("text", ["", "x", "1..2", "1.0-", "1!2.0", "1.0.dev"])
def test_what_is_no_version_is_none(text: str) -> None:
    assert versions.key_of(text) is None
    assert not versions.is_newer(text, "0.1")


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("0.2", False), ("0.2.post1", False), ("0.2rc1", True), ("0.2.dev1", True)],
)
def test_tells_what_is_not_final(text: str, is_one: bool) -> None:
    assert versions.is_prerelease(text) == is_one


@pytest.mark.parametrize(
    ("specifiers", "is_within"),
    [
        ("", True),
        (">=3.11", True),
        (">=3.12", False),
        (">=3.9,<4", True),
        ("<3.11", False),
        ("==3.11.*", True),
        ("!=3.11.*", False),
        ("~=3.11", True),
        ("~=3.11.8", False),
        ("==3.11.7", True),
        ("!=3.11.7", False),
        ("what", False),
    ],
)
def test_reads_what_python_is_needed(specifiers: str, is_within: bool) -> None:
    assert versions.satisfies("3.11.7", specifiers) == is_within
