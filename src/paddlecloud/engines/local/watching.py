"""One thread that waits for descriptors and for times, and calls back.

`Processes` hangs everything on it that is not asked for by a caller: a replica that ended, a
grace that ran out, a log to look at. Callbacks run in its thread, one after another, and must
be short. It sleeps while there is nothing to do.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import os
import select
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)


class Watcher:
    def __init__(self, name: str) -> None:
        self._epoll = select.epoll()
        self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._epoll.register(self._wake_fd, select.EPOLLIN)
        self._lock = threading.Lock()
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def watch(self, fd: int, callback: Callable[[], None]) -> None:
        """Call back whenever `fd` is readable or hung up, until `unwatch`."""
        with self._lock:
            self._callbacks[fd] = callback
        self._epoll.register(fd, select.EPOLLIN)

    def unwatch(self, fd: int) -> None:
        """Call before closing `fd`."""
        with self._lock:
            known = self._callbacks.pop(fd, None)
        if known is not None:
            self._epoll.unregister(fd)

    def after(self, delay_s: float, callback: Callable[[], None]) -> None:
        """Call back once, at the earliest after that long."""
        with self._lock:
            if self._closing:
                return
            due = time.monotonic() + delay_s
            heapq.heappush(self._timers, (due, next(self._order), callback))
            is_next = self._timers[0][0] == due
        if is_next and threading.current_thread() is not self._thread:
            os.eventfd_write(self._wake_fd, 1)

    def close(self) -> None:
        """Stop the thread; pending callbacks are forgotten."""
        with self._lock:
            if self._closing:
                return
            self._closing = True
        os.eventfd_write(self._wake_fd, 1)
        if threading.current_thread() is not self._thread:
            self._thread.join()
            self._epoll.close()
            os.close(self._wake_fd)

    def _run(self) -> None:
        while not self._closing:
            for fd, _ in self._epoll.poll(self._patience_s()):
                if fd == self._wake_fd:
                    os.eventfd_read(self._wake_fd)
                    continue
                with self._lock:
                    callback = self._callbacks.get(fd)
                if callback is not None and not self._closing:
                    self._call(callback)
            for callback in self._due():
                if not self._closing:
                    self._call(callback)

    def _patience_s(self) -> float | None:
        with self._lock:
            if not self._timers:
                return None
            return max(0.0, self._timers[0][0] - time.monotonic())

    def _due(self) -> list[Callable[[], None]]:
        now, due = time.monotonic(), []
        with self._lock:
            while self._timers and self._timers[0][0] <= now:
                due.append(heapq.heappop(self._timers)[2])
        return due

    def _call(self, callback: Callable[[], None]) -> None:
        try:
            callback()
        except Exception:
            # One attempt's trouble must not stop the care for all others.
            log.exception("looking after a replica failed")
