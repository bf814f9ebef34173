"""Asking the server about files while the walk that finds them is still going on.

It promises: answers for every file asked about, in one value, or the error that came instead; the
server compares the first thousands while the next are found. Called by `sending`.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from typing import NamedTuple

from paddlecloud.sdk.transfers.connections import Interrupted
from paddlecloud.sdk.transfers.remote import Compared, Remote
from paddlecloud.sdk.transfers.sessions import JOIN_S, Session

Row = tuple[str, int, str]


class Question(NamedTuple):
    """About files, which stand at these positions in the caller's list, and whole folders."""

    positions: Sequence[int]
    rows: Sequence[Row]
    folders: Sequence[Row]
    first_folder: int  # what the caller calls the first of `folders`


class Probing:
    """Used by one thread: `ask` any number of times, then `finish`."""

    def __init__(self, session: Session, base: str) -> None:
        self._session = session
        self._base = base
        self._found = Compared()
        self._error: BaseException | None = None
        self._waiting: queue.SimpleQueue[Question | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def ask(self, question: Question) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        self._waiting.put(question)

    def finish(self) -> Compared:
        """Everything told, by position."""
        self._waiting.put(None)
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(JOIN_S)
        if self._error is not None:
            raise self._error
        return self._found

    def _work(self) -> None:
        try:
            with self._session.extra_lane() as lane:
                remote = Remote(lane, self._session.persist)
                while (asked := self._waiting.get()) is not None:
                    told = remote.compare(self._base, asked.rows, asked.folders)
                    self._found.add(told, asked.positions, asked.first_folder)
        except Interrupted:
            pass
        except BaseException as error:
            self._error = error
