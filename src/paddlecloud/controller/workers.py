"""A queue of names with several workers: one name is never in two hands at once.

Added while it is being worked on, a name is worked on again afterwards. What fails waits longer
each time; what succeeds starts anew. It carries names, never events.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

FIRST_RETRY_S, LONGEST_RETRY_S = 0.05, 5.0
NEWS_RETRY_S = 0.2  # of what failed while there was news of it, which it may not have seen


class Names(Generic[T]):
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._ready: dict[T, None] = {}  # a set that keeps its order
        self._in_hand: set[T] = set()
        self._again: set[T] = set()
        self._later: list[tuple[float, int, T]] = []
        self._due: dict[T, float] = {}
        self._failed: dict[T, int] = {}
        self._not_before: dict[T, float] = {}
        self._count = 0
        self._closed = False

    def add(self, name: T) -> None:
        with self._changed:
            self._add(name)

    def _add(self, name: T) -> None:
        held_until = self._not_before.get(name, 0.0)
        if held_until > self._clock():
            self._add_at(name, held_until)
        elif name in self._in_hand:
            self._again.add(name)
        elif name not in self._ready:
            self._ready[name] = None
            self._changed.notify()

    def add_after(self, name: T, delay_s: float) -> None:
        """Work on it after `delay_s`; the earliest of several wishes counts."""
        with self._changed:
            self._add_at(name, self._clock() + delay_s)

    def _add_at(self, name: T, due: float) -> None:
        if self._due.get(name, due + 1) <= due:
            return
        self._due[name] = due
        self._count += 1
        heapq.heappush(self._later, (due, self._count, name))
        self._changed.notify()

    def take(self) -> T | None:
        """The next name, which is the caller's until `done`; None when closed."""
        with self._changed:
            while not self._closed:
                self._move_due()
                if self._ready:
                    name = next(iter(self._ready))
                    del self._ready[name]
                    self._in_hand.add(name)
                    return name
                timeout = self._later[0][0] - self._clock() if self._later else None
                self._changed.wait(timeout)
            return None

    def done(
        self, name: T, ok: bool = True, least_s: float = 0.0, longest_s: float = LONGEST_RETRY_S
    ) -> None:
        """Give it back; a failed one comes again by itself, `least_s` from now at the earliest,
        whatever is heard of it meanwhile, and `longest_s` from now at the latest."""
        with self._changed:
            self._in_hand.discard(name)
            has_news = name in self._again
            self._again.discard(name)
            if ok:
                self._failed.pop(name, None)
                self._not_before.pop(name, None)
                if has_news:
                    self._add(name)
                return
            if least_s > 0:
                self._not_before[name] = self._clock() + least_s
            count = self._failed[name] = self._failed.get(name, 0) + 1
            delay_s = min(FIRST_RETRY_S * 2 ** min(count - 1, 20), longest_s)
            if has_news:
                delay_s = min(delay_s, NEWS_RETRY_S)
            self._add_at(name, self._clock() + max(delay_s, least_s))

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def waiting(self) -> int:
        with self._changed:
            return len(self._ready) + len(self._in_hand)

    def _move_due(self) -> None:
        now = self._clock()
        while self._later and self._later[0][0] <= now:
            due, _, name = heapq.heappop(self._later)
            if self._due.get(name) == due:
                del self._due[name]
                self._add(name)
