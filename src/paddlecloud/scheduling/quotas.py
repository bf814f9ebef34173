"""The hard limits of an account, as one more room that its jobs must fit into.

A quota is treated like a node on which only the account's own jobs live: what they hold is taken
from it, and a job that waits for it has a reservation there (see `reservations`). So an account
that is over its quota delays itself and nobody else.
"""

from __future__ import annotations

from paddlecloud.core.jobspec import Role
from paddlecloud.scheduling.placement import UNBOUNDED, Batch, Room, Vector, total_need
from paddlecloud.scheduling.snapshot import JobView, Quota

LIMITS = ("cpu", "memory", "gpu", "replicas")
_PURSE = "quota"  # the only "node" of the room


def purse_of(quota: Quota) -> Vector:
    """The limits; what has none is as good as endless."""
    limits = (quota.cpu_milli, quota.memory_bytes, quota.gpu, quota.replicas)
    return tuple(UNBOUNDED if limit is None else limit for limit in limits)


def is_limited(quota: Quota) -> bool:
    return quota != Quota()


def claim(batches: tuple[Batch, ...]) -> Vector:
    """What a whole job takes from its account's quota."""
    return (*total_need(batches), sum(batch.wanted for batch in batches))


def claim_of(view: JobView, held: Vector) -> Vector:
    """What a job that holds something takes from the quota now."""
    if view.replicas_used is not None:
        replicas = view.replicas_used
    elif view.placed:
        replicas = sum(part.count for part in view.placed)
    else:
        replicas = view.spec.replicas_at(view.granted) if view.granted else 0
    return (*held, replicas)


def as_room(purse: Vector) -> Room:
    """The shapes that reservations work on: a room of one node ..."""
    return {_PURSE: purse}


def as_batches(claimed: Vector) -> tuple[Batch, ...]:
    """... and a job of one piece."""
    return (Batch(Role.TRAINER, claimed, 1),)


def from_room(room: Room) -> Vector:
    return room[_PURSE]
