"""The order in which waiting jobs are served: the one queue that `explain` counts places in.

Jobs within their group's guarantee come first, and of these those that may not be preempted: who
was stopped for another must not be first again. Then by priority; then those of the group with the
smallest share beyond its guarantee (see `groups`), where every job that comes earlier counts as if
it ran already, so that groups take turns by weight; then by age. Within one group and priority it
is age alone. The order of the input changes nothing. Without groups it is priority and age.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from paddlecloud.scheduling.groups import Groups
from paddlecloud.scheduling.placement import Vector, plus
from paddlecloud.scheduling.snapshot import JobView

Rank = tuple[int, int, float, float, str]


class Waiting(Protocol):
    view: JobView
    claim: Vector
    is_guaranteed: bool
    rank: Rank


W = TypeVar("W", bound=Waiting)


def queue_key(view: JobView) -> tuple[int, float, str]:
    return (-view.spec.priority, view.submitted_at, view.job_id)


def rank(job: Waiting, share: float) -> Rank:
    priority, age, job_id = queue_key(job.view)
    return (_standing(job), priority, share, age, job_id)


def _standing(job: Waiting) -> int:
    if not job.is_guaranteed:
        return 2
    return 1 if job.view.spec.may_borrow else 0


def put_in_order(queue: Iterable[W], groups: Groups) -> list[W]:
    by_age = sorted(queue, key=lambda job: queue_key(job.view))
    if not groups.exist:
        for job in by_age:
            job.rank = rank(job, 0.0)
        return by_age
    lines: dict[str, list[W]] = {}
    for job in by_age:
        lines.setdefault(job.view.group, []).append(job)
    for name, line in lines.items():
        _mark_guaranteed(name, line, groups)
        line.sort(key=_standing)  # stable
    return _take_turns(lines, groups)


def _mark_guaranteed(name: str, line: Sequence[Waiting], groups: Groups) -> None:
    """From the front, as far as the guarantee reaches: what comes behind the first that it does
    not cover must not use it up, or that one would wait for ever. Jobs that may not be preempted
    come before all others: else one would be stopped for them, and be first again afterwards."""
    firm, held, reaches = groups.firm(name), groups.held(name), True
    for job in line:
        job.is_guaranteed = False
        if not job.view.spec.may_borrow and not job.view.is_leaving:
            reaches = reaches and groups.is_within(name, firm, job.claim, strictly=False)
            job.is_guaranteed = reaches
            firm = plus(firm, job.claim)
            held = plus(held, job.claim) if reaches else held
    reaches = True
    for job in line:
        if not job.view.spec.may_borrow:
            reaches = reaches and (job.is_guaranteed or job.view.is_leaving)
            continue
        reaches = reaches and groups.is_within(name, held, job.claim, strictly=True)
        job.is_guaranteed = reaches and not job.view.is_leaving
        held = plus(held, job.claim)


def _take_turns(lines: dict[str, list[W]], groups: Groups) -> list[W]:
    held = {name: groups.held(name) for name in lines}
    heap: list[tuple[Rank, str, int]] = []

    def enter(name: str, index: int) -> None:
        if index < len(lines[name]):
            job = lines[name][index]
            job.rank = rank(job, groups.share(name, held[name]))
            heapq.heappush(heap, (job.rank, name, index))

    for name in lines:
        enter(name, 0)
    ordered = []
    while heap:
        _, name, index = heapq.heappop(heap)
        job = lines[name][index]
        ordered.append(job)
        held[name] = plus(held[name], job.claim)
        enter(name, index + 1)
    return ordered
