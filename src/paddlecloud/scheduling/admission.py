"""Who of those that wait starts now: priority, then age; whole jobs only; nobody is starved.

`admit` goes through the queue in order. A job starts at the largest size that fits, or waits for
one `Cause`. The first job without room becomes the head and gets a reservation; a job that waits
for its account's quota gets one in that quota only. What comes behind starts if it delays no
reservation (see `reservations`). Running jobs keep what they have.

Because a job that starts behind a reservation may change where the next reservation falls, the
queue is gone through again until nothing starts: planning once more changes nothing.

Called by `plan` and `explain`; it decides and gives causes, words are made in `reasons`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from paddlecloud.scheduling.placement import (
    Batch,
    Room,
    Vector,
    batches_of,
    covers,
    empty_room,
    held_by,
    held_in,
    minus,
    place,
    resized,
    smaller,
    take,
    total_need,
    total_of,
)
from paddlecloud.scheduling.quotas import (
    as_batches,
    as_room,
    claim,
    claim_of,
    from_room,
    is_limited,
    purse_of,
)
from paddlecloud.scheduling.reservations import Release, Reservation, begun_at, ends_at, reserve
from paddlecloud.scheduling.snapshot import JobView, Placed, Snapshot


class Cause(StrEnum):
    TOO_BIG = "too_big"  # would not fit the empty cluster
    QUOTA_TOO_SMALL = "quota_too_small"  # would not fit its account's unused quota
    OVER_QUOTA = "over_quota"
    NO_ROOM = "no_room"
    BEHIND = "behind"  # there is room, and it is kept for an earlier job


@dataclass(frozen=True, slots=True)
class Verdict:
    """Starts with so many trainers at these places, or waits for a cause."""

    trainers: int = 0
    placed: tuple[Placed, ...] = ()
    cause: Cause | None = None
    behind: JobView | None = None  # for whom the room is kept


# Most jobs in a long queue wait; their verdicts are alike.
_TOO_BIG = Verdict(cause=Cause.TOO_BIG)
_QUOTA_TOO_SMALL = Verdict(cause=Cause.QUOTA_TOO_SMALL)
_OVER_QUOTA = Verdict(cause=Cause.OVER_QUOTA)
_NO_ROOM = Verdict(cause=Cause.NO_ROOM)


class Applicant:
    """A waiting job with what the desk asks about it again and again, worked out once."""

    __slots__ = ("claim", "ends_at", "least", "most", "need", "smallest", "view")

    def __init__(self, view: JobView, cluster: Vector, now: float) -> None:
        trainers = view.spec.trainers
        self.view = view
        self.smallest = max(1, trainers.min_replicas)
        self.most = max(self.smallest, trainers.max_replicas)
        self.least = batches_of(view.spec, self.smallest, cluster)
        self.need = total_need(self.least)  # at its smallest size, as all that follows
        self.claim = claim(self.least)
        self.ends_at = ends_at(view, now)  # if it starts now

    def batches(self, trainers: int) -> tuple[Batch, ...]:
        return self.least if trainers == self.smallest else resized(self.least, trainers)


def queue_key(view: JobView) -> tuple[int, float, str]:
    return (-view.spec.priority, view.submitted_at, view.job_id)


def is_waiting(view: JobView) -> bool:
    return not view.granted and not view.released


class Desk:
    """What is free, who holds the rest, and for whom room is kept, while the queue is served."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.now = snapshot.now
        self.empty = empty_room(snapshot.nodes)
        self.cluster = total_of(self.empty.values())
        self.room = dict(self.empty)
        self.limits = {
            account: purse_of(quota)
            for account, quota in snapshot.quotas.items()
            if is_limited(quota)
        }
        self.purses = dict(self.limits)  # what is left of them
        self.running: list[Release] = []
        self.head: Reservation | None = None
        self.quota_heads: dict[int, Reservation] = {}
        self.free: Vector = (0, 0, 0)  # the sum of `room`
        self._beside_head: Room | None = None  # `head.limit(room)`, until either changes
        self._count_free()
        holders = [view for view in snapshot.jobs if not is_waiting(view) or view.used]
        for view in sorted(holders, key=lambda view: (begun_at(view), queue_key(view))):
            held = held_by(view, self.room)
            claimed = claim_of(view, total_of(held.values()))
            self._occupy(Release(view, held, claimed, ends_at(view, self.now), begun_at(view)))

    def _occupy(self, release: Release) -> None:
        self.running.append(release)
        take(self.room, release.held)
        account = release.view.account_id
        if account in self.purses:
            self.purses[account] = minus(self.purses[account], release.claim)
        self._count_free()

    def _count_free(self) -> None:
        self._beside_head = None
        # An over-full node takes nothing away from the others.
        self.free = total_of(tuple(max(0, part) for part in free) for free in self.room.values())

    def forget_reservations(self) -> None:
        self.head = None
        self.quota_heads.clear()
        self._beside_head = None

    @property
    def has_reservations(self) -> bool:
        return self.head is not None or bool(self.quota_heads)

    # --- judging ------------------------------------------------------------------------------

    def judge(self, job: Applicant) -> Verdict:
        """What becomes of this job if it is next; changes nothing."""
        has_room = covers(self.free, job.need) and place(job.least, self.room) is not None
        if not has_room and self._is_too_big(job):
            return _TOO_BIG
        account = job.view.account_id
        if account in self.purses and not covers(self.purses[account], job.claim):
            if not covers(self.limits[account], job.claim):
                return _QUOTA_TOO_SMALL
            return _OVER_QUOTA
        return self._judge_beside_reservations(job) if has_room else _NO_ROOM

    def _is_too_big(self, job: Applicant) -> bool:
        if not covers(self.cluster, job.need):
            return True
        return len(self.empty) != 1 and place(job.least, self.empty) is None

    def _judge_beside_reservations(self, job: Applicant) -> Verdict:
        room = self.room
        if self.head is not None and self._must_respect(self.head, job):
            room = self._room_beside(self.head)
            if place(job.least, room) is None:
                return Verdict(cause=Cause.BEHIND, behind=self.head.owner)
        purse = self.purses.get(job.view.account_id)
        quota_head = self.quota_heads.get(job.view.account_id)
        if purse is not None and quota_head is not None and self._must_respect(quota_head, job):
            purse = smaller(purse, from_room(quota_head.left))
            if not covers(purse, job.claim):
                return Verdict(cause=Cause.BEHIND, behind=quota_head.owner)
        trainers = _largest(job.smallest, job.most, lambda size: _fits(job, size, room, purse))
        return Verdict(trainers, place(job.batches(trainers), room) or ())

    @staticmethod
    def _must_respect(reservation: Reservation, job: Applicant) -> bool:
        return not reservation.is_over_by(job.ends_at)

    def _room_beside(self, head: Reservation) -> Room:
        if self._beside_head is None:
            self._beside_head = head.limit(self.room)
        return self._beside_head

    # --- acting on a verdict --------------------------------------------------------------------

    def settle(self, job: Applicant, verdict: Verdict) -> None:
        """Let the job start, or keep room for it if it is the first to wait."""
        if verdict.trainers:
            self._start(job, verdict)
        elif verdict.cause == Cause.OVER_QUOTA:
            self._reserve_quota(job)
        elif verdict.cause == Cause.NO_ROOM and self.head is None:
            self._reserve_room(job)

    def _start(self, job: Applicant, verdict: Verdict) -> None:
        batches = job.batches(verdict.trainers)
        held, claimed = held_in(batches, verdict.placed), claim(batches)
        self._occupy(Release(job.view, held, claimed, job.ends_at, math.inf))
        if self.head is not None and self._must_respect(self.head, job):
            take(self.head.left, held)
        quota_head = self.quota_heads.get(job.view.account_id)
        if quota_head is not None and self._must_respect(quota_head, job):
            take(quota_head.left, as_room(claimed))

    def _reserve_room(self, job: Applicant) -> None:
        rows = ((release, release.held) for release in self.running)
        self.head = reserve(job.view, job.least, self.room, rows, self.now)
        self._beside_head = None
        # Its own account's later jobs must not use up the quota it will need.
        account = job.view.account_id
        if account in self.purses and account not in self.quota_heads:
            left = as_room(minus(self.purses[account], job.claim))
            self.quota_heads[account] = Reservation(job.view, self.head.starts_at, left)

    def _reserve_quota(self, job: Applicant) -> None:
        account = job.view.account_id
        if account in self.quota_heads:
            return
        rows = (
            (release, as_room(release.claim))
            for release in self.running
            if release.view.account_id == account
        )
        purse = as_room(self.purses[account])
        self.quota_heads[account] = reserve(job.view, as_batches(job.claim), purse, rows, self.now)


