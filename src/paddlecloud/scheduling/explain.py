"""Why a job waits, when it may start, and the cheapest change that starts it sooner.

`explain` answers from the same admission that plans: once on the snapshot as it is, then on the
desk that plan left, with one thing about the job changed. Called by engines for
`paddlecloud explain`; `would_start` answers `submit --dry-run=server`. Both only ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from paddlecloud.core.actions import Grant
from paddlecloud.core.jobspec import JobSpec, Priority
from paddlecloud.scheduling.admission import admit, keep_room_for
from paddlecloud.scheduling.amounts import needs, quantity, replicas
from paddlecloud.scheduling.estimates import estimate
from paddlecloud.scheduling.explanation import (
    Blocker,
    Explanation,
    Holder,
    Remedy,
    from_json,
    to_json,
)
from paddlecloud.scheduling.placement import RESOURCES
from paddlecloud.scheduling.plan import plan
from paddlecloud.scheduling.reasons import Words
from paddlecloud.scheduling.remedies import Case, remedies
from paddlecloud.scheduling.snapshot import JobView, Snapshot
from paddlecloud.scheduling.verdicts import Applicant, Verdict, is_waiting

__all__ = [
    "Blocker",
    "Explanation",
    "Holder",
    "Remedy",
    "explain",
    "from_json",
    "to_json",
    "would_start",
]

_AHEAD_TOLD = 10
_LAST_ID = "\U0010ffff"  # sorts behind every real id


def explain(snapshot: Snapshot, job_id: str) -> Explanation | None:
    """None if the job does not wait: it is unknown, runs, is being ended, or may start now."""
    if not any(view.job_id == job_id and is_waiting(view) for view in snapshot.jobs):
        return None
    outcome = admit(snapshot)
    index = next((i for i, job in enumerate(outcome.queue) if job.view.job_id == job_id), None)
    if index is None:
        return None
    job, verdict = outcome.queue[index], outcome.verdicts[job_id]
    ahead = [(other, outcome.verdicts[other.view.job_id]) for other in outcome.queue[:index]]
    words = Words(snapshot, outcome)
    blockers = words.blockers(job, verdict)
    start = estimate(outcome.desk, job, verdict, ahead, words)
    stands, rule = words.group_stands(job.view), words.rule(job, verdict)
    keep_room_for(outcome.desk, ahead)
    return Explanation(
        position=index + 1,
        queue_length=len(outcome.queue),
        needs=_needs(job),
        reason=words.reason(job, verdict),
        blockers=blockers,
        ahead=_ahead(ahead, job.view, blockers, words),
        start_earliest_s=start.earliest_s,
        start_latest_s=start.latest_s,
        start_basis=start.basis,
        remedies=remedies(Case(outcome.desk, job, verdict, ahead, words)),
        group=job.view.group,
        group_stands=stands,
        rule=rule,
    )


def would_start(snapshot: Snapshot, spec: JobSpec, account_id: int, account: str = "") -> Grant:
    """What the plan would say if this job were submitted now."""
    view = JobView(_LAST_ID, spec, account_id, account, submitted_at=snapshot.now)
    return plan(replace(snapshot, jobs=(*snapshot.jobs, view))).grants[_LAST_ID]


def _needs(job: Applicant) -> str:
    spec = job.view.spec
    words = f"{needs(job.need, RESOURCES)} for {replicas(spec, job.smallest)}"
    if spec.replicas_at(job.smallest) > 1:
        words += ", all at once"
    if job.most > job.smallest:
        words += f" (up to {job.most} trainers if there is room)"
    return words


def _ahead(
    ahead: Sequence[tuple[Applicant, Verdict]],
    reader: JobView,
    blockers: Sequence[Blocker],
    words: Words,
) -> tuple[str, ...]:
    """`nightly (bob, priority high, needs 6 cpu)`, the first few."""
    contested = {blocker.resource for blocker in blockers} | {"cpu", "gpu"}
    told = []
    for other, _ in ahead[:_AHEAD_TOLD]:
        view = other.view
        facts = [view.account] if words.may_name(view, reader) else []
        if other.is_guaranteed:
            facts.append(f"guaranteed to group {view.group}")
        if view.spec.priority != Priority.NORMAL:
            facts.append(f"priority {view.spec.priority.word}")
        wanted = [
            quantity(name, need, up=True)
            for name, need in zip(RESOURCES, other.need, strict=True)
            if need and name in contested
        ]
        if wanted:
            facts.append(f"needs {', '.join(wanted)}")
        name = words.name(view, reader)
        told.append(f"{name} ({', '.join(facts)})" if facts else name)
    return tuple(told)
