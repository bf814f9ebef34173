"""Tells readers that a log has grown, without asking it all the time.

One inotify descriptor in the watcher's thread; a file is watched only while somebody waits for
it, so a program that floods its log costs nothing when nobody follows. Where inotify is not to
be had, waiting looks twenty times a second.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from paddlecloud.engines.local import linux
from paddlecloud.engines.local.watching import Watcher

_POLL_S = 0.05


class Tail:
    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._lock = threading.Lock()
        self._waiting: dict[int, list[threading.Event]] = {}  # by inotify's watch number
        self._closed = False
        try:
            self._fd = linux.inotify_open()
        except OSError:
            self._fd = -1
        else:
            watcher.watch(self._fd, self._on_growth)

    def wait(self, path: Path, is_enough: Callable[[], bool], timeout_s: float) -> None:
        """Return when `is_enough()`, asked after each growth of `path`, or when time is up."""
        deadline_s = time.monotonic() + timeout_s
        while not is_enough() and not self._closed:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return
            self._wait_once(path, is_enough, left_s)

    def _wait_once(self, path: Path, is_enough: Callable[[], bool], timeout_s: float) -> None:
        event = threading.Event()
        number = self._begin(path, event)
        if number is None:
            event.wait(min(timeout_s, _POLL_S))
            return
        try:
            if not is_enough():  # it may have grown before it was watched
                event.wait(timeout_s)
        finally:
            self._end(number, event)

    def _begin(self, path: Path, event: threading.Event) -> int | None:
        with self._lock:
            if self._fd < 0:
                return None
            try:
                number = linux.inotify_watch(self._fd, path)
            except OSError:
                return None  # not there yet, or too many watches
            self._waiting.setdefault(number, []).append(event)
            return number

    def _end(self, number: int, event: threading.Event) -> None:
        with self._lock:
            events = self._waiting.get(number, [])
            if event in events:
                events.remove(event)
            if not events and self._waiting.pop(number, None) is not None and self._fd >= 0:
                linux.inotify_unwatch(self._fd, number)

    def _on_growth(self) -> None:
        with self._lock:
            for number in linux.inotify_read(self._fd):
                for event in self._waiting.get(number, ()):
                    event.set()

    def wake_all(self) -> None:
        """Something ended: whoever waits looks again."""
        with self._lock:
            for events in self._waiting.values():
                for event in events:
                    event.set()

    def close(self) -> None:
        """Call when the watcher has stopped."""
        self._closed = True
        self.wake_all()
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
