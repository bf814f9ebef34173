"""A queue of names to look at: each name at most once, some only after a while.

The reconcile loop takes from it; everybody else adds. It carries names, never events, so that
nothing is lost when ten things happen to one job before anyone looks.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable


class WorkQueue:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._ready: dict[str, None] = {}  # a set that keeps its order
        self._later: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}  # the earliest time asked for, by name
        self._closed = False

    def add(self, name: str) -> None:
        with self._changed:
            self._ready[name] = None
            self._changed.notify()

    def add_after(self, name: str, delay_s: float) -> None:
        """Look at `name` after `delay_s`; the earliest of several wishes counts."""
        due = self._clock() + delay_s
        with self._changed:
            if self._due.get(name, due + 1) <= due:
                return
            self._due[name] = due
            heapq.heappush(self._later, (due, name))
            self._changed.notify()

    def take(self) -> list[str]:
        """Every name that is ready; waits for one. Empty only when closed."""
        with self._changed:
            while True:
                self._move_due()
                if self._closed:
                    return []
                if self._ready:
                    names = list(self._ready)
                    self._ready.clear()
                    return names
                timeout = self._later[0][0] - self._clock() if self._later else None
                self._changed.wait(timeout)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _move_due(self) -> None:
        now = self._clock()
        while self._later and self._later[0][0] <= now:
            due, name = heapq.heappop(self._later)
            if self._due.get(name) == due:
                del self._due[name]
                self._ready[name] = None
