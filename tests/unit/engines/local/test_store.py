"""The embedded engine's memory: told once, kept over a restart, never re-using addresses early."""

from __future__ import annotations

import threading

import pytest

from paddlecloud.core.actions import Event, Grant, RoleCount, Status
from paddlecloud.core.jobspec import JobSpec, Mode, Role, RoleSpec
from paddlecloud.core.phases import Phase
from paddlecloud.core.resources import Resources
from paddlecloud.engines.local.store import FIRST_NETWORK, LAST_NETWORK, Store
from paddlecloud.engines.protocols import JobRun
from tests.patience import PATIENCE_S


def a_job(job_id: str = "job-1", run: int = 1, trainers: int = 2) -> JobRun:
    roles = (RoleSpec(Role.TRAINER, trainers, Resources(1000, 2**20)),)
    spec = JobSpec("j", Mode.COLLECTIVE, roles, entry="true", env={"A": "b"})
    return JobRun(job_id, run, spec, 7, "alice", 12.5, uid=None, secret_env={"T": "s"})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "engine.db"


@pytest.fixture
def store(path):
    store = Store(path)
    yield store
    store.close()


def running() -> Status:
    return Status(Phase.RUNNING, roles={Role.TRAINER: RoleCount(2, 2)}, started_at=1.0)


def test_remembers_a_run_over_a_restart(store, path):
    assert store.add(a_job())
    store.set_grant("job-1", Grant(2, "now"), network_base=9, gpus={"trainer-0": [1]})
    store.ask_cancel("job-1", 1, "by bob")
    store.close()
    again = Store(path)
    record = again.live_run("job-1")
    assert record.job == a_job()
    assert (record.grant.trainers, record.grant.reason) == (2, "now")
    assert record.cancel_asked == "by bob"
    assert (again.network_base("job-1"), again.gpus("job-1")) == (9, {"trainer-0": [1]})
    again.close()


def test_accepts_a_run_once(store):
    assert store.add(a_job())
    assert not store.add(a_job())
    assert store.add(a_job(run=2))


def test_tells_a_status_only_when_it_changed(store):
    store.add(a_job())
    record = store.live_run("job-1")
    store.save(record, running(), (), (), 1.0)
    store.save(record, running(), (), (), 1.0)
    assert [c.status.phase for c in store.changes(0, 0)] == [Phase.RUNNING]


def test_tells_an_event_once_per_run(store):
    store.add(a_job())
    record = store.live_run("job-1")
    for _ in range(2):
        store.tell(record.job, Event("Queued", "waits"))
    store.tell(a_job(run=2), Event("Queued", "waits"))
    assert [(c.run, c.event.reason) for c in store.changes(0, 0)] == [(1, "Queued"), (2, "Queued")]


def test_tells_events_before_the_status_they_explain(store):
    store.add(a_job())
    end = Status(Phase.SUCCEEDED, ended_at=2.0)
    store.save(store.live_run("job-1"), end, (), [Event("Succeeded", "done")], 1.0)
    first, second = store.changes(0, 0)
    assert first.event.reason == "Succeeded"
    assert second.status.phase == Phase.SUCCEEDED
    assert store.live_run("job-1") is None


def test_a_cancel_asked_while_a_status_is_saved_is_kept(store):
    store.add(a_job())
    record = store.live_run("job-1")
    store.ask_cancel("job-1", 1, "now")
    store.save(record, running(), (), (), 1.0)
    assert store.live_run("job-1").cancel_asked == "now"


def test_a_cancel_for_another_run_is_ignored(store):
    store.add(a_job(run=2))
    assert not store.ask_cancel("job-1", 1, "late")
    assert store.live_run("job-1").cancel_asked == ""


def test_wakes_a_watcher(store):
    store.add(a_job())
    got: list = []
    watcher = threading.Thread(target=lambda: got.extend(store.changes(0, 30)))
    watcher.start()
    store.tell(a_job(), Event("Queued", "waits"))
    store.notify()
    watcher.join(PATIENCE_S)
    assert got[0].event.message == "waits"


def test_writes_a_grant_and_its_event_together(store, monkeypatch):
    store.add(a_job())
    store.set_grant("job-1", Grant(2), 9, {}, Event("Admitted", "starts with 2 trainers"))
    assert [c.event.message for c in store.changes(0, 0)] == ["starts with 2 trainers"]
    monkeypatch.setattr(store._log, "tell_events", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        store.set_grant("job-1", Grant(0, "later"), event=Event("Queued", "later"))
    assert store.live_run("job-1").grant.trainers == 2


def test_closing_frees_a_watcher(store):
    watcher = threading.Thread(target=lambda: store.changes(0, 0.2))
    watcher.start()
    store.close()
    watcher.join(PATIENCE_S)
    assert not watcher.is_alive()


def test_never_gives_the_addresses_of_a_live_run_again(store):
    store.add(a_job("job-a", trainers=4))
    base = store.next_network(4)
    store.set_grant("job-a", Grant(4), network_base=base, gpus={})
    assert base == FIRST_NETWORK
    for _ in range(3):
        assert store.next_network(LAST_NETWORK // 3) >= base + 4


def test_rotates_addresses(store):
    assert store.next_network(2) != store.next_network(2)


def test_forgets_a_deleted_job_wholly(store):
    store.add(a_job())
    store.tell(a_job(), Event("Queued", "waits"))
    store.forget_when_ended("job-1")
    assert store.is_to_forget("job-1")
    store.forget("job-1")
    assert store.live_run("job-1") is None
    assert store.changes(0, 0) == []
    assert not store.is_to_forget("job-1")
