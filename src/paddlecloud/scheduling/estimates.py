"""When a waiting job may start, from what running jobs report and from wall times.

A guess for people, not a promise: jobs may end early, and others may still arrive with a higher
priority. Where nobody says when the jobs in the way end there is no guess.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paddlecloud.core.durations import format_duration
from paddlecloud.scheduling.desk import Desk
from paddlecloud.scheduling.placement import covers, give, held_in, minus, place, plus, take
from paddlecloud.scheduling.reasons import Words
from paddlecloud.scheduling.reservations import Release
from paddlecloud.scheduling.snapshot import JobView
from paddlecloud.scheduling.verdicts import NEVER, Applicant, Cause, Verdict


@dataclass(frozen=True, slots=True)
class Start:
    """The moment a job starts, and whose end made room for it last (None: nobody had to end)."""

    at: float  # infinite: not known
    after: Release | None


@dataclass(frozen=True, slots=True)
class Estimate:
    earliest_s: float | None = None
    latest_s: float | None = None
    basis: str = ""


def estimate(
    desk: Desk,
    job: Applicant,
    verdict: Verdict,
    ahead: Sequence[tuple[Applicant, Verdict]],
    words: Words,
) -> Estimate:
    if verdict.cause in NEVER:
        return Estimate(basis="never, as it is")
    if verdict.cause == Cause.GUARANTEED:
        return Estimate(basis="other jobs must first give back what no group is guaranteed")
    rivals = [other for other, its in ahead if _is_rival(other, its, job)]
    first = [other for other in rivals if other.view is verdict.behind]
    earliest = start_after(desk, first, job)
    latest = start_after(desk, rivals, job) if len(rivals) > len(first) else earliest
    return Estimate(
        _from_now(earliest.at, desk.now),
        _from_now(max(earliest.at, latest.at), desk.now),
        basis(earliest, job.view, desk.now, words),
    )


def _is_rival(other: Applicant, its: Verdict, job: Applicant) -> bool:
    """Whether this job ahead may take room away: not one that waits for its own quota."""
    if its.cause in NEVER:
        return False
    if its.cause == Cause.OVER_LIMIT:
        return other.view.group == job.view.group
    return its.cause != Cause.OVER_QUOTA or other.view.account_id == job.view.account_id


def start_after(desk: Desk, ahead: Iterable[Applicant], job: Applicant) -> Start:
    """When `job` starts if those ahead start one after the other, all at their smallest size."""
    room = dict(desk.room)
    purses = dict(desk.purses)
    number = itertools.count()  # so that equal ends never compare releases
    ends = [(release.ends_at, next(number), release) for release in desk.releases()]
    heapq.heapify(ends)
    at, after = desk.now, None
    for each in (*ahead, job):
        keys = desk.purses_of(each.view)
        while True:
            placed = place(each.least, room)
            if placed is not None and all(covers(purses[key], each.claim) for key in keys):
                break
            if not ends or ends[0][0] == math.inf:
                return Start(math.inf, ends[0][2] if ends else None)
            ended_at, _, after = heapq.heappop(ends)
            at = max(at, ended_at)
            give(room, after.held)
            for key in desk.purses_of(after.view):
                purses[key] = plus(purses[key], after.claim)
        if each is job:
            break
        held = held_in(each.least, placed)
        take(room, held)
        for key in keys:
            purses[key] = minus(purses[key], each.claim)
        wall_s = each.view.spec.wall_time_s
        ends_at = at + wall_s if wall_s else math.inf
        release = Release(each.view, held, each.claim, ends_at, at)
        heapq.heappush(ends, (ends_at, next(number), release))
    return Start(at, after)


def _from_now(at: float, now: float) -> float | None:
    return None if at == math.inf else at - now


def basis(start: Start, reader: JobView, now: float, words: Words) -> str:
    """What the guess rests on: `wide-deep reports 11m left`."""
    if start.at == math.inf:
        return "running jobs do not report"
    if start.after is None:
        return ""
    view, left_s = start.after.view, start.after.ends_at - now
    name, left = words.name(view, reader), format_duration(left_s)
    if view.released:
        return f"{name} is ending"
    if view.is_leaving or start.after.since == -math.inf:
        return f"{name} stops for it"
    if not view.granted:
        return f"{name} goes first and runs at most {format_duration(view.spec.wall_time_s)}"
    bounded = view.spec.wall_time_s and view.started_at is not None
    wall_left_s = (view.started_at or 0.0) + view.spec.wall_time_s - now
    if view.remaining_s is None or (bounded and abs(view.remaining_s - wall_left_s) <= 1):
        return f"{name} ends within {left} by its wall time"
    return f"{name} reports {left} left"
