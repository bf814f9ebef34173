"""Tells waiting requests that something changed, from any thread, without a thread per waiter.

The mirror and the services publish subjects after their commit; requests held on the event loop
listen. A notice carries nothing: the woken request reads the rows again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

Subject = tuple[str, object]  # ("job", id), ("account", id) or ("access", id)


def job_subject(job_id: str) -> Subject:
    return ("job", job_id)


def account_subject(account_id: int) -> Subject:
    return ("account", account_id)


def access_subject(account_id: int) -> Subject:
    """Something the account logs in with has ended."""
    return ("access", account_id)


class Listener(Protocol):
    """An asyncio.Event, or anything that is set like one."""

    def set(self) -> None: ...


class Hub:
    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: dict[Subject, set[Listener]] = {}

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Called once, by the front, when its loop runs. Earlier notices reach nobody: fine."""
        self._loop = loop

    def publish(self, subjects: Iterable[Subject]) -> None:
        loop = self._loop
        if loop is None:
            return
        try:
            loop.call_soon_threadsafe(self._wake, tuple(subjects))
        except RuntimeError:  # closed: the process is on its way out
            pass

    def _wake(self, subjects: Iterable[Subject]) -> None:
        for subject in subjects:
            for listener in self._listeners.get(subject, ()):
                listener.set()

    def wake_all_soon(self) -> None:
        """Everyone looks again, because the server is stopping. Safe in a signal handler."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(lambda: self._wake(tuple(self._listeners)))

    @contextmanager
    def listening(self, listener: Listener, *subjects: Subject) -> Iterator[None]:
        """`listener` is set by every later notice. Listen, then read rows: nothing is missed."""
        for subject in subjects:
            self._listeners.setdefault(subject, set()).add(listener)
        try:
            yield
        finally:
            for subject in subjects:
                listeners = self._listeners[subject]
                listeners.discard(listener)
                if not listeners:
                    del self._listeners[subject]
