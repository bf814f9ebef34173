"""`plan(snapshot)`: who runs now, at which size, where, and why the others wait.

Pure: the same snapshot gives the same plan, in whatever order it lists nodes and jobs, and a plan
that was carried out is not changed by planning again. Callers: the local engine after every
change, `explain` and `--dry-run` on a changed snapshot.

Today a running job keeps its size until it ends or is preempted: a borrower that must give a group
its guarantee back (see `groups`) gets 0 trainers and is back in the queue. The shape of the answer
already is the elastic one: a size in {0} ∪ [min, max] per job, and the nodes that are left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paddlecloud.core.actions import Grant
from paddlecloud.scheduling.admission import admit
from paddlecloud.scheduling.fitting import (
    never_fits,
    never_fits_limit,
    never_fits_pool,
    never_fits_quota,
)
from paddlecloud.scheduling.reasons import Words
from paddlecloud.scheduling.snapshot import JobView, Placed, Snapshot
from paddlecloud.scheduling.verdicts import Verdict

__all__ = [
    "Plan",
    "never_fits",
    "never_fits_limit",
    "never_fits_pool",
    "never_fits_quota",
    "plan",
]


@dataclass(frozen=True, slots=True)
class Plan:
    """`grants` has every job of the snapshot; a job that waits has 0 trainers and a reason."""

    grants: Mapping[str, Grant]
    order: tuple[str, ...]  # the jobs that wait, first in the queue first
    placements: Mapping[str, tuple[Placed, ...]] = field(default_factory=dict)  # of the granted
    victims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # job -> nodes to leave
    waits: Mapping[str, Verdict] = field(default_factory=dict)  # why, for programs
    preempted: Mapping[str, str] = field(default_factory=dict)  # who stops -> for which job


def plan(snapshot: Snapshot) -> Plan:
    outcome = admit(snapshot)
    words = Words(snapshot, outcome)
    grants: dict[str, Grant] = {}
    placements: dict[str, tuple[Placed, ...]] = {}
    owners = outcome.desk.victims
    victims: dict[str, tuple[str, ...]] = {}
    for view in snapshot.jobs:
        if view.job_id in owners:
            reason = words.preempted(view, owners[view.job_id])
            grants[view.job_id] = Grant(0, reason, snapshot.revision)
            victims[view.job_id] = tuple(sorted({part.node for part in view.placed}))
            continue
        verdict = outcome.verdicts.get(view.job_id)
        trainers, placed = view.granted, view.placed
        if verdict is not None:
            trainers, placed = verdict.trainers, verdict.placed
        if trainers and placed:
            placements[view.job_id] = placed
        grants[view.job_id] = Grant(trainers, size_words(view, trainers), snapshot.revision)
    for job in outcome.queue:
        reason = words.reason(job, outcome.verdicts[job.view.job_id])
        grants[job.view.job_id] = Grant(0, reason, snapshot.revision)
    order = tuple(job.view.job_id for job in outcome.queue)
    waits = {job_id: outcome.verdicts[job_id] for job_id in order}
    preempted = {job_id: owner.job_id for job_id, owner in owners.items()}
    return Plan(grants, order, placements, victims, waits, preempted)


def size_words(view: JobView, trainers: int) -> str:
    """Why a job has this size; empty when it has all it asked for."""
    if not trainers or trainers >= (most := view.spec.trainers.max_replicas):
        return ""
    return f"has {trainers} of up to {most} trainers: as many as there was room for at the start"
