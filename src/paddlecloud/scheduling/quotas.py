"""The hard limits of an account, as one more room that its jobs must fit into.

A quota is treated like a node on which only the account's own jobs live: what they hold is taken
from it, and a job that waits for it has a reservation there (see `reservations`). So an account
that is over its quota delays itself and nobody else.
"""

from __future__ import annotations

from paddlecloud.core.jobspec import JobSpec, Role
from paddlecloud.scheduling.placement import UNBOUNDED, Batch, Room, Vector, vector
from paddlecloud.scheduling.snapshot import JobView, Quota

LIMITS = ("cpu", "memory", "gpu", "replicas")
_PURSE = "quota"  # the only "node" of a purse


def purse_of(quota: Quota) -> Room:
    """A room of one node with the size of the quota."""
    limits = (quota.cpu_milli, quota.memory_bytes, quota.gpu, quota.replicas)
    return {_PURSE: tuple(UNBOUNDED if limit is None else limit for limit in limits)}


def is_limited(quota: Quota | None) -> bool:
    return quota is not None and quota != Quota()


def claim(spec: JobSpec, trainers: int) -> Vector:
    """What the whole job takes from its account's quota at that size."""
    return (*vector(spec.resources_at(trainers)), spec.replicas_at(trainers))


def claim_batch(spec: JobSpec, trainers: int) -> tuple[Batch, ...]:
    """The claim in the shape `placement.place` takes: one piece, all or nothing."""
    return (Batch(Role.TRAINER, claim(spec, trainers), 1),)


def claim_of(view: JobView, held: Vector) -> Vector:
    """What a job that holds something takes from the quota now."""
    if view.replicas_used is not None:
        replicas = view.replicas_used
    elif view.placed:
        replicas = sum(part.count for part in view.placed)
    else:
        replicas = view.spec.replicas_at(view.granted) if view.granted else 0
    return (*held, replicas)


def in_purse(amount: Vector) -> dict[str, Vector]:
    return {_PURSE: amount}
