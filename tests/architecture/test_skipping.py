"""A strict run lets a skip stand only if the machine truly lacks what `make` cannot provide."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests import conftest, possible


@pytest.fixture(autouse=True)
def needs(monkeypatch: pytest.MonkeyPatch) -> None:
    def need(is_there: bool, is_excused: bool) -> possible.Need:
        return possible.Need(lambda: is_there, "get one", lambda: is_excused)

    table = {"here": need(True, True), "gone": need(False, True), "makeable": need(False, False)}
    monkeypatch.setattr(possible, "NEEDS", table)
    possible.is_there.cache_clear()
    yield
    possible.is_there.cache_clear()


REASONS = [
    ("not possible here: gone (get one)", True),
    ("not possible here: makeable (get one)", False),
    ("not possible here: here (get one)", False),
    ("not possible here: a mood", False),
    ("flaky today", False),
    ("could not import 'numpy'", False),
]


@pytest.mark.parametrize(("reason", "is_excused"), REASONS)
@pytest.mark.parametrize("strict", ["1", ""])
def test_a_skip_stands_when_excused_or_not_strict(
    reason: str, is_excused: bool, strict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PADDLECLOUD_STRICT", strict)
    report = SimpleNamespace(
        nodeid="t.py::t", outcome="skipped", longrepr=("t.py", 1, f"Skipped: {reason}")
    )
    conftest._judge_skip(report)
    assert report.outcome == ("skipped" if is_excused or not strict else "failed")
    assert report.outcome == "skipped" or reason in report.longrepr


def test_an_expected_failure_is_no_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLECLOUD_STRICT", "1")
    report = SimpleNamespace(nodeid="t", outcome="skipped", longrepr="", wasxfail="known")
    conftest._judge_skip(report)
    assert report.outcome == "skipped"


def test_skips_only_for_what_is_lacking() -> None:
    possible.skip_unless_possible("here")
    with pytest.raises(pytest.skip.Exception, match=r"not possible here: gone \(get one\)"):
        possible.skip_unless_possible("here", "gone")
