"""Putting the replicas of a job on nodes: all of them, or none.

First-fit decreasing: the largest replicas first, on the first node (by name) with room. Replicas
of one role are alike, so a node takes as many of them as it can in one step and the cost does not
grow with their number. Everything is a tuple of integers here, because this is the inner loop of
the planner; quantities get their names back in `reasons`. Nothing here knows queues or time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from paddlecloud.core.jobspec import JobSpec, Role
from paddlecloud.core.resources import Resources
from paddlecloud.scheduling.snapshot import JobView, Node, Placed

Vector = tuple[int, ...]  # cpu_milli, memory_bytes, gpu
Room = dict[str, Vector]  # what is free on each node, in the order nodes are tried
Held = Mapping[str, Vector]  # what one job holds on each node

RESOURCES = ("cpu", "memory", "gpu")
ANYWHERE: Mapping[Role, frozenset[str]] = {}
UNBOUNDED = 1 << 62


class Batch(NamedTuple):
    """Replicas that are alike."""

    role: Role
    each: Vector
    wanted: int
    where: frozenset[str] | None = None  # the nodes that may take them; None: all


def vector(resources: Resources) -> Vector:
    return (resources.cpu_milli, resources.memory_bytes, resources.gpu)


def plus(a: Vector, b: Vector) -> Vector:
    return tuple(map(int.__add__, a, b))


def minus(a: Vector, b: Vector) -> Vector:
    return tuple(map(int.__sub__, a, b))


def times(a: Vector, count: int) -> Vector:
    return tuple([value * count for value in a])


def smaller(a: Vector, b: Vector) -> Vector:
    return tuple(map(min, a, b))


def covers(have: Vector, need: Vector) -> bool:
    """What is not asked for is never short, even where a node is over-full."""
    for want, got in zip(need, have, strict=True):  # noqa: SIM110 (a generator is slower)
        if want > got and want > 0:
            return False
    return True


def empty_room(nodes: Iterable[Node]) -> Room:
    return {node.name: vector(node.total) for node in sorted(nodes, key=lambda node: node.name)}


def total_of(vectors: Iterable[Vector]) -> Vector:
    total: Vector = (0, 0, 0)
    for each in vectors:
        total = plus(total, each)
    return total


def batches_of(
    spec: JobSpec,
    trainers: int,
    cluster: Vector = (0, 0, 0),
    where: Mapping[Role, frozenset[str]] = ANYWHERE,
) -> tuple[Batch, ...]:
    """The replicas of the job at that size, those that are hardest to place first."""
    batches = []
    for spec_role in spec.roles:
        role, need = spec_role.role, spec_role.resources
        count = trainers if role is Role.TRAINER else spec_role.replicas
        each = (need.cpu_milli, need.memory_bytes, need.gpu)
        batches.append(Batch(role, each, count, where.get(role)))
    if len(batches) > 1:
        batches.sort(key=lambda batch: (-_share(batch.each, cluster), batch.role))
    return tuple(batches)


def resized(batches: Sequence[Batch], trainers: int) -> tuple[Batch, ...]:
    """The same job with another number of trainers."""
    return tuple(
        Batch(role, each, trainers if role is Role.TRAINER else wanted, where)
        for role, each, wanted, where in batches
    )


def total_need(batches: Iterable[Batch]) -> Vector:
    cpu = memory = gpu = 0
    for _, (each_cpu, each_memory, each_gpu), wanted, _ in batches:
        cpu += each_cpu * wanted
        memory += each_memory * wanted
        gpu += each_gpu * wanted
    return (cpu, memory, gpu)


def _share(each: Vector, cluster: Vector) -> float:
    return max(need / max(1, have) for need, have in zip(each, cluster, strict=True))


def copies(each: Vector, have: Vector) -> int:
    """How many replicas of this size a node with that much free takes."""
    most = UNBOUNDED
    for need, got in zip(each, have, strict=True):
        if need > 0:
            if got < need:
                return 0
            most = min(most, got // need)
    return most


def place(batches: Sequence[Batch], room: Room) -> tuple[Placed, ...] | None:
    """Where every replica would go, or None when not all of them fit."""
    used: Room = {}  # the nodes that an earlier batch has taken from
    placed: list[Placed] = []
    for role, each, wanted, where in batches:
        left = wanted
        needs = [(index, need) for index, need in enumerate(each) if need > 0]
        for node, have in room.items():
            if not left:
                break
            if where is not None and node not in where:
                continue
            if used and node in used:
                have = used[node]
            count = left
            for index, need in needs:  # `copies`, without a call for every node
                count = min(count, have[index] // need)
                if count <= 0:
                    break
            else:
                used[node] = minus(have, times(each, count))
                placed.append(Placed(role, node, count))
                left -= count
        if left:
            return None
    return tuple(placed)


def placeable(batches: Sequence[Batch], room: Room) -> int:
    """How many of the replicas fit, largest first: for words about a job that does not fit."""
    free = dict(room)
    fitting = 0
    for _, each, wanted, where in batches:
        left = wanted
        for node, have in free.items():
            if where is not None and node not in where:
                continue
            count = min(left, copies(each, have))
            free[node] = minus(have, times(each, count))
            left -= count
        fitting += wanted - left
    return fitting


def held_in(batches: Iterable[Batch], placed: Iterable[Placed]) -> Held:
    """What the placed replicas hold on each node."""
    each = {batch.role: batch.each for batch in batches}
    held: dict[str, Vector] = {}
    for part in placed:
        need = times(each[part.role], part.count)
        held[part.node] = plus(held[part.node], need) if part.node in held else need
    return held


def held_by(view: JobView, room: Room) -> Held:
    """What a job holds now. Without `placed`, several nodes are filled in order."""
    if view.placed:
        return held_in(batches_of(view.spec, view.granted), view.placed)
    if view.used is not None:
        total = vector(view.used)
    elif view.granted:
        total = vector(view.spec.resources_at(view.granted))
    else:
        return {}
    return {next(iter(room)): total} if len(room) == 1 else _spread(total, room)


def _spread(total: Vector, room: Room) -> Held:
    held: dict[str, Vector] = {}
    for node, have in room.items():
        part = tuple(max(0, min(t, h)) for t, h in zip(total, have, strict=True))
        if any(part):
            held[node] = part
            total = minus(total, part)
    if any(total) and room:  # more than there is: the first node is over-full
        first = next(iter(room))
        held[first] = plus(held.get(first, (0, 0, 0)), total)
    return held


def take(room: Room, held: Held) -> None:
    """A node that is gone takes nothing with it."""
    for node, amount in held.items():
        if node in room:
            room[node] = minus(room[node], amount)


def give(room: Room, held: Held) -> None:
    for node, amount in held.items():
        if node in room:
            room[node] = plus(room[node], amount)
