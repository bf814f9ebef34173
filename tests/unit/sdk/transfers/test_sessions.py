"""On how many connections a file is sent."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from paddlecloud.sdk.transfers import sessions
from paddlecloud.sdk.transfers.sessions import Session


@pytest.mark.parametrize(
    ("is_here", "processors", "connections", "ways"),
    [
        (False, 1, 2, 2),
        (False, 64, 3, 3),
        (True, 1, 2, 1),
        (True, 3, 2, 1),
        (True, 4, 2, 2),
        (True, 64, 2, 2),
        (True, 64, 1, 1),
    ],
)
def test_two_ends_on_one_machine_share_its_processors(
    monkeypatch: pytest.MonkeyPatch, is_here: bool, processors: int, connections: int, ways: int
) -> None:
    monkeypatch.setattr(sessions, "processors", lambda: processors)
    plane = SimpleNamespace(is_here=is_here)
    assert Session(plane, connections=connections).ways() == ways  # type: ignore[arg-type]


def test_knows_how_many_processors_it_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions.os, "sched_getaffinity", lambda _: {0, 5, 7}, raising=False)
    assert sessions.processors() == 3
    monkeypatch.delattr(sessions.os, "sched_getaffinity")
    monkeypatch.setattr(sessions.os, "cpu_count", lambda: None)
    assert sessions.processors() == 1
