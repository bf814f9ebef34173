"""`decide`: what to do next for one run, and what to say about it.

Pure and level triggered: given the wish (spec), the planner's grant and what was observed, the
answer is the same however often it is asked. Engines call it through the one reconcile loop. A
terminal phase is answered only when no replica is alive, so "Killed" means that nothing is left.
"""

from __future__ import annotations

from dataclasses import dataclass

from paddlecloud.core import cleanup, completion, restart
from paddlecloud.core.actions import (
    Decision,
    Event,
    Failure,
    Grant,
    RoleCount,
    Severity,
    Status,
    Stop,
)
from paddlecloud.core.jobspec import JobSpec, Role
from paddlecloud.core.observed import (
    EndCause,
    Exit,
    Observed,
    ReplicaObserved,
    ReplicaState,
    describe_end,
)
from paddlecloud.core.phases import Phase
from paddlecloud.core.running import Run, go_on, stop_order

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
    wanted = completion.wanted_replicas(spec, grant.trainers)
    return _run(grant, Run(job_id, run, spec, observed, wanted, latest, now))


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


def _end(
    spec: JobSpec, grant: Grant, observed: Observed, verdict: _Verdict, now: float
) -> Decision:
    alive = [seen for seen in observed.replicas if seen.alive]
    if alive:
        why = verdict.reason or "the trainers are done"
        stops = tuple(
            Stop(seen.key, spec.grace_s, why) for seen in stop_order(alive) if not seen.stopping
        )
        phase = Phase.RUNNING if observed.first_started_at is not None else Phase.STARTING
        status = _status(spec, grant, observed, phase, f"ending: {why}", verdict.failed)
        return Decision(stops, status, ending=True)
    status = _status(spec, grant, observed, verdict.phase, verdict.reason, verdict.failed, now)
    return Decision(
        cleanup.removals(spec.clean, verdict.phase, observed.replicas), status, (verdict.event,)
    )


# --- waiting -------------------------------------------------------------------------------------


def _wait(spec: JobSpec, grant: Grant, observed: Observed) -> Decision:
    alive = [seen for seen in observed.replicas if seen.alive]
    stops = tuple(
        Stop(seen.key, spec.grace_s, grant.reason or "its capacity was taken away")
        for seen in stop_order(alive)
        if not seen.stopping
    )
    phase = Phase.PREEMPTED if alive else Phase.QUEUED
    return Decision(stops, _status(spec, grant, observed, phase, grant.reason))


# --- running -------------------------------------------------------------------------------------


def _run(grant: Grant, run: Run) -> Decision:
    steps = go_on(run)
    deadline = _deadline(run.spec, run.observed)
    if deadline is not None:
        steps.wakes.append(max(0.0, deadline - run.now))
    phase = Phase.RUNNING if steps.ready else Phase.STARTING
    status = _status(run.spec, grant, run.observed, phase, steps.reason)
    wake_after = min(steps.wakes, default=None)
    return Decision(tuple(steps.actions), status, tuple(steps.events), wake_after)


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
