"""Whom to stop so that a group gets its guarantee back: as few borrowers as will do.

Asked by the desk for a waiting job that its group's guarantee covers and that finds no room. Only
jobs that said they may be preempted and that their own group's guarantee does not cover are
stopped: first those of the group with the largest share beyond its guarantee, of these the lowest
priority, of these the one that started last, which loses least. When even all of them would not
make room nobody is stopped. This module names them; it stops nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paddlecloud.scheduling.groups import NOTHING, Groups
from paddlecloud.scheduling.placement import Batch, Room, Vector, give, minus, place, plus, take
from paddlecloud.scheduling.reservations import Release
from paddlecloud.scheduling.snapshot import JobView


def borrowers(
    running: Iterable[Release], groups: Groups, owner: JobView, claim: Vector
) -> list[Release]:
    """Who runs on more than its group's guarantee, if `owner` is given its part of its own."""
    by_group: dict[str, list[Release]] = {}
    for release in running:
        view = release.view
        if view.spec.may_borrow and view.granted and not view.is_leaving:
            by_group.setdefault(view.group, []).append(release)
    found = []
    for name, releases in by_group.items():
        held = groups.firm_promised(name)
        if name == owner.group:
            held = plus(held, claim)
        releases.sort(key=lambda row: (-row.view.spec.priority, *row.age_key))
        for release in releases:
            if groups.is_within(name, held, release.claim, strictly=True):
                held = plus(held, release.claim)
            else:
                found.append(release)
    return found


def choose(
    batches: Sequence[Batch], due: Room, candidates: Sequence[Release], groups: Groups
) -> tuple[Release, ...] | None:
    """Those of the candidates to stop so that the job fits into what is then free."""
    room, left = dict(due), list(candidates)
    given: dict[str, Vector] = {}
    chosen: list[Release] = []

    def key(release: Release) -> tuple[float, int, float, str]:
        view = release.view
        held = minus(groups.held(view.group), given.get(view.group, NOTHING))
        return (
            -groups.share(view.group, held),
            view.spec.priority,
            -release.since,
            view.job_id,
        )

    for release in candidates:
        give(room, release.held)
    if place(batches, room) is None:
        return None
    room = dict(due)
    while place(batches, room) is None and left:
        pick = min(left, key=key)
        left.remove(pick)
        given[pick.view.group] = plus(given.get(pick.view.group, NOTHING), pick.claim)
        give(room, pick.held)
        chosen.append(pick)
    for release in chosen[-2::-1]:  # those that were not needed after all, the latest pick is
        take(room, release.held)
        if place(batches, room) is None:
            give(room, release.held)
        else:
            chosen.remove(release)
    return tuple(chosen)
