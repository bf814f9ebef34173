"""`decide`: what to do next for one run, and what to say about it.

Pure and level triggered: given the wish (spec), the planner's grant and what was observed, the
answer is the same however often it is asked. Engines call it through the one reconcile loop. A
terminal phase is answered only when no replica is alive, so "Killed" means that nothing is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paddlecloud.core import cleanup, completion, moving, restart
from paddlecloud.core.actions import (
    Action,
    Decision,
    Event,
    Failure,
    Grant,
    RoleCount,
    Severity,
    Start,
    Status,
    Stop,
)
from paddlecloud.core.jobspec import JobSpec, Role
from paddlecloud.core.observed import (
    EndCause,
    Exit,
    Move,
    Observed,
    ReplicaKey,
    ReplicaObserved,
    ReplicaState,
)
from paddlecloud.core.phases import Phase

_LOST = Exit(EndCause.SIGNALED, 0, 0, "it vanished without leaving an exit code")


@dataclass(frozen=True, slots=True)
class _Verdict:
    phase: Phase
    reason: str
    event: Event
    failed: ReplicaObserved | None = None


def decide(
    job_id: str, run: int, spec: JobSpec, grant: Grant, observed: Observed, now: float
) -> Decision:
    latest = completion.latest_attempts(observed.replicas)
    verdict = _verdict(spec, grant, observed, latest, now)
    if verdict is not None:
        return _end(spec, grant, observed, verdict, now)
    if grant.trainers == 0:
        return _wait(spec, grant, observed)
    return _run(job_id, run, spec, grant, observed, latest, now)


# --- the verdict: is the run over, and how? -----------------------------------------------------


def _verdict(
    spec: JobSpec,
    grant: Grant,
    observed: Observed,
    latest: dict[tuple[Role, int], ReplicaObserved],
    now: float,
) -> _Verdict | None:
    without = restart.given_up(spec, observed.replicas, observed.moves)
    if completion.trainers_are_done(latest, grant.trainers, without):
        words = "all trainers ended well" if not without else "the trainers it had left ended well"
        return _Verdict(Phase.SUCCEEDED, "", Event("Succeeded", words))
    fatal = restart.fatal(spec, observed.replicas, observed.moves)
    trainers = {(Role.TRAINER, index) for index in range(grant.trainers)}
    if fatal is None and trainers and trainers <= without:
        fatal = max((latest[slot] for slot in trainers), key=lambda seen: seen.ended_at or 0.0)
    deadline = _deadline(spec, observed)
    if fatal is not None and (deadline is None or (fatal.ended_at or 0.0) <= deadline):
        words = describe_end(fatal)
        return _Verdict(
            Phase.FAILED,
            words,
            Event("Failed", words, Severity.WARNING, fatal.key.short),
            fatal,
        )
    if observed.cancel_asked:
        return _Verdict(Phase.KILLED, observed.cancel_asked, Event("Killed", observed.cancel_asked))
    if deadline is not None and now >= deadline:
        words = f"the wall time of {spec.wall_time_s} s ran out"
        return _Verdict(Phase.TIMED_OUT, words, Event("TimedOut", words, Severity.WARNING))
    return None


def _deadline(spec: JobSpec, observed: Observed) -> float | None:
    if not spec.wall_time_s or observed.first_started_at is None:
        return None
    return observed.first_started_at + spec.wall_time_s


def describe_end(seen: ReplicaObserved) -> str:
    """How a replica ended, in words: `exit 1 in trainer-1`."""
    name = seen.key.short
    if seen.state == ReplicaState.LOST or seen.exit is None:
        return f"{name} was lost: the machine or its node restarted"
    tail = f": {seen.exit.message}" if seen.exit.message else ""
    match seen.exit.cause:
        case EndCause.EXITED:
            return f"exit {seen.exit.code} in {name}{tail}"
        case EndCause.SIGNALED:
            return f"{name} was ended by signal {seen.exit.signal}{tail}"
        case EndCause.OUT_OF_MEMORY:
            return f"{name} ran out of memory{tail}"
        case EndCause.START_FAILED:
            return f"{name} could not start{tail}"


def _end(
    spec: JobSpec, grant: Grant, observed: Observed, verdict: _Verdict, now: float
) -> Decision:
    alive = [seen for seen in observed.replicas if seen.alive]
    if alive:
        # Asking again for what is stopping is free, and keeps the decision level triggered.
        why = verdict.reason or "the trainers are done"
        stops = tuple(
            Stop(seen.key, spec.grace_s, why) for seen in _stop_order(alive) if not seen.stopping
        )
        phase = Phase.RUNNING if observed.first_started_at is not None else Phase.STARTING
        status = _status(spec, grant, observed, phase, f"ending: {why}", verdict.failed)
        return Decision(stops, status, ending=True)
    status = _status(spec, grant, observed, verdict.phase, verdict.reason, verdict.failed, now)
    return Decision(
        cleanup.removals(spec.clean, verdict.phase, observed.replicas), status, (verdict.event,)
    )


def _stop_order(replicas: Sequence[ReplicaObserved]) -> list[ReplicaObserved]:
    """Trainers first, so that they do not die of their servers' absence."""
    return sorted(replicas, key=lambda seen: (seen.key.role != Role.TRAINER, seen.key))


