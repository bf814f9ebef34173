"""Writes the outcome of every test to a file as it comes, one JSON object a line.

`tools/suites.py` reads it while the tests run: for what it shows, for its summary, and for the
reasons of what was skipped. conftest.py registers it where `--outcomes FILE` is given.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest


class Recorder:
    """Rows say how many tests were `collected`, or of one `test` its outcome, seconds and reason.

    A test has one row, or two when it passed and its clean-up failed; the last one counts.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", buffering=1)
        self._collected = 0

    def _write(self, **row: object) -> None:
        self._file.write(json.dumps(row) + "\n")

    def _count(self, tests: int) -> None:
        if tests > self._collected:  # each worker of xdist collects the same tests
            self._collected = tests
            self._write(collected=tests)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._count(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: Sequence[str]) -> None:
        self._count(len(ids))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome != "passed":
            self._report(report.nodeid, report.outcome, 0.0, report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self._report(report.nodeid, report.outcome, report.duration, report)

    def _report(
        self,
        test: str,
        outcome: str,
        seconds: float,
        report: pytest.TestReport | pytest.CollectReport,
    ) -> None:
        reason = ""
        if outcome == "skipped" and isinstance(report.longrepr, tuple):
            reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        self._write(test=test, outcome=outcome, seconds=round(seconds, 3), reason=reason)

    def pytest_unconfigure(self) -> None:
        self._file.close()
