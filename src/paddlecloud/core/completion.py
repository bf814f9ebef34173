"""When a run is over, per topology, and with which verdict.

A run succeeds when its trainers have; parameter servers, masters and heter workers serve the
trainers, so their own exit decides nothing once the trainers are done. What we stopped ourselves
is neither a success nor a failure. A fault-tolerant job may be done without some of its trainers
(`restart.given_up`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from paddlecloud.core.jobspec import JobSpec, Role
from paddlecloud.core.observed import ReplicaObserved, ReplicaState


def wanted_replicas(spec: JobSpec, trainers: int) -> list[tuple[Role, int]]:
    """(role, index) of every replica of this size, in the order they are started.

    Servers come before trainers: a trainer that starts before its servers listen dies or hangs.
    """
    order = (Role.MASTER, Role.PSERVER, Role.HETER, Role.TRAINER)
    wanted = []
    for role in order:
        role_spec = spec.role(role)
        if role_spec is None:
            continue
        count = trainers if role == Role.TRAINER else role_spec.replicas
        wanted += [(role, index) for index in range(count)]
    return wanted


def latest_attempts(
    replicas: Iterable[ReplicaObserved],
) -> dict[tuple[Role, int], ReplicaObserved]:
    latest: dict[tuple[Role, int], ReplicaObserved] = {}
    for seen in replicas:
        slot = (seen.key.role, seen.key.index)
        if slot not in latest or latest[slot].key.attempt < seen.key.attempt:
            latest[slot] = seen
    return latest


def ended_well(seen: ReplicaObserved) -> bool:
    return (
        seen.state == ReplicaState.ENDED
        and seen.exit is not None
        and seen.exit.ok
        and not seen.stopping
    )


def has_failed(seen: ReplicaObserved) -> bool:
    """Ended badly by itself, or vanished. A replica we stopped has not failed."""
    if seen.state == ReplicaState.LOST:
        return not seen.stopping
    return (
        seen.state == ReplicaState.ENDED
        and not seen.stopping
        and (seen.exit is None or not seen.exit.ok)
    )


def trainers_are_done(
    latest: dict[tuple[Role, int], ReplicaObserved],
    trainers: int,
    without: Container[tuple[Role, int]] = (),
) -> bool:
    slots = [(Role.TRAINER, index) for index in range(trainers)]
    done = [slot for slot in slots if slot in latest and ended_well(latest[slot])]
    return bool(done) and all(slot in done or slot in without for slot in slots)


def first_failure(replicas: Sequence[ReplicaObserved]) -> ReplicaObserved | None:
    """The failure that came first: with peers aborting in its wake, the one to look at."""
    failed = [seen for seen in replicas if has_failed(seen)]
    return min(failed, key=lambda seen: (seen.ended_at or 0.0, seen.key), default=None)