# --- waiting -------------------------------------------------------------------------------------


def _wait(spec: JobSpec, grant: Grant, observed: Observed) -> Decision:
    alive = [seen for seen in observed.replicas if seen.alive]
    stops = tuple(
        Stop(seen.key, spec.grace_s, grant.reason or "its capacity was taken away")
        for seen in _stop_order(alive)
        if not seen.stopping
    )
    phase = Phase.PREEMPTED if alive else Phase.QUEUED
    return Decision(stops, _status(spec, grant, observed, phase, grant.reason))


# --- running -------------------------------------------------------------------------------------


def _run(
    job_id: str,
    run: int,
    spec: JobSpec,
    grant: Grant,
    observed: Observed,
    latest: dict[tuple[Role, int], ReplicaObserved],
    now: float,
) -> Decision:
    wanted = completion.wanted_replicas(spec, grant.trainers)
    surplus = [seen for slot, seen in latest.items() if slot not in set(wanted) and seen.alive]
    actions: list[Action] = [
        Stop(seen.key, spec.grace_s, "the job shrank") for seen in surplus if not seen.stopping
    ]
    away = moving.ordered_away(observed.moves, latest)
    without = restart.given_up(spec, observed.replicas, observed.moves)
    gang_down = _gang_is_down(spec, wanted, latest, away)
    events = [_given_up(latest[slot]) for slot in sorted(without)]
    wake: list[float] = []
    if gang_down:
        actions += _restart_gang(job_id, run, spec, observed, wanted, latest, now, events, wake)
    else:
        actions += _start_missing(job_id, run, spec, observed, wanted, latest, now, events, wake)
    deadline = _deadline(spec, observed)
    if deadline is not None:
        wake.append(max(0.0, deadline - now))
    ready = not gang_down and all(
        slot in latest
        and (latest[slot].state == ReplicaState.RUNNING or completion.ended_well(latest[slot]))
        for slot in wanted
        if slot not in without
    )
    phase = Phase.RUNNING if ready else Phase.STARTING
    if ready:
        count = len([slot for slot in wanted if slot not in without])
        words = f"all {count} replicas run" if count > 1 else "its one replica runs"
        events.append(Event("Running", words))
    reason = "" if ready else _starting_reason(wanted, latest, gang_down)
    if ready and without:
        names = ", ".join(f"{role.value}-{index}" for role, index in sorted(without)[:3])
        reason = f"goes on without {names}" + (" …" if len(without) > 3 else "")
    status = _status(spec, grant, observed, phase, reason)
    return Decision(tuple(actions), status, tuple(events), min(wake, default=None))


def _starting_reason(
    wanted: Sequence[tuple[Role, int]],
    latest: dict[tuple[Role, int], ReplicaObserved],
    gang_down: bool,
) -> str:
    if gang_down:
        return "restarting all replicas"
    missing = [
        f"{role.value}-{index}"
        for role, index in wanted
        if (role, index) not in latest or latest[(role, index)].state != ReplicaState.RUNNING
    ]
    shown = ", ".join(missing[:3]) + (" …" if len(missing) > 3 else "")
    return f"starting {shown}"


def _gang_is_down(
    spec: JobSpec,
    wanted: Sequence[tuple[Role, int]],
    latest: dict[tuple[Role, int], ReplicaObserved],
    away: dict[tuple[Role, int], Move],
) -> bool:
    """Some replica that cannot restart alone failed, or the whole gang was stopped for that."""
    for slot in wanted:
        seen = latest.get(slot)
        if slot in away and moving.takes_all_along(spec, slot[0]):
            return True
        if seen is None or slot in away:
            continue
        if completion.has_failed(seen) and not restart.restarts_alone(spec, slot[0]):
            return True
        if seen.stopping:
            return True
    return False


def _restart_gang(
    job_id: str,
    run: int,
    spec: JobSpec,
    observed: Observed,
    wanted: Sequence[tuple[Role, int]],
    latest: dict[tuple[Role, int], ReplicaObserved],
    now: float,
    events: list[Event],
    wake: list[float],
) -> list[Action]:
    alive = [latest[slot] for slot in wanted if slot in latest and latest[slot].alive]
    if alive:
        return [
            Stop(seen.key, spec.grace_s, "a peer failed; all restart together")
            for seen in _stop_order(alive)
            if not seen.stopping
        ]
    away = moving.ordered_away(observed.moves, latest)
    left = _backoff_left(spec, observed, list(latest.values()), now)
    if left > 0:
        wake.append(left)
        return []
    attempt = 1 + max(seen.key.attempt for seen in latest.values())
    events += [_moved(latest[slot], move.host, attempt) for slot, move in away.items()]
    culprit = _culprit(spec, list(latest.values()))
    if culprit is not None:  # none: its capacity had been taken away, nothing failed
        all_of_them = "all replicas start" if len(wanted) > 1 else "it starts"
        events.append(_restarting(spec, observed, culprit, f"{all_of_them} again", attempt))
    return [Start(ReplicaKey(job_id, run, role, index, attempt)) for role, index in wanted]


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


