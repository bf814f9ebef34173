"""One connection's bytes into a part file: one hash update and one pwrite per piece.

A receiver owns a range of leaves; whoever is given an overlapping range later stops it first and
waits for the write under way, so no two ever mix their bytes. Recording is the upload's business.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from paddlecloud.core.errors import Conflict, InvalidInput
from paddlecloud.pfs import syscalls
from paddlecloud.pfs.faults import name_error
from paddlecloud.pfs.page_cache import Passing
from paddlecloud.wire.digests import LEAF_BYTES, leaf_hash


class Receiver:
    """`write` the bytes in order, then `finish`; `cut` when the connection broke."""

    def __init__(
        self,
        fd: int,
        start: int,
        end: int,
        record: Callable[[Receiver, int, bytes | None], None],
        forget: Callable[[Receiver], None],
        *,
        syncs: bool = False,
        passes: bool = False,
    ) -> None:
        """`syncs`: there will be an fsync, which is begun leaf by leaf. `passes`: what is written
        out does not stay in memory."""
        self._fd = fd
        self._start = self._at = start
        self._end = end
        self._record = record
        self._forget = forget
        self._syncs = syncs
        self._passing = Passing(fd, start) if passes else None
        self._lock = threading.Lock()
        self._is_stopped = False
        self._moved_at_s = time.monotonic()
        self._hash = leaf_hash()
        self._leaf_end = start  # nothing begun
        self._digests: list[bytes] = []

    def overlaps(self, start: int, end: int) -> bool:
        """Whether it may still write there."""
        return start < self._end and self._at // LEAF_BYTES * LEAF_BYTES < end

    def has_moved_within(self, seconds: float) -> bool:
        """Whether bytes still come: one is being written, or was just now."""
        return self._lock.locked() or time.monotonic() - self._moved_at_s < seconds

    def write(self, data: memoryview | bytes | bytearray) -> None:
        view = memoryview(data)
        with self._lock:
            if self._is_stopped:
                raise Conflict(
                    "another connection sends this part of the file now", hint="begin again"
                )
            if self._at + len(view) > self._end:
                raise InvalidInput("more bytes than announced", field="body")
            try:
                while view:
                    view = view[self._take(view) :]
                self._moved_at_s = time.monotonic()
            except OSError as error:
                self._is_stopped = True  # the hash is ahead of the disk
                raise name_error(error, "the upload") from error

    def _take(self, view: memoryview) -> int:
        """Bytes up to the end of the leaf; how many were taken."""
        if self._at == self._leaf_end:
            self._leaf_end = min(self._at + LEAF_BYTES, self._end)
            self._hash = leaf_hash()
            self._record(self, self._at // LEAF_BYTES, None)
        piece = view[: self._leaf_end - self._at]
        self._hash.update(piece)
        written = 0
        while written < len(piece):
            written += os.pwrite(self._fd, piece[written:], self._at + written)
        self._at += written
        if self._at == self._leaf_end:
            digest = bytes(self._hash.digest())
            if self._syncs:
                begins_at = (self._at - 1) // LEAF_BYTES * LEAF_BYTES
                syscalls.begin_writing_out(self._fd, begins_at, self._at - begins_at)
            if self._passing is not None:
                self._passing.reached(self._at)
            self._record(self, (self._at - 1) // LEAF_BYTES, digest)
            self._digests.append(digest)
        return written

    def finish(self) -> list[bytes]:
        """The digests of the leaves of this body; a short body is an error."""
        try:
            with self._lock:
                if self._is_stopped:
                    raise Conflict("another connection sends this part of the file now")
                if self._at != self._end:
                    raise InvalidInput("fewer bytes than announced", field="body")
                if self._start == self._end == 0:
                    self._digests.append(bytes(leaf_hash().digest()))
                return self._digests
        finally:
            self.cut()

    def cut(self) -> None:
        """No more will come. What is whole stays, the leaf under way is lost."""
        self.stop()
        self._forget(self)

    def stop(self) -> None:
        with self._lock:
            self._is_stopped = True
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
