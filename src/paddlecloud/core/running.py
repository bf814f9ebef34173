"""What a run that has its capacity and is not over needs next: who starts, who starts again, who
leaves, and how ready it is.

`lifecycle.decide` calls `go_on`. A gang stops and starts as one; a replica that may restart alone
does. Ranks are slots, (role, index), and every start of a slot is a new attempt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from paddlecloud.core import completion, moving, restart
from paddlecloud.core.actions import Action, Event, Severity, Start, Stop
from paddlecloud.core.jobspec import JobSpec, Role
from paddlecloud.core.observed import (
    Move,
    Observed,
    ReplicaKey,
    ReplicaObserved,
    ReplicaState,
    describe_end,
)

Slot = tuple[Role, int]
_NAMES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Run:
    """One run as it stands: what is wanted, and the latest attempt of every slot."""

    job_id: str
    number: int
    spec: JobSpec
    observed: Observed
    wanted: Sequence[Slot]
    latest: dict[Slot, ReplicaObserved]
    now: float

    @property
    def away(self) -> dict[Slot, Move]:
        """Slots whose latest attempt was ordered to leave its host."""
        return moving.ordered_away(self.observed.moves, self.latest)

    @property
    def without(self) -> frozenset[Slot]:
        """Slots that are given up: the job goes on without them."""
        return restart.given_up(self.spec, self.observed.replicas, self.observed.moves)

    def start(self, slot: Slot, attempt: int) -> Start:
        return Start(ReplicaKey(self.job_id, self.number, *slot, attempt))

    def stop(self, seen: ReplicaObserved, why: str) -> Stop:
        return Stop(seen.key, self.spec.grace_s, why)

    @property
    def pause_s(self) -> float:
        """How long to wait before the next restart, after all that has failed so far."""
        count = restart.incidents(self.spec, self.observed.replicas, self.observed.moves)
        return restart.backoff_s(self.spec.restart, count)

    def backoff_left(self, ended: Sequence[ReplicaObserved]) -> float:
        """Seconds until what failed last may start again; not positive when it may."""
        failed = (one.ended_at or 0.0 for one in ended if completion.has_failed(one))
        failed_at = max(failed, default=None)
        if failed_at is None:
            return 0.0
        return failed_at + self.pause_s - self.now


@dataclass(slots=True)
class Steps:
    """What a run needs next, and what is said of it meanwhile."""

    actions: list[Action] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    wakes: list[float] = field(default_factory=list)  # seconds until it has to be looked at again
    ready: bool = False
    reason: str = ""


def go_on(run: Run) -> Steps:
    away, without = run.away, run.without
    wanted = set(run.wanted)
    steps = Steps()
    steps.actions += [
        run.stop(seen, "the job shrank")
        for slot, seen in run.latest.items()
        if slot not in wanted and seen.alive and not seen.stopping
    ]
    steps.events += [_given_up(run.latest[slot]) for slot in sorted(without)]
    gang_down = _gang_is_down(run, away)
    if gang_down:
        _restart_gang(run, away, steps)
    else:
        _start_missing(run, away, without, steps)
    needed = [slot for slot in run.wanted if slot not in without]
    steps.ready = not gang_down and all(_is_ready(run.latest.get(slot)) for slot in needed)
    if not steps.ready:
        steps.reason = _starting_reason(run, needed, gang_down, steps)
        return steps
    count = len(needed)
    words = f"all {count} replicas run" if count > 1 else "its one replica runs"
    steps.events.append(Event("Running", words))
    if without:
        steps.reason = f"goes on without {_names(sorted(without))}"
    return steps


def stop_order(replicas: Sequence[ReplicaObserved]) -> list[ReplicaObserved]:
    """Trainers first, so that they do not die of their servers' absence."""
    return sorted(replicas, key=lambda seen: (seen.key.role != Role.TRAINER, seen.key))


def _is_ready(seen: ReplicaObserved | None) -> bool:
    return seen is not None and (seen.state == ReplicaState.RUNNING or completion.ended_well(seen))


def _names(slots: Sequence[Slot]) -> str:
    shown = ", ".join(f"{role.value}-{index}" for role, index in slots[:_NAMES_SHOWN])
    return shown + (" …" if len(slots) > _NAMES_SHOWN else "")


def _starting_reason(run: Run, needed: Sequence[Slot], gang_down: bool, steps: Steps) -> str:
    failed = _culprit(run.spec, [run.latest[slot] for slot in needed if slot in run.latest])
    if failed is not None and not any(isinstance(action, Start) for action in steps.actions):
        who = "all replicas start" if gang_down and len(needed) > 1 else "it starts"
        return f"{describe_end(failed)}; {who} again {run.pause_s:g}s later"
    if gang_down:
        return "restarting all replicas"
    missing = [
        slot
        for slot in run.wanted
        if slot not in run.latest or run.latest[slot].state != ReplicaState.RUNNING
    ]
    return f"starting {_names(missing)}"