def _fits(job: Applicant, trainers: int, room: Room, purse: Vector | None) -> bool:
    batches = job.batches(trainers)
    if purse is not None and not covers(purse, claim(batches)):
        return False
    return place(batches, room) is not None


def _largest(least: int, most: int, fits: Callable[[int], bool]) -> int:
    """The largest size that fits, given that `least` does and that smaller is easier."""
    if least == most or fits(most):
        return most
    while most - least > 1:
        middle = (least + most) // 2
        if fits(middle):
            least = middle
        else:
            most = middle
    return least


@dataclass(slots=True)
class Admission:
    """The outcome: a verdict for every waiting job, those that start included."""

    desk: Desk
    queue: list[Applicant]  # those that still wait, in order
    verdicts: dict[str, Verdict] = field(default_factory=dict)


def admit(snapshot: Snapshot) -> Admission:
    desk = Desk(snapshot)
    waiting = sorted((view for view in snapshot.jobs if is_waiting(view)), key=queue_key)
    queue = [Applicant(view, desk.cluster, desk.now) for view in waiting]
    outcome = Admission(desk, queue)
    while _serve(outcome):
        pass
    return outcome


def _serve(outcome: Admission) -> bool:
    """Go through the queue once; whether reservations may have moved by it."""
    desk, still = outcome.desk, []
    desk.forget_reservations()
    moved = False
    for job in outcome.queue:
        verdict = desk.judge(job)
        outcome.verdicts[job.view.job_id] = verdict
        moved = moved or (verdict.trainers > 0 and desk.has_reservations)
        desk.settle(job, verdict)
        if not verdict.trainers:
            still.append(job)
    outcome.queue = still
    return moved


def keep_room_for(desk: Desk, ahead: Iterable[tuple[Applicant, Verdict]]) -> None:
    """Bring a desk to the moment after these waiting jobs, for questions about the next one.

    They must be the first of a queue that was gone through; then their verdicts still hold.
    """
    desk.forget_reservations()
    for job, verdict in ahead:
        desk.settle(job, verdict)
