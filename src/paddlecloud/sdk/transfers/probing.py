"""Asking the server about files while the walk that finds them is still going on.

It promises: answers for every file asked about, in one value, or the error that came instead; the
server compares the first thousands while the next are found. Called by `sending`.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence

from paddlecloud.sdk.transfers.connections import Interrupted
from paddlecloud.sdk.transfers.remote import Compared, Remote
from paddlecloud.sdk.transfers.sessions import JOIN_S, Session

Row = tuple[str, int, str]


class Probing:
    """Used by one thread: `ask` any number of times, then `finish`."""

    def __init__(self, session: Session, base: str) -> None:
        self._session = session
        self._base = base
        self._found = Compared(set(), set(), set())
        self._error: BaseException | None = None
        self._waiting: queue.SimpleQueue[tuple[int, Sequence[Row]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def ask(self, start: int, rows: Sequence[Row]) -> None:
        """About files from position `start` on."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        self._waiting.put((start, rows))

    def finish(self) -> Compared:
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
                    start, rows = asked
                    told = remote.compare(self._base, rows)
                    for all_of_them, some in zip(self._found, told, strict=True):
                        all_of_them.update(start + position for position in some)
        except Interrupted:
            pass
        except BaseException as error:
            self._error = error
