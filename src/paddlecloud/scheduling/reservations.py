"""When the first job that cannot start will start, and what is left beside it until then.

The promise to that job (the head): no job that starts behind it makes it start later than the
running jobs alone would. Two ways to keep it:

* Ends are known (wall times, reports): the head starts at the first moment at which the jobs that
  have ended by then make room. Behind it may start what ends before that moment, or what fits
  beside the head from that moment on.
* Ends are not known: the head starts once certain running jobs have ended, the longest-running
  first. Behind it may start only what fits beside the head, so that nothing is ever added to those
  jobs. A later starter is never among them: an endless stream of small jobs cannot hold the head
  back.

Reports may be wrong. So after `PATIENCE_S` nothing starts any more because it will end in time;
both ways must then leave room for it.

Used for the nodes of a cluster and, in the same words, for the quota of an account.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from paddlecloud.scheduling.placement import (
    Batch,
    Held,
    Room,
    Vector,
    covers,
    give,
    held_in,
    place,
    smaller,
    take,
)
from paddlecloud.scheduling.snapshot import JobView

PATIENCE_S = 3600.0  # reports may hold a head back for this long, not longer


@dataclass(frozen=True, slots=True)
class Release:
    """What a running job gives back when it ends."""

    view: JobView
    held: Held  # by node
    claim: Vector  # from its account's quota
    ends_at: float  # infinite: not known
    since: float  # when it began to hold; those that end anyway come first

    @property
    def age_key(self) -> tuple[float, float, str]:
        return (self.since, self.view.submitted_at, self.view.job_id)


@dataclass(frozen=True, slots=True)
class Reservation:
    owner: JobView
    starts_at: float  # infinite: not known
    left: Room  # per node, what the head leaves when it starts

    def is_over_by(self, at: float) -> bool:
        """Whether a job that ends then is gone before the head needs the room."""
        return at <= self.starts_at < math.inf

    def limit(self, room: Room) -> Room:
        """The room that may be used now and for any length of time."""
        return {node: smaller(free, self.left[node]) for node, free in room.items()}


def ends_at(view: JobView, now: float) -> float:
    """The latest moment at which the job gives back what it holds, as far as anyone knows."""
    known = math.inf if view.remaining_s is None else now + max(0.0, view.remaining_s)
    if view.is_leaving:
        return min(known, now + view.spec.grace_s)
    if view.spec.wall_time_s:
        begun = now if view.started_at is None else view.started_at
        known = min(known, max(now, begun + view.spec.wall_time_s))
    return known


def begun_at(view: JobView) -> float:
    if view.is_leaving:
        return -math.inf
    return math.inf if view.started_at is None else view.started_at


def reserve(
    owner: JobView,
    batches: Sequence[Batch],
    room: Room,
    releases: Iterable[tuple[Release, Held]],
    now: float,
) -> Reservation:
    """The reservation of a job that does not fit into `room` but into the empty one."""
    by_age = sorted(releases, key=lambda row: row[0].age_key)
    by_end = sorted(by_age, key=lambda row: row[0].ends_at)
    timed = _by_time(owner, batches, room, by_end)
    if timed is not None and now - owner.submitted_at <= PATIENCE_S:
        return timed
    aged = _by_age(owner, batches, room, by_age)
    if timed is None:
        return aged
    # No more starts that rely on a report; what is left must do whichever way the jobs end.
    return Reservation(owner, math.inf, aged.limit(timed.left))


def _by_time(
    owner: JobView,
    batches: Sequence[Batch],
    room: Room,
    by_end: Sequence[tuple[Release, Held]],
) -> Reservation | None:
    ends = sorted({release.ends_at for release, _ in by_end if release.ends_at < math.inf})
    if not ends:
        return None

    def room_at(index: int) -> Room:
        ended = (held for release, held in by_end if release.ends_at <= ends[index])
        return _given(room, ended)

    index = _first(len(ends), lambda index: place(batches, room_at(index)) is not None)
    if index is None:
        return None
    return Reservation(owner, ends[index], _beside(batches, room_at(index)))


def _by_age(
    owner: JobView,
    batches: Sequence[Batch],
    room: Room,
    by_age: Sequence[tuple[Release, Held]],
) -> Reservation:
    helds = [held for _, held in by_age]

    def fits(index: int) -> bool:
        return place(batches, _given(room, helds[: index + 1])) is not None

    index = _first(len(helds), fits)
    needed = helds if index is None else helds[: index + 1]
    later = _given(room, needed)
    used = _used(batches, later)
    # Those whose end does not help the head are not waited for: what they hold is not promised.
    for held in reversed(needed[:-1]):
        take(later, held)
        if used is not None and all(
            covers(later[node], used[node]) for node in held if node in used
        ):
            continue  # the head would not lie there
        found = _used(batches, later)
        if found is None:
            give(later, held)
        else:
            used = found
    return Reservation(owner, math.inf, _beside(batches, later))


def _given(room: Room, helds: Iterable[Held]) -> Room:
    """The room when these have been given back."""
    later = dict(room)
    for held in helds:
        give(later, held)
    return later


def _first(count: int, is_enough: Callable[[int], bool]) -> int | None:
    """The first number below `count` that is enough, given that more is never less."""
    if not count or not is_enough(count - 1):
        return None
    least, most = 0, count - 1
    while least < most:
        middle = (least + most) // 2
        if is_enough(middle):
            most = middle
        else:
            least = middle + 1
    return most


def _used(batches: Sequence[Batch], room: Room) -> Held | None:
    placed = place(batches, room)
    return None if placed is None else held_in(batches, placed)


def _beside(batches: Sequence[Batch], room: Room) -> Room:
    left = dict(room)
    take(left, _used(batches, left) or {})
    return left
