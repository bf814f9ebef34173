"""One transfer while it runs: its lanes, its events, its tally, and how it ends.

It promises: events come one at a time; the first error that stops everything ends all lanes at
once and is the one that is raised; an interrupt closes every socket before it goes on up, leaving
what was received for the next run. The transfers call it. It never decides what to move.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from paddlecloud.core import errors
from paddlecloud.sdk.transfers.connections import Interrupted, Lane, Patience, Plane
from paddlecloud.sdk.transfers.events import (
    Event,
    FileDone,
    Moved,
    Note,
    OnEvent,
    Planned,
    Summary,
    ignore,
)
from paddlecloud.sdk.transfers.remote import Remote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from paddlecloud.sdk.transfers.events import Action

    T = TypeVar("T")

Task = Callable[[Lane], None]

# With these there is no point in trying the next file.
FATAL = (
    errors.NotLoggedIn,
    errors.NotAllowed,
    errors.OutOfSpace,
    errors.ServerUnreachable,
    errors.Unavailable,
    errors.RateLimited,
)
LANE = "pfs-lane"  # the name of the threads that move files
JOIN_S = 0.5  # on Windows a wait without a limit cannot be interrupted
GO_ON = "stopped at {percent}%. Run the same command again to go on from there."


def processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Session:
    """The state of one `copy` or `sync`."""

    def __init__(
        self,
        plane: Plane,
        on_event: OnEvent = ignore,
        *,
        connections: int = 2,
        tell_same: bool = False,
        dry_run: bool = False,
    ) -> None:
        self.plane = plane
        self.summary = Summary()
        self.lane = Lane(plane)  # of the thread that runs the transfer
        self.connections = max(1, connections)
        self.dry_run = dry_run
        self._on_event = on_event
        self._tells_same = tell_same
        self._planned_bytes = 0
        self._moved_bytes = 0
        self._started = time.monotonic()
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._lanes: list[Lane] = []
        self.remote = Remote(self.lane, self.persist)

    def ways(self, busy_ends: int = 2) -> int:
        """On how many connections one file is sent.

        Each keeps a processor busy at this end and one at the other. On one machine a second one
        pays only where there are more: with two it is not faster and costs a tenth more.
        """
        if not self.plane.is_here:
            return self.connections
        return max(1, min(self.connections, processors() // busy_ends))

    # --- telling ---------------------------------------------------------------------------

    def emit(self, event: Event) -> None:
        with self._lock:
            self._on_event(event)

    def note(self, text: str) -> None:
        self.emit(Note(text))

    def planned(self, files: int, size_bytes: int, same_files: int, same_bytes: int) -> None:
        summary = self.summary
        summary.files, summary.size_bytes = files, size_bytes
        summary.same_files, summary.same_bytes = same_files, same_bytes
        self._planned_bytes, self._moved_bytes = size_bytes, same_bytes
        for text in self.plane.take_notes():
            self.note(text)
        self.emit(Planned(files, size_bytes, same_files, same_bytes))

    def moved(self, n_bytes: int) -> None:
        """Bytes on the wire."""
        with self._lock:
            self.summary.sent_bytes += n_bytes
            self._progress(n_bytes)

    def lost(self, n_bytes: int) -> None:
        """Bytes that were sent in vain: they count as traffic, not as progress."""
        if n_bytes:
            self._progress(-n_bytes)

    def spared(self, n_bytes: int) -> None:
        """Parts of a file that were already there."""
        if n_bytes:
            with self._lock:
                self.summary.same_bytes += n_bytes
                self._progress(n_bytes)

    def found(self, n_bytes: int) -> None:
        """Bytes that seemed lost and had arrived: they were sent, and are progress after all."""
        if n_bytes:
            self._progress(n_bytes)

    def copied(self, n_bytes: int) -> None:
        """Bytes the server moved itself."""
        if n_bytes:
            self._progress(n_bytes)

    def _progress(self, n_bytes: int) -> None:
        with self._lock:
            self._moved_bytes += n_bytes
            self._on_event(Moved(n_bytes))

    def done(
        self, source: str, target: str, size_bytes: int, sent_bytes: int, action: Action
    ) -> None:
        with self._lock:
            if action in ("sent", "would send"):
                self.summary.sent_files += 1
            elif action == "skipped":
                self.summary.skipped_files += 1
            self._on_event(FileDone(source, target, size_bytes, sent_bytes, action))

    def is_telling_same(self) -> bool:
        return self._tells_same

    def fail(self, path: str, error: errors.PaddleCloudError) -> None:
        """One file cannot be moved. What concerns every file is raised instead."""
        if isinstance(error, FATAL):
            raise error
        with self._lock:
            self.summary.failures.append((path, error))

    def finish(self) -> Summary:
        self.summary.seconds = time.monotonic() - self._started
        return self.summary

    # --- running ---------------------------------------------------------------------------

    def patience(self) -> Patience:
        return Patience(self.plane.give_up_s, sleep=self.sleep)

    def sleep(self, delay_s: float) -> None:
        if self._stop.wait(delay_s):
            raise Interrupted

    def persist(self, attempt: Callable[[], T]) -> T:
        """Run it over cuts until it comes through or the time is up."""
        patience = self.patience()
        while True:
            try:
                return attempt()
            except OSError as cut:
                self.wait_after(cut, patience)

    def wait_after(self, cut: OSError, patience: Patience) -> None:
        try:
            patience.wait(cut)
        except OSError as final:
            raise self.stopped(final) from final

    def stopped(self, cut: OSError) -> errors.PaddleCloudError:
        error = self.plane.unreachable(cut)
        percent = 0
        if self._planned_bytes:
            percent = max(0, min(99, 100 * self._moved_bytes // self._planned_bytes))
        return errors.ServerUnreachable(error.message, hint=GO_ON.format(percent=percent))

    def run(self, tasks: Iterable[Task], lanes: int | None = None) -> None:
        """All tasks, a few at a time; returns when the last one has ended."""
        shared = _Shared(tasks)
        threads = [
            threading.Thread(target=self._work, args=(shared,), name=LANE, daemon=True)
            for _ in range(lanes or self.connections)
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(JOIN_S)
        except BaseException:
            self.stop()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            raise
        if shared.error is not None:
            raise shared.error

    def _work(self, shared: _Shared) -> None:
        try:
            with self.extra_lane() as lane:
                while not self._stop.is_set() and (task := shared.take()) is not None:
                    task(lane)
        except Interrupted:
            pass
        except BaseException as error:
            shared.fail(error)
            self.stop()

    @contextmanager
    def extra_lane(self) -> Iterator[Lane]:
        """A lane that `stop` ends."""
        lane = Lane(self.plane)
        with self._lock:
            self._lanes.append(lane)
        try:
            yield lane
        finally:
            with self._lock:
                self._lanes.remove(lane)

    def stop(self) -> None:
        """End every lane at once; nothing new begins."""
        self._stop.set()
        with self._lock:
            lanes = list(self._lanes)
        for lane in lanes:
            lane.end()


class _Shared:
    """Tasks that several threads take from, and the first error of any of them."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._tasks = iter(tasks)
        self._lock = threading.Lock()
        self.error: BaseException | None = None

    def take(self) -> Task | None:
        with self._lock:
            return next(self._tasks, None)

    def fail(self, error: BaseException) -> None:
        with self._lock:
            if self.error is None:
                self.error = error
