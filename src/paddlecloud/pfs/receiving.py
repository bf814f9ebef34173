"""One connection's bytes into a part file: hashed and written piece by piece.

A receiver owns a range of leaves; whoever is given an overlapping range later stops it first and
waits for the write under way, so no two ever mix their bytes. How far it has come is recorded
with every MiB and at the end, so it may begin in the middle of a leaf that another has begun.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from paddlecloud.core.errors import Conflict, InvalidInput
from paddlecloud.pfs import syscalls
from paddlecloud.pfs.faults import name_error
from paddlecloud.pfs.leaf_records import LeafRecord
from paddlecloud.pfs.page_cache import Passing
from paddlecloud.wire.buffers import buffer as new_buffer
from paddlecloud.wire.digests import LEAF_BYTES, leaf_check, leaf_hash

TOLD_EVERY_BYTES = 1 << 20
# At a time, ahead of the writing. On ext4 it saves a seventh of the file server's CPU, as a write
# then need not reserve its blocks one by one; a full disk is known before the bytes are.
ALLOCATED_BYTES = 64 << 20


class Receiver:
    """`write` the bytes in order, then `finish`; `cut` when the connection broke."""

    def __init__(
        self,
        fd: int,
        start: int,
        end: int,
        record: LeafRecord,
        forget: Callable[[Receiver], None],
        *,
        checks: bool = False,
        syncs: bool = False,
        passes: bool = False,
    ) -> None:
        """`checks`: the sender wants those of the leaves. `syncs`: there will be an fsync, which is
        begun leaf by leaf. `passes`: what is written out does not stay in memory."""
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
        self._check = leaf_check() if checks else None
        self._leaf_end = start  # nothing begun
        self._told_at = start
        self._allocated_to = start if end - start > LEAF_BYTES else end
        self._digests: list[bytes] = []
        self.checks: list[bytes] = []  # of the same leaves, if they are wanted
        if start % LEAF_BYTES:
            try:
                self._go_on()
            except OSError:
                os.close(fd)
                raise

    def _go_on(self) -> None:
        """Take up a leaf in the middle: what is there belongs to its digest."""
        self._record.begins(*divmod(self._start, LEAF_BYTES))
        at = self._start // LEAF_BYTES * LEAF_BYTES
        self._leaf_end = min(at + LEAF_BYTES, self._end)
        buffer = new_buffer(TOLD_EVERY_BYTES)
        while at < self._start:
            n_read = os.preadv(self._fd, [buffer[: self._start - at]], at)
            if not n_read:  # somebody made it shorter: the digest will not be that of the client
                return
            self._count_in(buffer[:n_read])
            at += n_read

    def _count_in(self, piece: memoryview) -> None:
        self._hash.update(piece)
        if self._check is not None:
            self._check.update(piece)

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
            self._begin_hashes()
            self._record.begins(self._at // LEAF_BYTES)
            if self._at >= self._allocated_to:
                self._allocate()
        piece = view[: self._leaf_end - self._at]
        self._count_in(piece)
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
            self._record.ends((self._at - 1) // LEAF_BYTES, digest)
            self._told_at = self._at
            self._end_leaf(digest)
        elif self._at - self._told_at >= TOLD_EVERY_BYTES:
            self._tell()
        return written

    def _begin_hashes(self) -> None:
        self._hash = leaf_hash()
        if self._check is not None:
            self._check = leaf_check()

    def _end_leaf(self, digest: bytes) -> None:
        self._digests.append(digest)
        if self._check is not None:
            self.checks.append(bytes(self._check.digest()))

    def _allocate(self) -> None:
        length = min(ALLOCATED_BYTES, self._end - self._at)
        is_done = syscalls.allocate(self._fd, self._at, length)
        self._allocated_to = self._at + length if is_done else self._end

    def _tell(self) -> None:
        """How far the leaf under way has come."""
        self._record.reached(*divmod(self._at, LEAF_BYTES))
        self._told_at = self._at

    def finish(self) -> list[bytes]:
        """The digests of the leaves of this body; a short body is an error."""
        try:
            with self._lock:
                if self._is_stopped:
                    raise Conflict("another connection sends this part of the file now")
                if self._at != self._end:
                    raise InvalidInput("fewer bytes than announced", field="body")
                if self._start == self._end == 0:
                    self._end_leaf(bytes(leaf_hash().digest()))
                return self._digests
        finally:
            self.cut()

    def cut(self) -> None:
        """No more will come. What has come stays."""
        self.stop()
        self._forget(self)

    def stop(self) -> None:
        with self._lock:
            if self._fd < 0:
                return
            if self._at != self._told_at and not self._is_stopped:
                with suppress(OSError):  # then it is sent again
                    self._tell()
            self._is_stopped = True
            os.close(self._fd)
            self._fd = -1
