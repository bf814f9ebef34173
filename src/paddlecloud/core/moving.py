"""Moving replicas off hosts: which attempts are ordered away, and what that does to their peers.

An order names one attempt, so it is spent when the next one exists. A trainer moves alone; a
server or a master takes what it holds with it, so everybody starts again beside it. Peers that
fail because they lost a moved one cost nothing of the restart budget. Asked by `lifecycle` and
`restart`; it decides nothing by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from paddlecloud.core.jobspec import JobSpec, Mode, Role
from paddlecloud.core.observed import Move, ReplicaObserved

# How long after a move a peer's end is still taken for its consequence: connections are given up
# after minutes at the latest.
WAKE_S = 600.0

Slot = tuple[Role, int]


def ordered_away(moves: Iterable[Move], latest: Mapping[Slot, ReplicaObserved]) -> dict[Slot, Move]:
    """The replicas whose current attempt is to go, or has been stopped for that.

    One that ended by itself before it was asked to needs no move.
    """
    found = {}
    for move in moves:
        seen = latest.get((move.role, move.index))
        if seen is None or seen.key.attempt != move.attempt:
            continue
        if seen.alive or seen.stopping:
            found[(move.role, move.index)] = move
    return found


def takes_all_along(spec: JobSpec, role: Role) -> bool:
    return spec.mode in (Mode.PS, Mode.HETER) and role != Role.TRAINER


def is_in_the_wake(spec: JobSpec, failed: ReplicaObserved, moves: Iterable[Move]) -> bool:
    """Whether it failed after a peer had been moved that it was running with."""
    if failed.started_at is None or failed.ended_at is None:
        return False
    mine = (failed.key.role, failed.key.index)
    return any(
        (move.role, move.index) != mine
        and not _is_missed_by_nobody(spec, move.role)
        and failed.started_at <= move.at <= failed.ended_at <= move.at + WAKE_S
        for move in moves
    )


def _is_missed_by_nobody(spec: JobSpec, role: Role) -> bool:
    return spec.mode == Mode.PS and role == Role.TRAINER
