"""Who is started again after a failure: alone or with everybody, how often, and when.

Collective, heter and single jobs restart as a gang: ranks that lost a peer cannot go on. In a
parameter-server job a trainer restarts alone, since its peers only share the servers; a lost
server takes its shard of the model with it, so then everybody restarts. One budget per run counts
incidents: several ranks of a gang dying of one cause are one incident, and what a user's order to
move a replica brings about (`moving`) is none.

A fault-tolerant job with parameter servers goes on while one of its trainers lives: a trainer that
may not be started again is given up, and costs the job nothing but its share of the work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paddlecloud.core.completion import has_failed, latest_attempts
from paddlecloud.core.jobspec import JobSpec, Mode, RestartRule, Role
from paddlecloud.core.moving import is_in_the_wake
from paddlecloud.core.observed import Move, ReplicaKey, ReplicaObserved


def restarts_alone(spec: JobSpec, role: Role) -> bool:
    return spec.mode == Mode.PS and role == Role.TRAINER


def joins_trained_servers(key: ReplicaKey, replicas: Iterable[ReplicaObserved]) -> bool:
    """Whether this is trainer 0 that comes back to servers that kept the model.

    Paddle's trainer 0 pushes its fresh initial values when it starts, over what everybody has
    trained; TEST_MODE makes it leave the servers alone.
    """
    is_first_again = key.role == Role.TRAINER and key.index == 0 and key.attempt > 1
    return is_first_again and any(
        seen.alive and seen.key.role == Role.PSERVER and seen.key.attempt < key.attempt
        for seen in replicas
    )


def may_retry(rule: RestartRule, failed: ReplicaObserved) -> bool:
    """Whether this kind of exit is one the user wants retried."""
    if not rule.exit_codes:
        return True
    return failed.exit is not None and failed.exit.code in rule.exit_codes


def incidents(
    spec: JobSpec, replicas: Iterable[ReplicaObserved], moves: Sequence[Move] = ()
) -> int:
    """Failures that cost, or will cost, a restart: the budget's measure."""
    rounds: set[int] = set()
    alone = 0
    for seen in _counted(spec, replicas, moves):
        if restarts_alone(spec, seen.key.role):
            alone += 1
        else:
            rounds.add(seen.key.attempt)
    return alone + len(rounds)


def _counted(
    spec: JobSpec, replicas: Iterable[ReplicaObserved], moves: Sequence[Move]
) -> list[ReplicaObserved]:
    return [seen for seen in replicas if has_failed(seen) and not is_in_the_wake(spec, seen, moves)]


def backoff_s(rule: RestartRule, incident: int) -> float:
    """How long to wait before the restart that follows incident 1, 2, ..."""
    exponent = min(max(incident - 1, 0), 30)
    return float(min(rule.backoff_cap_s, rule.backoff_s * 2**exponent))


def fatal(
    spec: JobSpec, replicas: Sequence[ReplicaObserved], moves: Sequence[Move] = ()
) -> ReplicaObserved | None:
    """The failure that ends the run: not to be retried, or one more than the budget allows."""
    failed = _in_order(_counted(spec, replicas, moves))
    if spec.fault_tolerant:
        serving = [n for n, seen in enumerate(failed, start=1) if not _is_spare(spec, seen)]
        failed = failed[: max(serving, default=0)]  # what came after only cost trainers
    for seen in failed:
        if not may_retry(spec.restart, seen) and not _is_spare(spec, seen):
            return seen
    if failed and incidents(spec, failed) > spec.restart.max_restarts:
        last = failed[-1]
        if restarts_alone(spec, last.key.role):
            return last
        # Peers abort in the wake of the first: name the one that started it.
        return next(seen for seen in failed if seen.key.attempt == last.key.attempt)
    return None


def given_up(
    spec: JobSpec, replicas: Sequence[ReplicaObserved], moves: Sequence[Move] = ()
) -> frozenset[tuple[Role, int]]:
    """The trainers a fault-tolerant job goes on without: not to be retried, or beyond the budget.

    Failures are answered in the order they happened, so one that was answered stays answered.
    """
    if not spec.fault_tolerant:
        return frozenset()
    latest, found = latest_attempts(replicas), set()
    failed = _in_order(_counted(spec, replicas, moves))
    for number, seen in enumerate(failed, start=1):
        slot = (seen.key.role, seen.key.index)
        if not _is_spare(spec, seen) or latest[slot].key != seen.key:
            continue
        is_beyond = incidents(spec, failed[:number]) > spec.restart.max_restarts
        if is_beyond or not may_retry(spec.restart, seen):
            found.add(slot)
    return frozenset(found)


def _is_spare(spec: JobSpec, seen: ReplicaObserved) -> bool:
    return spec.fault_tolerant and restarts_alone(spec, seen.key.role)


def _in_order(failed: Iterable[ReplicaObserved]) -> list[ReplicaObserved]:
    return sorted(failed, key=lambda seen: (seen.ended_at or 0.0, seen.key))


def restarts_used(
    spec: JobSpec, replicas: Sequence[ReplicaObserved], moves: Sequence[Move] = ()
) -> int:
    """Incidents answered by a restart: all but the one that ended the run."""
    answered = incidents(spec, replicas, moves) - (fatal(spec, replicas, moves) is not None)
    # Trainers that restart alone may fail together, one of them beyond the budget.
    return min(answered, spec.restart.max_restarts)
