"""One pass over a run that was preempted, with replicas as a test says they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from paddlecloud.core.actions import Event, Grant, Status
from paddlecloud.core.jobspec import Role
from paddlecloud.core.observed import EndCause, Exit, ReplicaKey, ReplicaObserved, ReplicaState
from paddlecloud.core.phases import Phase
from paddlecloud.engines.protocols import JobRun, Launch
from paddlecloud.engines.reconcile import Preempted, RunRecord, reconcile
from paddlecloud.testing.builders import make_spec

NOW = 1000.0


@dataclass
class Fake:
    """A ledger and its replicas."""

    record: RunRecord
    seen: list[ReplicaObserved]
    stopped: list[ReplicaKey] = field(default_factory=list)
    first_started_at: float | None = None
    events: list[str] = field(default_factory=list)
    told: Sequence[ReplicaObserved] = ()

    def live_run(self, job_id: str) -> RunRecord:
        return self.record

    def save(
        self,
        record: RunRecord,
        status: Status,
        replicas: Sequence[ReplicaObserved],
        events: Sequence[Event],
        first_started_at: float | None,
    ) -> None:
        self.record = replace(record, status=status, first_started_at=first_started_at)
        self.first_started_at = first_started_at
        self.events += [event.reason for event in events]
        self.told = replicas

    def launch(self, record: RunRecord, key: ReplicaKey, seen: object) -> Launch:
        raise AssertionError(f"{key} must not be started")

    def observe(self, job_id: str, run: int) -> Sequence[ReplicaObserved]:
        return self.seen

    def stop(self, key: ReplicaKey, grace_s: float) -> None:
        self.stopped.append(key)

    def create(self, launch: Launch) -> None:
        raise AssertionError("nothing is granted")

    def remove(self, key: ReplicaKey) -> None:
        pass


def trainer(index: int, *, ended: int | None = None, stopping: bool = False) -> ReplicaObserved:
    key = ReplicaKey("job-1", 1, Role.TRAINER, index, 1)
    if ended is None:
        return ReplicaObserved(key, ReplicaState.RUNNING, NOW - 100, stopping=stopping)
    return ReplicaObserved(
        key, ReplicaState.ENDED, NOW - 100, NOW - 1, Exit(EndCause.EXITED, ended), stopping
    )


def preempted(*seen: ReplicaObserved) -> Fake:
    job = JobRun("job-1", 1, make_spec(trainers=2), 1, "alice", NOW - 200)
    taken = Preempted(times=1, at=NOW - 2, trainers=2)
    status = Status(Phase.RUNNING)
    return Fake(RunRecord(job, Grant(0, "preempted"), status, preempted=taken), list(seen))


def run(fake: Fake) -> Phase:
    reconcile("job-1", fake, fake, NOW)
    return fake.record.status.phase


def test_stops_what_still_runs_and_forgets_when_it_started() -> None:
    fake = preempted(trainer(0), trainer(1))
    assert run(fake) == Phase.PREEMPTED
    assert [key.index for key in fake.stopped] == [0, 1]
    assert fake.first_started_at is None


def test_tells_that_a_stop_was_asked_for_before_it_is_done() -> None:
    fake = preempted(trainer(0, ended=1), trainer(1))
    run(fake)
    assert [(one.key.index, one.stopping) for one in fake.told] == [(0, False), (1, True)]


def test_goes_back_to_the_queue_when_the_last_has_stopped() -> None:
    fake = preempted(trainer(0, ended=1, stopping=True), trainer(1, ended=0, stopping=True))
    assert run(fake) == Phase.QUEUED
    assert fake.record.status.restarts == 0


def test_a_run_that_was_done_before_it_could_be_stopped_is_not_run_again() -> None:
    fake = preempted(trainer(0, ended=0), trainer(1, ended=0))
    assert run(fake) == Phase.SUCCEEDED
    assert fake.events == ["Succeeded"]


def test_half_done_is_not_done() -> None:
    assert run(preempted(trainer(0, ended=0), trainer(1, ended=0, stopping=True))) == Phase.QUEUED
    assert run(preempted(trainer(0, ended=0))) == Phase.QUEUED


def test_remains_that_cannot_be_dropped_keep_no_run_from_ending():
    fake = preempted(trainer(0, ended=0), trainer(1, ended=0))
    phases: list[Phase] = []

    def remove(key: ReplicaKey) -> None:
        phases.append(fake.record.status.phase)
        raise RecursionError("too deep")

    fake.remove = remove  # type: ignore[method-assign]
    assert run(fake) == Phase.SUCCEEDED
    assert phases == [Phase.SUCCEEDED] * 2  # the end was written down first
