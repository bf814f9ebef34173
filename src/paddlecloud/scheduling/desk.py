"""The desk at which the queue is served: what is free, who holds the rest, for whom room is kept.

`judge` says what becomes of a job if it is next and changes nothing; `settle` acts on it. Called by
`admission` for one job after the other, and by `explain` with one thing about a job changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from paddlecloud.scheduling.groups import Groups
from paddlecloud.scheduling.ordering import queue_key
from paddlecloud.scheduling.placement import (
    Batch,
    Room,
    Vector,
    covers,
    empty_room,
    give,
    held_by,
    held_in,
    minus,
    place,
    plus,
    smaller,
    take,
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
from paddlecloud.scheduling.reclaiming import borrowers, choose
from paddlecloud.scheduling.reservations import Release, Reservation, begun_at, ends_at, reserve
from paddlecloud.scheduling.snapshot import JobView, Snapshot
from paddlecloud.scheduling.verdicts import PLAIN, Applicant, Cause, Purse, Verdict, is_waiting

Batches = tuple[Batch, ...]


class Desk:
    def __init__(self, snapshot: Snapshot) -> None:
        self.now = snapshot.now
        self.empty = empty_room(snapshot.nodes)
        self.cluster = total_of(self.empty.values())
        self.room = dict(self.empty)
        self.groups = Groups(snapshot.groups, self.cluster)
        self.limits: dict[Purse, Vector] = {
            account: purse_of(quota)
            for account, quota in snapshot.quotas.items()
            if is_limited(quota)
        }
        for group in snapshot.groups.values():
            if is_limited(group.limit):
                self.limits[group.name] = purse_of(group.limit)
        self.purses = dict(self.limits)  # what is left of them
        self.others_are_owed = False  # whether jobs within their guarantee are still to be served
        self.running: list[Release] = []
        self.free: Vector = (0, 0, 0)  # the sum of `room`
        self._beside_head: Room | None = None  # `head.limit(room)`, until either changes
        self._open_room: Room | None = None  # what is free and promised to nobody
        self._fits_empty: dict[Batches, bool] = {}
        self.forget_reservations()
        holders = [view for view in snapshot.jobs if not is_waiting(view) or view.is_leaving]
        for view in sorted(holders, key=lambda view: (begun_at(view), queue_key(view))):
            held = held_by(view, self.room)
            claimed = claim_of(view, total_of(held.values()))
            self._occupy(Release(view, held, claimed, ends_at(view, self.now), begun_at(view)))
        self.free = total_of(map(_at_least_nothing, self.room.values()))

    def _occupy(self, release: Release) -> None:
        self.running.append(release)
        for node, amount in release.held.items():
            if node in self.room:
                before = self.room[node]
                after = self.room[node] = minus(before, amount)
                if min(after) < 0:  # an over-full node takes nothing away from the others
                    before, after = _at_least_nothing(before), _at_least_nothing(after)
                self.free = plus(minus(self.free, before), after)
        for key in self.purses_of(release.view):
            self.purses[key] = minus(self.purses[key], release.claim)
        self.groups.occupy(release.view, release.claim)
        self._beside_head = self._open_room = None

    def purses_of(self, view: JobView) -> list[Purse]:
        return [key for key in (view.account_id, view.group) if key in self.purses]

    def forget_reservations(self) -> None:
        self.head: Reservation | None = None
        self.quota_heads: dict[Purse, Reservation] = {}
        self.victims: dict[str, JobView] = {}  # who is to stop, and for whom
        self._promised: Room = {}  # to those for whom others stop
        self._first_of_group: dict[str, Applicant] = {}  # that waits for room, but is not the head
        self._group_heads: dict[str, Reservation] = {}  # made when the next of that group asks
        self._pool_waiters: dict[str, JobView] = {}  # the first of each group, for the pool
        self._pool_head: tuple[JobView, Vector] | None = None  # the first of all, what it lacks
        self._beside_head = self._open_room = None
        self._misfits: set[Batches] = set()  # while reservations stand, room only becomes less
        self.groups.forget_promises()

    @property
    def is_order_moved(self) -> bool:
        """Whether a start may change who is served next, or where a reservation falls."""
        return self.groups.exist or self.head is not None or bool(self.quota_heads)

    # --- judging ------------------------------------------------------------------------------

    def judge(self, job: Applicant) -> Verdict:
        """What becomes of this job if it is next; changes nothing."""
        if job.view.is_leaving:
            return PLAIN[Cause.STOPPING]
        has_room = covers(self.free, job.need) and self._has_room(job.least)
        if not has_room and self._is_too_big(job):
            return PLAIN[Cause.TOO_BIG]
        over = self._judge_limits(job) or self._judge_pool(job, job.claim)
        if over is not None:
            return over
        if has_room:
            return self._judge_beside_reservations(job)
        stops = self._reclaim(job) if job.is_guaranteed else None
        if stops is None:
            return PLAIN[Cause.NO_ROOM]
        return Verdict(cause=Cause.RECLAIMING, stops=stops)

    def _has_room(self, batches: Batches) -> bool:
        """Jobs of one shape are many in a long queue, and nodes may be many too."""
        if batches in self._misfits:
            return False
        if place(batches, self._open()) is not None:
            return True
        self._misfits.add(batches)
        return False

    def _is_too_big(self, job: Applicant) -> bool:
        if not covers(self.cluster, job.need):
            return True
        if job.least not in self._fits_empty:
            self._fits_empty[job.least] = place(job.least, self.empty) is not None
        return not self._fits_empty[job.least]

    def _judge_limits(self, job: Applicant) -> Verdict | None:
        for key in self.purses_of(job.view):
            if not covers(self.purses[key], job.claim):
                is_group, fits = isinstance(key, str), covers(self.limits[key], job.claim)
                if fits:
                    return PLAIN[Cause.OVER_LIMIT if is_group else Cause.OVER_QUOTA]
                return PLAIN[Cause.LIMIT_TOO_SMALL if is_group else Cause.QUOTA_TOO_SMALL]
        return None

    def _judge_pool(self, job: Applicant, claimed: Vector) -> Verdict | None:
        """A job that may not be preempted must leave alone what others are guaranteed, and what
        an earlier one waits for: that one would otherwise wait for ever."""
        view, groups = job.view, self.groups
        if not groups.exist or view.spec.may_borrow:
            return None
        if any(groups.pool_shortage(view, claimed)):
            if any(groups.pool_shortage(view, claimed, when_empty=True)):
                return PLAIN[Cause.ALL_GUARANTEED]
            return PLAIN[Cause.GUARANTEED]
        if view.group in self._pool_waiters:
            return Verdict(cause=Cause.BEHIND, behind=self._pool_waiters[view.group])
        if self._pool_head is not None:
            first, lacks = self._pool_head
            if any(map(min, groups.from_pool(view, claimed), lacks)):
                return Verdict(cause=Cause.BEHIND, behind=first)
        return None

    def _judge_beside_reservations(self, job: Applicant) -> Verdict:
        room = self._open()
        if self.head is not None and self._must_respect(self.head, job):
            room = self._room_beside(self.head)
            if place(job.least, room) is None:
                return Verdict(cause=Cause.BEHIND, behind=self.head.owner)
        first = self._group_head(job)
        if first is not None and self._must_respect(first, job):
            room = first.limit(room)
            if place(job.least, room) is None:
                return Verdict(cause=Cause.BEHIND, behind=first.owner)
        purse: Vector | None = None
        for key in self.purses_of(job.view):
            left, quota_head = self.purses[key], self.quota_heads.get(key)
            if quota_head is not None and self._must_respect(quota_head, job):
                left = smaller(left, from_room(quota_head.left))
                if not covers(left, job.claim):
                    return Verdict(cause=Cause.BEHIND, behind=quota_head.owner)
            purse = left if purse is None else smaller(purse, left)
        trainers = _largest(job.smallest, job.most, lambda size: self._fits(job, size, room, purse))
        return Verdict(trainers, place(job.batches(trainers), room) or ())

    def _fits(self, job: Applicant, trainers: int, room: Room, purse: Vector | None) -> bool:
        if self.others_are_owed and job.view.spec.may_borrow and trainers > job.smallest:
            return False  # it would be stopped for them at once, and start as large again
        batches = job.batches(trainers)
        claimed = claim(batches)
        if purse is not None and not covers(purse, claimed):
            return False
        return self._judge_pool(job, claimed) is None and place(batches, room) is not None

    @staticmethod
    def _must_respect(reservation: Reservation, job: Applicant) -> bool:
        return not reservation.is_over_by(job.ends_at)

    def _open(self) -> Room:
        if not self._promised:
            return self.room
        if self._open_room is None:
            due = self._due()
            self._open_room = {node: smaller(free, due[node]) for node, free in self.room.items()}
        return self._open_room

    def _room_beside(self, head: Reservation) -> Room:
        if self._beside_head is None:
            self._beside_head = head.limit(self._open())
        return self._beside_head

    def _group_head(self, job: Applicant) -> Reservation | None:
        """The reservation that binds only the group: its first job must not be passed for ever."""
        name = job.view.group
        first = self._first_of_group.get(name)
        if first is None:
            return None
        if name not in self._group_heads:
            self._group_heads[name] = self._reservation(first)
        return self._group_heads[name]

    # --- borrowers --------------------------------------------------------------------------

    def releases(self) -> list[Release]:
        """Who holds something; those that are to stop give it back soon."""
        if not self.victims:
            return self.running
        return [
            replace(row, ends_at=self._stopped_at(row), since=-math.inf)
            if row.view.job_id in self.victims
            else row
            for row in self.running
        ]

    def _stopped_at(self, release: Release) -> float:
        return min(release.ends_at, self.now + release.view.spec.grace_s)

    def _due(self) -> Room:
        """What is free when all that leave have left, less what is promised of it."""
        due = dict(self.room)
        for release in self.running:
            if release.view.is_leaving or release.view.job_id in self.victims:
                give(due, release.held)
        take(due, self._promised)
        return due

    def _reclaim(self, job: Applicant) -> tuple[Release, ...] | None:
        found = borrowers(self.running, self.groups, job.view, job.claim)
        candidates = [row for row in found if row.view.job_id not in self.victims]
        return choose(job.least, self._due(), candidates, self.groups)

    # --- acting on a verdict --------------------------------------------------------------------

    def settle(self, job: Applicant, verdict: Verdict) -> None:
        """Let the job start, or keep for it what it waits for if it is the first to wait."""
        if verdict.trainers:
            self._start(job, verdict)
            return
        match verdict.cause:
            case Cause.OVER_QUOTA:
                self._reserve_quota(job, job.view.account_id)
            case Cause.OVER_LIMIT:
                self._reserve_quota(job, job.view.group)
            case Cause.RECLAIMING:
                self._promise(job, verdict)
            case Cause.GUARANTEED:
                self._pool_waiters.setdefault(job.view.group, job.view)
                if self._pool_head is None:
                    lacks = self.groups.pool_shortage(job.view, job.claim)
                    self._pool_head = (job.view, lacks)
            case Cause.NO_ROOM if self.head is None:
                self._reserve_room(job)
            case Cause.NO_ROOM if self.groups.exist:
                self._first_of_group.setdefault(job.view.group, job)

    def _start(self, job: Applicant, verdict: Verdict) -> None:
        batches = job.batches(verdict.trainers)
        held, claimed = held_in(batches, verdict.placed), claim(batches)
        self._occupy(Release(job.view, held, claimed, job.ends_at, math.inf))
        for reservation in (self.head, self._group_heads.get(job.view.group)):
            if reservation is not None and self._must_respect(reservation, job):
                take(reservation.left, held)
        for key in self.purses_of(job.view):
            quota_head = self.quota_heads.get(key)
            if quota_head is not None and self._must_respect(quota_head, job):
                take(quota_head.left, as_room(claimed))

    def _promise(self, job: Applicant, verdict: Verdict) -> None:
        for release in verdict.stops:
            self.victims[release.view.job_id] = job.view
        placed = place(job.least, self._due()) or ()
        for node, amount in held_in(job.least, placed).items():
            before = self._promised.get(node, (0, 0, 0))
            self._promised[node] = tuple(map(int.__add__, before, amount))
        self.groups.promise(job.view.group, job.claim)
        for key in self.purses_of(job.view):
            if key in self.quota_heads:
                take(self.quota_heads[key].left, as_room(job.claim))
        self._keep_quota(job, self.now + job.view.spec.grace_s)
        self._open_room = self._beside_head = None

    def _keep_quota(self, job: Applicant, starts_at: float) -> None:
        """Later jobs of its account and group must not use up the quota it will need."""
        for key in self.purses_of(job.view):
            if key in self.quota_heads:
                continue
            left = as_room(minus(self.purses[key], job.claim))
            self.quota_heads[key] = Reservation(job.view, starts_at, left)

    def _reservation(self, job: Applicant) -> Reservation:
        room = dict(self.room)
        take(room, self._promised)
        rows = ((release, release.held) for release in self.releases())
        return reserve(job.view, job.least, room, rows, self.now)

    def _reserve_room(self, job: Applicant) -> None:
        self.head = self._reservation(job)
        self._beside_head = None
        self._keep_quota(job, self.head.starts_at)

    def _reserve_quota(self, job: Applicant, key: Purse) -> None:
        if key in self.quota_heads:
            return
        rows = (
            (release, as_room(release.claim))
            for release in self.releases()
            if key in (release.view.account_id, release.view.group)
        )
        purse = as_room(self.purses[key])
        self.quota_heads[key] = reserve(job.view, as_batches(job.claim), purse, rows, self.now)


def _at_least_nothing(free: Vector) -> Vector:
    return tuple([max(0, part) for part in free])


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
