"""Who of those that wait starts now: in the order of `ordering`; whole jobs only; nobody starves.

`admit` goes through the queue in order. A job starts at the largest size that fits, or waits for
one `Cause`. The first job without room becomes the head and gets a reservation; a job that waits
for its account's quota or its group's limit gets one in that only, and the first of a group that
waits for room one that binds its own group. What comes behind starts if it delays no reservation
(see `reservations`). Running jobs keep what they have, except borrowers of what a job within its
group's guarantee waits for: they are named to stop (see `groups`, `reclaiming`), and until they
have, nobody else gets what they leave.

Because a job that starts behind a reservation may change where the next reservation falls, and
every start changes its group's share, the queue is gone through again until nothing starts:
planning once more changes nothing.

Called by `plan` and `explain`; it decides and gives causes, words are made in `reasons`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from paddlecloud.scheduling.desk import Desk
from paddlecloud.scheduling.ordering import put_in_order
from paddlecloud.scheduling.snapshot import Snapshot
from paddlecloud.scheduling.verdicts import Applicant, Verdict, is_waiting


@dataclass(slots=True)
class Admission:
    """The outcome: a verdict for every waiting job, those that start included."""

    desk: Desk
    queue: list[Applicant]  # those that still wait, in order
    verdicts: dict[str, Verdict] = field(default_factory=dict)


def admit(snapshot: Snapshot) -> Admission:
    desk = Desk(snapshot)
    waiting = (view for view in snapshot.jobs if is_waiting(view))
    queue = [Applicant(view, desk.cluster, desk.now) for view in waiting]
    outcome = Admission(desk, put_in_order(queue, desk.groups))
    while _serve(outcome):
        pass
    return outcome


def _serve(outcome: Admission) -> bool:
    """Go through the queue once; whether reservations may have moved by it."""
    desk, still = outcome.desk, []
    desk.forget_reservations()
    moved = False
    owed = sum(job.is_guaranteed for job in outcome.queue)
    for job in outcome.queue:
        owed -= job.is_guaranteed
        desk.others_are_owed = owed > 0
        verdict = desk.judge(job)
        outcome.verdicts[job.view.job_id] = verdict
        moved = moved or (verdict.trainers > 0 and desk.is_order_moved)
        desk.settle(job, verdict)
        if not verdict.trainers:
            still.append(job)
    # Every start changes what its group holds, and so whose turn is next.
    outcome.queue = put_in_order(still, desk.groups) if moved and desk.groups.exist else still
    return moved


def keep_room_for(desk: Desk, ahead: Iterable[tuple[Applicant, Verdict]]) -> None:
    """Bring a desk to the moment after these waiting jobs, for questions about the next one.

    They must be the first of a queue that was gone through; then their verdicts still hold.
    """
    desk.forget_reservations()
    for job, verdict in ahead:
        desk.settle(job, verdict)
