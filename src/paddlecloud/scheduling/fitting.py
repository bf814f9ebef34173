"""What can never run here, told at submit with the numbers instead of waiting for ever.

Asked by an engine's `check` and, for jobs that are queued already (a node or a quota may shrink),
by the reasons of the plan. A job is judged at its smallest size, on the empty cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from paddlecloud.core.errors import Fault
from paddlecloud.core.jobspec import JobSpec, Role
from paddlecloud.scheduling.amounts import amount, quantity, replicas
from paddlecloud.scheduling.groups import Groups
from paddlecloud.scheduling.placement import (
    RESOURCES,
    batches_of,
    empty_room,
    place,
    placeable,
    total_of,
    vector,
)
from paddlecloud.scheduling.quotas import LIMITS, claim, purse_of
from paddlecloud.scheduling.snapshot import Group, JobView, Node, Quota

_FIELDS = {Role.TRAINER: "", Role.PSERVER: "ps"}


@dataclass(frozen=True, slots=True)
class Misfit:
    """One reason why a job can never start: for a fault, or for a sentence."""

    field: str
    problem: str  # "64 trainers need 64 cpu together, the cluster has 8"
    value: str
    sentence: str  # "needs 64 cpu, the cluster has 8"

    def to_fault(self) -> Fault:
        return Fault(self.field, self.problem, self.value)


def never_fits(spec: JobSpec, nodes: Iterable[Node]) -> list[Fault]:
    """Why the job cannot start even on these nodes when nothing else runs; empty if it can."""
    return [misfit.to_fault() for misfit in misfits(spec, nodes)]


def never_fits_quota(spec: JobSpec, quota: Quota) -> list[Fault]:
    """Why the job cannot start even if it is the account's only one; empty if it can."""
    return [misfit.to_fault() for misfit in quota_misfits(spec, quota)]


def smallest(spec: JobSpec) -> int:
    return max(1, spec.trainers.min_replicas)


def misfits(spec: JobSpec, nodes: Iterable[Node]) -> list[Misfit]:
    nodes = tuple(nodes)
    room = empty_room(nodes)
    cluster = total_of(room.values())
    batches = batches_of(spec, smallest(spec), cluster)
    if place(batches, room) is not None:
        return []
    found = [*_too_big_alone(spec, nodes)]
    found += _too_big_together(spec, nodes, {misfit.field for misfit in found})
    if not found:
        wanted = sum(batch.wanted for batch in batches)
        fitting = placeable(batches, room)
        sizes = ", ".join(
            f"{quantity(name, value, up=True)} for a {batch.role.value}"
            for batch in batches
            for name, value in zip(RESOURCES, batch.each, strict=True)
            if value
        )
        problem = (
            f"only {fitting} of the {wanted} replicas fit on the {len(room)} nodes "
            f"when they are empty ({sizes})"
        )
        found.append(Misfit("parallelism", problem, str(smallest(spec)), problem))
    return found


def _too_big_alone(spec: JobSpec, nodes: tuple[Node, ...]) -> Iterator[Misfit]:
    """Replicas that no single node could hold."""
    where = "the cluster has" if len(nodes) <= 1 else "the largest node has"
    for role in spec.roles:
        if role.role != Role.TRAINER and not role.replicas:
            continue
        for index, (name, need) in enumerate(zip(RESOURCES, vector(role.resources), strict=True)):
            most = max((vector(node.total)[index] for node in nodes), default=0)
            if need > most:
                field = f"{_FIELDS.get(role.role, role.role.value + ' ')}{name}"
                sentence = (
                    f"a {role.role.value} needs {quantity(name, need, up=True)}, "
                    f"{where} {amount(name, most)}"
                )
                yield Misfit(field, sentence, amount(name, need, up=True), sentence)


def _too_big_together(spec: JobSpec, nodes: tuple[Node, ...], said: set[str]) -> Iterator[Misfit]:
    trainers = smallest(spec)
    cluster = total_of(vector(node.total) for node in nodes)
    total = vector(spec.resources_at(trainers))
    for name, need, have in zip(RESOURCES, total, cluster, strict=True):
        if need > have and not any(field.endswith(name) for field in said):
            both = f"{quantity(name, need, up=True)}, the cluster has {amount(name, have)}"
            together = f"{replicas(spec, trainers)} together need {both}"
            yield Misfit(name, together, amount(name, need, up=True), f"needs {both}")


def never_fits_limit(spec: JobSpec, group: Group) -> list[Fault]:
    """Why the job cannot start even if it is its group's only one; empty if it can."""
    return [misfit.to_fault() for misfit in limit_misfits(spec, group)]


def never_fits_pool(
    spec: JobSpec, groups: Mapping[str, Group], nodes: Iterable[Node]
) -> list[Fault]:
    """Why the job could start only on what other groups are guaranteed; empty if it can."""
    return [misfit.to_fault() for misfit in pool_misfits(spec, groups, nodes)]


def limit_misfits(spec: JobSpec, group: Group) -> list[Misfit]:
    return quota_misfits(spec, group.limit, f"the limit of group {group.name}")


def pool_misfits(spec: JobSpec, groups: Mapping[str, Group], nodes: Iterable[Node]) -> list[Misfit]:
    trainers = smallest(spec)
    claimed = claim(batches_of(spec, trainers))
    books = Groups(groups, total_of(vector(node.total) for node in nodes))
    view = JobView("", spec, 0, "", 0.0)
    short = books.pool_shortage(view, claimed, when_empty=True)
    found = []
    for index, name in enumerate(RESOURCES):
        if short[index]:
            need = quantity(name, claimed[index], up=True)
            own = amount(name, books.guarantee(spec.group)[index])
            pool = amount(name, books.whole_pool[index])
            words = (
                f"{need}: its group is guaranteed {own}, no group is guaranteed {pool}, and the "
                "rest is only for jobs that may be preempted (--may-borrow)"
            )
            together = f"{replicas(spec, trainers)} together need {words}"
            value = amount(name, claimed[index], up=True)
            found.append(Misfit(name, together, value, f"needs {words}"))
    return found


def quota_misfits(spec: JobSpec, quota: Quota, whose: str = "your quota") -> list[Misfit]:
    trainers = smallest(spec)
    claimed = claim(batches_of(spec, trainers))
    found = []
    for name, need, limit in zip(LIMITS, claimed, purse_of(quota), strict=True):
        if need > limit:
            both = f"{quantity(name, need, up=True)}, {whose} is {amount(name, limit)}"
            together = f"{replicas(spec, trainers)} together need {both}"
            field = "parallelism" if name == "replicas" else name
            found.append(Misfit(field, together, amount(name, need, up=True), f"needs {both}"))
    return found
