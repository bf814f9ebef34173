"""`LocalEngine`: the `Engine` protocol on this machine.

One thread plans and reconciles; callers only write wishes into the store and ring the bell. All
truth is in the store and in the attempts' directories, so that kill -9 at any moment loses
nothing: `start` adopts what still runs and reads how the rest ended.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from paddlecloud.core.actions import Event, Grant, Severity, Status
from paddlecloud.core.errors import Fault
from paddlecloud.core.jobspec import JobSpec
from paddlecloud.core.observed import Move, ReplicaKey, ReplicaObserved
from paddlecloud.core.phases import ACTIVE, Phase
from paddlecloud.core.resources import Resources
from paddlecloud.engines.local import inventory
from paddlecloud.engines.local.addresses import too_many
from paddlecloud.engines.local.config import LocalConfig
from paddlecloud.engines.local.launching import assign_gpus, make_launch, placed_before
from paddlecloud.engines.local.processes import Processes
from paddlecloud.engines.local.store import Store
from paddlecloud.engines.protocols import Capacity, Change, History, JobRun, Launch, LogSlice
from paddlecloud.engines.reconcile import RunRecord, reconcile
from paddlecloud.engines.workqueue import WorkQueue
from paddlecloud.scheduling.explain import Explanation, explain
from paddlecloud.scheduling.plan import Plan, never_fits, never_fits_pool, plan
from paddlecloud.scheduling.snapshot import Group, JobView, Node, Quota, Snapshot

log = logging.getLogger(__name__)

_PLAN = ""  # the queue's name for "plan again"; job ids are never empty
_TOLD_AT_ONCE = 20  # so many at the head of the queue have their sentence renewed at each plan
_STILL_HOLDS = ACTIVE | {Phase.PREEMPTED}  # of a run whose grant was taken away
_RETRY_S = 1.0  # after an unexpected error in one job: look at it again, others go on


class LocalEngine:
    kind = "embedded"

    def __init__(self, config: LocalConfig) -> None:
        self.cluster = config.cluster
        self._config = config
        self._total = inventory.machine(config)
        self._store = Store(config.state_dir / "engine.db")
        self._queue = WorkQueue()
        self._processes = Processes(config, self._queue.add)
        self._quotas: Mapping[int, Quota] = {}
        self._groups: Mapping[str, Group] = {}
        self._causes: dict[str, object] = {}  # why each waiting job waits, as last told
        self._thread = threading.Thread(target=self._loop, name="engine", daemon=True)

    # --- the Engine protocol ----------------------------------------------------------------

    def start(self) -> None:
        self._processes.adopt()
        for record in self._store.live_runs():
            self._queue.add(record.job.job_id)
        self._queue.add(_PLAN)
        self._thread.start()

    def close(self) -> None:
        self._queue.close()
        if self._thread.is_alive():
            self._thread.join()
        self._processes.close()
        self._store.close()

    @property
    def multi_account(self) -> bool:
        """Whether one account's job is kept away from another's files."""
        return self._processes.sandboxed

    def put(self, job: JobRun) -> None:
        # Usually there are none: only a store that was lost forgets a run that left something.
        placed = placed_before(job.spec, self._processes.intents(job.job_id, job.run))
        # All times of a run are of one clock: what a set wall clock would do to its age and its
        # limit must not happen.
        job = replace(job, submitted_at=self._processes.clock.from_wall(job.submitted_at))
        if self._store.add(job, placed):
            self._queue.add(job.job_id if placed else _PLAN)

    def cancel(self, job_id: str, run: int, reason: str) -> None:
        if self._store.ask_cancel(job_id, run, reason):
            self._queue.add(job_id)

    def move(self, job_id: str, run: int, moves: Sequence[Move]) -> None:
        if self._store.ask_moves(job_id, run, moves):
            self._queue.add(job_id)

    def delete(self, job_id: str) -> None:
        record = self._store.live_run(job_id)
        if record is not None:
            self._store.forget_when_ended(job_id)
            self.cancel(job_id, record.job.run, "deleted")
            return
        self._forget(job_id)

    def watch(self, after: int, timeout_s: float) -> Sequence[Change]:
        return self._store.changes(after, timeout_s)

    def history(self) -> History:
        return self._store.history()

    def knows(self, job_id: str, run: int) -> bool:
        return self._store.knows(job_id, run) or any(self._processes.intents(job_id, run))

    def log(self, key: ReplicaKey, start: int, limit_bytes: int) -> LogSlice:
        return self._processes.read_log(key, start, limit_bytes)

    def log_wait(self, key: ReplicaKey, size: int, timeout_s: float) -> None:
        self._processes.wait_log(key, size, timeout_s)

    def check(self, spec: JobSpec) -> Sequence[Fault]:
        faults = [*too_many(spec), *never_fits(spec, self._nodes())]
        return faults or never_fits_pool(spec, self._groups, self._nodes())

    def capacity(self) -> Capacity:
        held = Resources()
        for record in self._store.live_runs():
            held += _held(record) or Resources()
        free = self._total - held
        return Capacity(self._total, free, inventory.count_cores(), self._processes.notes())

    def set_quota(self, quotas: Mapping[int, Quota]) -> None:
        self._quotas = dict(quotas)
        self._queue.add(_PLAN)

    def set_groups(self, groups: Mapping[str, Group]) -> None:
        self._groups = dict(groups)
        self._queue.add(_PLAN)

    def snapshot(self) -> Snapshot:
        now = self._processes.clock.now()
        return Snapshot(
            now=now,
            nodes=self._nodes(),
            jobs=tuple(_view(record, now) for record in self._store.live_runs()),
            quotas=self._quotas,
            groups=self._groups,
        )

    def explain(self, job_id: str) -> Explanation | None:
        return explain(self.snapshot(), job_id)

    # --- the loop ---------------------------------------------------------------------------

    def _loop(self) -> None:
        while names := self._queue.take():
            for name in names:
                if name != _PLAN:
                    self._reconcile(name)
            if _PLAN in names:
                self._plan()

    def _reconcile(self, job_id: str) -> None:
        before = self._store.live_run(job_id)
        try:
            outcome = reconcile(job_id, self, self._processes, self._processes.clock.now())
        except Exception:
            # One sick job must not stop the others; it is looked at again.
            log.exception("reconciling %s failed", job_id)
            self._queue.add_after(job_id, _RETRY_S)
            return
        if outcome.wake_after_s is not None:
            self._queue.add_after(job_id, outcome.wake_after_s)
        if outcome.ended:
            self._causes.pop(job_id, None)
            self._queue.add(_PLAN)
            if self._store.is_to_forget(job_id):
                self._forget(job_id)
        elif before is not None and _held(before) is not None:
            self._take_back(job_id)

    def _take_back(self, job_id: str) -> None:
        """What a preempted run held is free when its last replica has ended."""
        now = self._store.live_run(job_id)
        if now is not None and _held(now) is None:
            self._store.set_grant(job_id, now.grant, gpus={})
            self._queue.add(_PLAN)

    def _plan(self) -> None:
        try:
            decided = plan(self.snapshot())
        except Exception:
            log.exception("planning failed")
            self._queue.add_after(_PLAN, _RETRY_S)
            return
        for job_id, grant in decided.grants.items():
            record = self._store.live_run(job_id)
            if record is None:
                continue
            before = record.grant
            if before.trainers != grant.trainers or (
                before.reason != grant.reason and self._is_worth_telling(job_id, decided)
            ):
                self._set_grant(record, grant)
                self._reconcile(job_id)
                # Only now: whoever reads along is not to take the core from what is being started.
                self._store.notify()

    def _is_worth_telling(self, job_id: str, decided: Plan) -> bool:
        """Whether a waiting job's new sentence is stored.

        Sentences name who holds what, so one start changes a thousand of them; those far back in
        a long queue are renewed when their cause changes. `explain` is always fresh.
        """
        verdict = decided.waits.get(job_id)
        cause = verdict.cause if verdict else None
        is_new = self._causes.get(job_id) != cause
        self._causes[job_id] = cause
        return is_new or job_id in decided.order[:_TOLD_AT_ONCE]

    def _set_grant(self, record: RunRecord, grant: Grant) -> None:
        job_id, spec = record.job.job_id, record.job.spec
        if record.grant.trainers and not grant.trainers:
            self._preempt(record, grant)
            return
        if grant.trainers == 0 or record.grant.trainers:
            is_new = not record.grant.reason and grant.reason
            event = Event("Queued", grant.reason) if is_new else None
            self._store.set_grant(job_id, grant, event=event)
            return
        cards = assign_gpus(record, grant.trainers, self._free_gpus())
        if cards is None:  # the planner counted cards that the machine has lost
            why = "waits for GPUs: fewer are free than the machine said it has"
            event = Event("Queued", why, Severity.WARNING)
            self._store.set_grant(job_id, Grant(0, why), event=event)
            return
        count = spec.replicas_at(grant.trainers)
        trainers = f"{grant.trainers} trainer{'s' if grant.trainers > 1 else ''}"
        words = f"starts with {trainers}" + (f", {count} replicas in all" if count > 1 else "")
        if record.preempted:  # an equal event would not be told again
            words += f" (after preemption {record.preempted.times})"
        base = self._store.next_network(spec.replicas_at(spec.trainers.max_replicas))
        self._store.set_grant(job_id, grant, base, cards, Event("Admitted", words))

    def _preempt(self, record: RunRecord, grant: Grant) -> None:
        noted = self._store.preempt(record.job.job_id, grant, self._processes.clock.now())
        again = f" (preemption {noted.times})" if noted.times > 1 else ""
        words = f"{grant.reason}; it goes back to the queue with its age{again}"
        self._store.tell(record.job, Event("Preempted", words, Severity.WARNING))

    def _free_gpus(self) -> list[int]:
        held = {
            card
            for record in self._store.live_runs()
            for cards in self._store.gpus(record.job.job_id).values()
            for card in cards
        }
        return [card for card in range(self._total.gpu) if card not in held]

    def _nodes(self) -> tuple[Node, ...]:
        return (Node(self.cluster, self._total),)

    def _forget(self, job_id: str) -> None:
        self._store.forget(job_id)
        self._processes.discard_job(job_id)

    # --- the Ledger protocol, for `reconcile` -------------------------------------------------

    def live_run(self, job_id: str) -> RunRecord | None:
        return self._store.live_run(job_id)

    def save(
        self,
        record: RunRecord,
        status: Status,
        replicas: Sequence[ReplicaObserved],
        events: Sequence[Event],
        first_started_at: float | None,
    ) -> None:
        self._store.save(record, status, replicas, events, first_started_at)

    def launch(self, record: RunRecord, key: ReplicaKey, seen: Sequence[ReplicaObserved]) -> Launch:
        job_id = record.job.job_id
        return make_launch(
            record, key, seen, self._store.network_base(job_id), self._store.gpus(job_id)
        )


def _held(record: RunRecord) -> Resources | None:
    """What the replicas of a run hold, or will in a moment; None if there are none."""
    trainers = record.grant.trainers
    if not trainers and record.preempted and record.status.phase in _STILL_HOLDS:
        trainers = record.preempted.trainers
    return record.job.spec.resources_at(trainers) if trainers else None


def _view(record: RunRecord, now: float) -> JobView:
    spec, started = record.job.spec, record.first_started_at
    remaining = None
    if spec.wall_time_s and started is not None:
        remaining = max(0.0, started + spec.wall_time_s - now)
    return JobView(
        job_id=record.job.job_id,
        spec=spec,
        account_id=record.job.account_id,
        account=record.job.account,
        submitted_at=record.job.submitted_at,
        granted=record.grant.trainers,
        used=_held(record),
        started_at=started,
        remaining_s=remaining,
        released=bool(record.cancel_asked),
    )
