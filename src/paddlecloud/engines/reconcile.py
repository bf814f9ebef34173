"""The one reconcile loop body: observe → decide → act → status once.

Driven by the local engine over processes and by the operator over pods. It holds no state of its
own: the ledger remembers the run, the replicas are looked at, and `lifecycle.decide` thinks.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from paddlecloud.core import completion, lifecycle, restart
from paddlecloud.core.actions import Action, Event, Grant, Remove, Start, Status, Stop
from paddlecloud.core.observed import Move, Observed, ReplicaKey, ReplicaObserved
from paddlecloud.core.phases import TERMINAL, check_move
from paddlecloud.engines.protocols import JobRun, Launch, Replicas

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Preempted:
    """A run was last stopped to give another group its guarantee back."""

    times: int
    at: float
    trainers: int  # what it had, and holds until its replicas have stopped


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What an engine remembers of one run."""

    job: JobRun
    grant: Grant
    status: Status
    cancel_asked: str = ""
    first_started_at: float | None = None
    moves: tuple[Move, ...] = ()
    preempted: Preempted | None = None


class Ledger(Protocol):
    """Where an engine keeps its runs."""

    def live_run(self, job_id: str) -> RunRecord | None:
        """The run of this job that has not ended, if there is one."""

    def save(
        self,
        record: RunRecord,
        status: Status,
        replicas: Sequence[ReplicaObserved],
        events: Sequence[Event],
        first_started_at: float | None,
    ) -> None:
        """Store and tell watchers; events already told for this run are not told again."""

    def launch(self, record: RunRecord, key: ReplicaKey, seen: Sequence[ReplicaObserved]) -> Launch:
        """All that is needed to make this attempt, given what runs beside it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one pass left behind: when to look again, and whether the run is over."""

    wake_after_s: float | None
    ended: bool


def reconcile(job_id: str, ledger: Ledger, replicas: Replicas, now: float) -> Outcome:
    """One pass over one job. Safe to repeat at any time, also after a crash half way."""
    record = ledger.live_run(job_id)
    if record is None:
        return Outcome(None, False)
    job = record.job
    seen = tuple(replicas.observe(job.job_id, job.run))
    starts = [one.started_at for one in _of_this_time(seen, record) if one.started_at is not None]
    first_started_at = min([*starts, *filter(None, [record.first_started_at])], default=None)
    observed = Observed(seen, record.cancel_asked, job.submitted_at, first_started_at, record.moves)
    grant = _granted(record, seen)
    decision = lifecycle.decide(job.job_id, job.run, job.spec, grant, observed, now)
    check_move(record.status.phase, decision.status.phase)
    for action in decision.actions:
        _act(action, record, seen, ledger, replicas)
    # Who watches hears of a stop when it is asked for, not only of the end.
    asked = {action.key for action in decision.actions if isinstance(action, Stop)}
    told = [replace(one, stopping=True) if one.key in asked else one for one in seen]
    ledger.save(record, decision.status, told, decision.events, first_started_at)
    _clean_up(decision.actions, replicas)
    return Outcome(decision.wake_after_s, decision.status.phase in TERMINAL)


def _granted(record: RunRecord, seen: Sequence[ReplicaObserved]) -> Grant:
    """A run whose trainers were done before they could be stopped is done, and not run again."""
    if record.grant.trainers or record.preempted is None:
        return record.grant
    size = record.preempted.trainers
    without = restart.given_up(record.job.spec, seen, record.moves)
    is_done = completion.trainers_are_done(completion.latest_attempts(seen), size, without)
    return Grant(size) if is_done else record.grant


def _of_this_time(seen: Sequence[ReplicaObserved], record: RunRecord) -> Sequence[ReplicaObserved]:
    """Those that count for when it started: its wall time does not run while it waits again."""
    if record.preempted is None:
        return seen
    since = record.preempted.at
    return [one for one in seen if (one.started_at or 0.0) > since and not one.stopping]


def _act(
    action: Action,
    record: RunRecord,
    seen: Sequence[ReplicaObserved],
    ledger: Ledger,
    replicas: Replicas,
) -> None:
    match action:
        case Start(key):
            replicas.create(ledger.launch(record, key, seen))
        case Stop(key, grace_s, reason):
            log.info("stopping %s of %s: %s", key.short, key.job_id, reason)
            replicas.stop(key, grace_s)
        case Remove():
            pass  # when the end is written down: `_clean_up`


def _clean_up(actions: Sequence[Action], replicas: Replicas) -> None:
    """Drop remains. That it fails keeps no job from ending and nothing from being free."""
    for action in actions:
        if isinstance(action, Remove):
            try:
                replicas.remove(action.key)
            except Exception:
                log.exception("cannot drop the remains of %s", action.key)