def _moved(seen: ReplicaObserved, host: str, attempt: int) -> Event:
    words = f"{seen.key.short} had to leave {host}; it starts again, attempt {attempt}"
    return Event("Moved", f"{words} (no restart is counted)", replica=seen.key.short)


def _given_up(seen: ReplicaObserved) -> Event:
    words = f"{describe_end(seen)}; it is not started again, the job goes on without it"
    return Event("GivenUp", words, Severity.WARNING, seen.key.short)


def _restarting(
    spec: JobSpec, observed: Observed, failed: ReplicaObserved, what: str, attempt: int
) -> Event:
    """`exit 3 in trainer-1; all replicas start again, attempt 2 (restart 1 of at most 3)`"""
    count = restart.incidents(spec, observed.replicas, observed.moves)
    counted = f"restart {count} of at most {spec.restart.max_restarts}"
    if moving.is_in_the_wake(spec, failed, observed.moves):
        counted = "not counted: a peer had been moved"
    words = f"{describe_end(failed)}; {what}, attempt {attempt} ({counted})"
    return Event("Restarting", words, Severity.WARNING, failed.key.short)


def _backoff_left(
    spec: JobSpec, observed: Observed, ended: Sequence[ReplicaObserved], now: float
) -> float:
    failed_at = max((s.ended_at or 0.0 for s in ended if completion.has_failed(s)), default=None)
    if failed_at is None:
        return 0.0
    count = restart.incidents(spec, observed.replicas, observed.moves)
    return failed_at + restart.backoff_s(spec.restart, count) - now


def _start_missing(
    job_id: str,
    run: int,
    spec: JobSpec,
    observed: Observed,
    wanted: Sequence[tuple[Role, int]],
    latest: dict[tuple[Role, int], ReplicaObserved],
    now: float,
    events: list[Event],
    wake: list[float],
) -> list[Action]:
    actions: list[Action] = []
    away = moving.ordered_away(observed.moves, latest)
    without = restart.given_up(spec, observed.replicas, observed.moves)
    for role, index in wanted:
        seen = latest.get((role, index))
        if seen is None:
            actions.append(Start(ReplicaKey(job_id, run, role, index, 1)))
        elif (role, index) in away:
            host, attempt = away[role, index].host, seen.key.attempt + 1
            if not seen.alive:
                events.append(_moved(seen, host, attempt))
                actions.append(Start(ReplicaKey(job_id, run, role, index, attempt)))
            elif not seen.stopping:
                actions.append(Stop(seen.key, spec.grace_s, f"it has to leave {host}"))
        elif completion.has_failed(seen) and (role, index) not in without:
            left = _backoff_left(spec, observed, [seen], now)
            if left > 0:
                wake.append(left)
                continue
            attempt = seen.key.attempt + 1
            events.append(_restarting(spec, observed, seen, "it starts again", attempt))
            actions.append(Start(ReplicaKey(job_id, run, role, index, attempt)))
    return actions


# --- status --------------------------------------------------------------------------------------


def _status(
    spec: JobSpec,
    grant: Grant,
    observed: Observed,
    phase: Phase,
    reason: str,
    failed: ReplicaObserved | None = None,
    ended_at: float | None = None,
) -> Status:
    latest = completion.latest_attempts(observed.replicas)
    roles: dict[Role, RoleCount] = {}
    for role_spec in spec.roles:
        mine = [seen for slot, seen in latest.items() if slot[0] == role_spec.role]
        is_trainer = role_spec.role == Role.TRAINER
        roles[role_spec.role] = RoleCount(
            wanted=(grant.trainers or role_spec.replicas) if is_trainer else role_spec.replicas,
            running=sum(seen.state == ReplicaState.RUNNING for seen in mine),
            succeeded=sum(completion.ended_well(seen) for seen in mine),
            failed=sum(completion.has_failed(seen) for seen in mine),
        )
    if failed is None:
        failed = completion.first_failure(observed.replicas) if phase == Phase.FAILED else None
    ends = [seen.ended_at for seen in observed.replicas if seen.ended_at is not None]
    return Status(
        phase=phase,
        reason=reason,
        roles=roles,
        restarts=restart.restarts_used(spec, observed.replicas, observed.moves),
        started_at=observed.first_started_at,
        ended_at=None if ended_at is None else (max(ends) if ends else ended_at),
        failure=None
        if failed is None
        else Failure(failed.key.short, failed.exit or _LOST, failed.ended_at),
    )
