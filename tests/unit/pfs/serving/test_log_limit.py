"""What one line of code may add to a log."""

from __future__ import annotations

import logging

import pytest

from paddlecloud.pfs.serving import log_limit
from paddlecloud.pfs.serving.log_limit import LogLimit


def _record(message: str, line: int = 1) -> logging.LogRecord:
    return logging.LogRecord("x", logging.WARNING, "x.py", line, message, ("%s",), None)


def test_holds_back_what_repeats_and_counts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(log_limit.time, "monotonic", lambda: now)
    limit = LogLimit(3)
    assert [limit.filter(_record("it is %s")) for _ in range(10)] == [True] * 3 + [False] * 7
    assert limit.filter(_record("another %s", line=2))
    now = 61.0
    record = _record("it is %s")
    assert limit.filter(record)
    assert record.getMessage() == "it is %s (and 7 like it that were not written)"


def test_cuts_what_is_too_long() -> None:
    record = _record("x" * 100_000 + "%s")
    assert LogLimit().filter(record)
    assert len(record.getMessage()) == 4000