# --- all together -------------------------------------------------------------------------------


def _gang_is_down(run: Run, away: dict[Slot, Move]) -> bool:
    """Some replica that cannot restart alone failed, or the whole gang was stopped for that."""
    for slot in run.wanted:
        seen = run.latest.get(slot)
        if slot in away and moving.takes_all_along(run.spec, slot[0]):
            return True
        if seen is None or slot in away:
            continue
        if completion.has_failed(seen) and not restart.restarts_alone(run.spec, slot[0]):
            return True
        if seen.stopping:
            return True
    return False


def _restart_gang(run: Run, away: dict[Slot, Move], steps: Steps) -> None:
    ended = list(run.latest.values())
    alive = [run.latest[slot] for slot in run.wanted if slot in run.latest]
    alive = stop_order([seen for seen in alive if seen.alive])
    if alive:
        why = "a peer failed; all restart together"
        steps.actions += [run.stop(seen, why) for seen in alive if not seen.stopping]
        return
    left = run.backoff_left(ended)
    if left > 0:
        steps.wakes.append(left)
        return
    attempt = 1 + max(seen.key.attempt for seen in ended)
    steps.events += [_moved(run.latest[slot], move.host, attempt) for slot, move in away.items()]
    culprit = _culprit(run.spec, ended)
    if culprit is not None:  # none: its capacity had been taken away, nothing failed
        all_of_them = "all replicas start" if len(run.wanted) > 1 else "it starts"
        steps.events.append(_restarting(run, culprit, f"{all_of_them} again", attempt))
    steps.actions += [run.start(slot, attempt) for slot in run.wanted]


def _culprit(spec: JobSpec, ended: Sequence[ReplicaObserved]) -> ReplicaObserved | None:
    """The one that took the gang down: peers abort in the wake of the first, and a trainer that
    could have restarted alone is never the cause."""
    failed = [seen for seen in ended if completion.has_failed(seen)]
    return min(
        failed,
        key=lambda seen: (
            restart.restarts_alone(spec, seen.key.role),
            seen.ended_at or 0.0,
            seen.key,
        ),
        default=None,
    )


# --- one by one ---------------------------------------------------------------------------------


def _start_missing(
    run: Run, away: dict[Slot, Move], without: frozenset[Slot], steps: Steps
) -> None:
    for slot in run.wanted:
        seen = run.latest.get(slot)
        if seen is None:
            steps.actions.append(run.start(slot, 1))
        elif slot in away:
            _lead_away(run, seen, away[slot].host, steps)
        elif completion.has_failed(seen) and slot not in without:
            _start_again(run, seen, steps)


def _lead_away(run: Run, seen: ReplicaObserved, host: str, steps: Steps) -> None:
    if not seen.alive:
        attempt = seen.key.attempt + 1
        steps.events.append(_moved(seen, host, attempt))
        steps.actions.append(run.start((seen.key.role, seen.key.index), attempt))
    elif not seen.stopping:
        steps.actions.append(run.stop(seen, f"it has to leave {host}"))


def _start_again(run: Run, seen: ReplicaObserved, steps: Steps) -> None:
    left = run.backoff_left([seen])
    if left > 0:
        steps.wakes.append(left)
        return
    attempt = seen.key.attempt + 1
    steps.events.append(_restarting(run, seen, "it starts again", attempt))
    steps.actions.append(run.start((seen.key.role, seen.key.index), attempt))


# --- what is said -------------------------------------------------------------------------------


def _moved(seen: ReplicaObserved, host: str, attempt: int) -> Event:
    words = f"{seen.key.short} had to leave {host}; it starts again, attempt {attempt}"
    return Event("Moved", f"{words} (no restart is counted)", replica=seen.key.short)


def _given_up(seen: ReplicaObserved) -> Event:
    words = f"{describe_end(seen)}; it is not started again, the job goes on without it"
    return Event("GivenUp", words, Severity.WARNING, seen.key.short)


def _restarting(run: Run, failed: ReplicaObserved, what: str, attempt: int) -> Event:
    """`exit 3 in trainer-1; all replicas start again, attempt 2 (restart 1 of at most 3)`"""
    spec, observed = run.spec, run.observed
    count = restart.incidents(spec, observed.replicas, observed.moves)
    counted = f"restart {count} of at most {spec.restart.max_restarts}"
    if moving.is_in_the_wake(spec, failed, observed.moves):
        counted = "not counted: a peer had been moved"
    words = f"{describe_end(failed)}; {what}, attempt {attempt} ({counted})"
    return Event("Restarting", words, Severity.WARNING, failed.key.short)
