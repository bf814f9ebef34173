"""Counting: exact under any number of writers, and walks never count a removal twice."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from paddlecloud.core.errors import QuotaExceeded
from paddlecloud.localfs.trees import Totals
from paddlecloud.pfs.usage import Usage
from tests.patience import PATIENCE_S
from tests.storing import owner


@pytest.fixture
def _hasty_threads() -> Iterator[None]:
    """Threads take turns as often as Python can, so that a missing lock shows."""
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval_s)


@pytest.mark.usefixtures("_hasty_threads")
def test_reservations_never_exceed_the_limit():
    who = owner(limit_bytes=30_000, limit_files=10**6)
    usage = Usage(lambda _: Totals())
    taken: list[int] = []
    start = threading.Barrier(16)

    def reserve() -> None:
        start.wait()
        for _ in range(3000):
            try:
                usage.reserve(who, 1, 1)
            except QuotaExceeded:
                continue
            taken.append(1)

    threads = [threading.Thread(target=reserve) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 30_000
    assert usage.totals(who)[0] == Totals(30_000, 30_000)


@pytest.mark.usefixtures("_hasty_threads")
def test_what_is_given_back_can_be_taken_again():
    who = owner(limit_bytes=10)
    usage = Usage(lambda _: Totals(1, 1))

    def use() -> None:
        for _ in range(2000):
            try:
                held = usage.reserve(who, 3, 1)
            except QuotaExceeded:
                continue
            with usage.publishing(who) as count:
                count(3, 1)
                held.release()
            with usage.publishing(who) as count:
                count(-3, -1)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert usage.totals(who) == (Totals(1, 1), 0)


def test_the_first_walk_happens_when_it_is_needed_and_once():
    walks = []

    def count(_: object) -> Totals:
        walks.append(1)
        return Totals(2, 50)

    usage = Usage(count)
    usage.reserve(owner(), 10**12, 5).release()
    assert walks == []
    limited = owner(limit_bytes=60)
    usage.reserve(limited, 10, 1)
    with pytest.raises(QuotaExceeded, match="60 of 60 bytes"):
        usage.reserve(limited, 1, 0)
    assert walks == [1]


def test_nothing_more_needs_no_room_when_the_limit_is_exceeded_already():
    usage = Usage(lambda _: Totals(9, 900))
    usage.reserve(owner(limit_bytes=10, limit_files=1), 0, 0)


def test_a_removal_a_walk_has_seen_is_not_subtracted_again():
    found = [Totals(3, 300)]
    usage = Usage(lambda _: found[0])
    who = owner()
    assert usage.totals(who)[0] == Totals(3, 300)
    walks = usage.walks(who)
    found[0] = Totals(1, 100)  # two are set aside, not yet deleted; a sweep walks meanwhile
    usage.sweep()
    usage.removed(who, 200, 2, walks)
    assert usage.totals(who)[0] == Totals(1, 100)


def test_a_sweep_that_was_overtaken_walks_again():
    who = owner()
    found = [Totals(1, 100)]
    walks = []

    def count(_: object) -> Totals:
        walks.append(1)
        seen = found[0]
        if len(walks) == 2:  # a file is published while the sweep walks
            with usage.publishing(who) as add:
                add(50, 1)
            found[0] = Totals(2, 150)
        return seen

    usage = Usage(count)
    usage.totals(who)
    usage.sweep()
    assert usage.totals(who)[0] == Totals(2, 150)
    assert len(walks) == 3


def test_a_large_home_is_walked_less_often(monkeypatch: pytest.MonkeyPatch):
    now_s = [1000.0]
    monkeypatch.setattr("paddlecloud.pfs.usage.time.monotonic", lambda: now_s[0])
    walks = []

    def count(_: object) -> Totals:
        walks.append(1)
        now_s[0] += 10
        return Totals()

    usage = Usage(count)
    usage.totals(owner())
    now_s[0] += 60
    usage.sweep(may_rest=True)
    assert len(walks) == 1
    now_s[0] += 200
    usage.sweep(may_rest=True)
    assert len(walks) == 2


def test_whoever_moves_bytes_never_waits_for_a_walk():
    who = owner(limit_bytes=100)
    walking, may_end = threading.Event(), threading.Event()
    may_end.set()

    def count(_: object) -> Totals:
        walking.set()
        assert may_end.wait(PATIENCE_S)
        return Totals(1, 10)

    usage = Usage(count)
    held = usage.reserve(who, 50, 1)
    may_end.clear()
    walking.clear()
    with usage.publishing(who) as note:  # a name changes, so the walks are begun again
        note(0, 0)
    sweeper = threading.Thread(target=usage.sweep)
    sweeper.start()
    assert walking.wait(PATIENCE_S)
    held.absorb(usage.reserve(who, 20, 0))
    held.release()
    may_end.set()
    sweeper.join(PATIENCE_S)
    assert usage.totals(who) == (Totals(1, 10), 0)


def test_what_takes_its_name_just_now_is_not_refused_room():
    """For a moment it is both held and used."""
    who = owner(limit_bytes=100)
    usage = Usage(lambda _: Totals())
    held = usage.reserve(who, 60, 1)
    got: list[object] = []
    with usage.publishing(who) as note:
        note(60, 1)
        other = threading.Thread(target=lambda: got.append(usage.reserve(who, 40, 1)))
        other.start()
        other.join(0.2)
        assert got == []  # it waits instead
        held.release()
    other.join(PATIENCE_S)
    assert len(got) == 1
