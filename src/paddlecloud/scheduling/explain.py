"""Why a job waits, when it may start, and the cheapest change that starts it sooner.

`explain` answers from the same `admit` that plans, on the snapshot as it is and on snapshots in
which one thing about the job is different. Called by engines for `paddlecloud explain`.
"""

from __future__ import annotations

from paddlecloud.scheduling.admission import Admission, admit
from paddlecloud.scheduling.amounts import needs, replicas
from paddlecloud.scheduling.explanation import (
    Blocker,
    Explanation,
    Holder,
    Remedy,
    from_json,
    to_json,
)
from paddlecloud.scheduling.fitting import smallest
from paddlecloud.scheduling.placement import RESOURCES, vector
from paddlecloud.scheduling.reasons import Words
from paddlecloud.scheduling.snapshot import JobView, Snapshot

__all__ = ["Blocker", "Explanation", "Holder", "Remedy", "explain", "from_json", "to_json"]


def explain(snapshot: Snapshot, job_id: str) -> Explanation | None:
    """None if the job does not wait (it is unknown, runs, ends, or starts with this plan)."""
    outcome = admit(snapshot)
    index = _position(outcome, job_id)
    if index is None:
        return None
    view, verdict = outcome.queue[index].view, outcome.verdicts[job_id]
    words = Words(snapshot, outcome)
    return Explanation(
        position=index + 1,
        queue_length=len(outcome.queue),
        needs=_needs(view),
        reason=words.reason(view, verdict),
        blockers=words.blockers(view, verdict),
    )


def _position(outcome: Admission, job_id: str) -> int | None:
    ids = [job.view.job_id for job in outcome.queue]
    return ids.index(job_id) if job_id in ids else None


def _needs(view: JobView) -> str:
    least = smallest(view.spec)
    total = vector(view.spec.resources_at(least))
    words = f"{needs(total, RESOURCES)} for {replicas(view.spec, least)}"
    return f"{words}, all at once" if view.spec.replicas_at(least) > 1 else words
