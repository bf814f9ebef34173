"""Whoever writes holds up all others, so it does nothing else meanwhile.

`conftest` looks into the log of the shared server after all tests: whatever they did, nothing but
rows was touched inside a write transaction, and none took longer than `MOST_HELD_S`.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from paddlecloud.server import database
from paddlecloud.server.configuration import Storage
from tests.patience import PATIENCE_S
from tests.server.running import Caller, Running


@pytest.fixture(scope="module", autouse=True)
def tables(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A database of this process, for the functions themselves."""
    from django.conf import settings

    if not settings.configured:
        storage = Storage(tmp_path_factory.mktemp("rows"))
        settings.configure(DATABASES={"default": database.settings_for(storage)}, USE_TZ=True)


def _is_free() -> bool:
    """Whether another thread gets the lock at once."""
    found: list[bool] = []

    def look() -> None:
        found.append(database._writer.acquire(blocking=False))
        if found[0]:
            database._writer.release()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join(PATIENCE_S)
    return found[0]


def test_hooks_run_in_order_when_the_lock_is_free_again() -> None:
    seen: list[object] = []
    with database.writing():
        with database.writing():
            database.after_commit(lambda: seen.append(_is_free()))
        database.after_commit(lambda: seen.append("second"))
        assert (seen, _is_free()) == ([], False)
    assert seen == [True, "second"]
    database.after_commit(lambda: seen.append("at once"))
    assert seen[-1] == "at once"


def test_hooks_of_what_was_undone_do_not_run() -> None:
    seen: list[str] = []

    def undo(name: str) -> None:
        with database.writing():
            database.after_commit(lambda: seen.append(name))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        undo("undone")
    with database.writing():
        with pytest.raises(ZeroDivisionError):
            undo("half")
        database.after_commit(lambda: seen.append("kept"))
    assert (seen, _is_free()) == (["kept"], True)


def test_a_hook_may_write() -> None:
    seen: list[str] = []

    def write() -> None:
        with database.writing():
            database.after_commit(lambda: seen.append("inner"))
        seen.append("outer")

    with database.writing():
        database.after_commit(write)
    assert seen == ["inner", "outer"]


def test_what_is_not_for_inside_is_told(caplog: pytest.LogCaptureFixture) -> None:
    database.rows_only("asking the engine")
    assert not caplog.records
    with database.writing():
        database.rows_only("asking the engine")
    assert [database.NOT_ROWS in record.getMessage() for record in caplog.records] == [True]


def test_who_holds_it_long_is_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with caplog.at_level(logging.WARNING):
        with database.writing():
            pass
        assert not caplog.records
        monkeypatch.setattr(database, "MOST_HELD_S", -1.0)
        with database.writing():
            pass
    assert Path(__file__).name in caplog.records[0].getMessage()


@pytest.mark.parametrize("number", [1, 2000])
def test_a_move_with_many_misspelt_replicas_is_compared_once(
    server: Running, user: Caller, number: int
) -> None:
    job = user.submit("long", "fake hold=1")
    user.wait(job["id"], "running")
    rows = [{"replica": f"trainr-{n}", "host": "x"} for n in range(number)]
    answer = user.post(f"/api/v2/jobs/{job['id']}/move", {"replicas": rows})
    assert answer.status == 400, answer.body
    faults = answer.json["faults"]
    assert len(faults) == min(number, 20)
    assert ["did you mean" in fault["problem"] for fault in faults] == [True] + [False] * (
        len(faults) - 1
    )
