"""Large files pass through the kernel's memory and do not stay there.

Jobs run on the machine that keeps the files: what they read shall not be pushed out by a transfer
of 100 GB. It is also cheaper, as the same few pages are used again and again; a virtual machine
that gives free memory back to its host otherwise pays for every page anew. What is in memory
already, or is asked for a second time, stays.

Only hints: pages that are still to be written, in use or mapped stay, and where the kernel knows no
such hint nothing happens. Called by uploads and by the sending of files.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from contextlib import suppress

from paddlecloud.pfs import syscalls

LARGE_BYTES = 256 << 20  # from here on; smaller ones stay for whoever reads them next
STEP_BYTES = 16 << 20
_MOST_REMEMBERED = 4096

_Part = tuple[int, int, int, int]  # device, inode, time of the last change, offset


class Passing:
    """Follows what is written into a file, or sent from it, and lets go of what lies behind."""

    def __init__(self, fd: int, start: int) -> None:
        self._fd = fd
        self._start = start
        self._next = start + STEP_BYTES

    def reached(self, at: int) -> None:
        """Everything before `at` was written, or sent."""
        if at < self._next:
            return
        self._next = at + STEP_BYTES
        # Twice as far back: what was on its way the last time has arrived now.
        begin = max(self._start, at - 2 * STEP_BYTES)
        let_go(self._fd, begin, at - begin)


def let_go(fd: int, offset: int = 0, length: int = 0) -> None:
    """Of these bytes, or of the whole file. The disk may have to be told to begin with them."""
    with suppress(OSError):
        os.posix_fadvise(fd, offset, length, os.POSIX_FADV_DONTNEED)


class Readings:
    """Who reads which part of a large file for the first time. Thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: OrderedDict[_Part, None] = OrderedDict()

    def begin(self, fd: int, offset: int, length: int) -> Passing | None:
        """None when what is read now shall stay in memory."""
        facts = os.fstat(fd)
        if facts.st_size < LARGE_BYTES or length < STEP_BYTES:
            return None
        part = (facts.st_dev, facts.st_ino, facts.st_mtime_ns, offset)
        with self._lock:
            is_new = part not in self._parts
            self._parts[part] = None
            self._parts.move_to_end(part)
            if len(self._parts) > _MOST_REMEMBERED:
                self._parts.popitem(last=False)
        return Passing(fd, offset) if is_new and not is_held(fd, offset, length) else None


def is_held(fd: int, offset: int, length: int) -> bool:
    """Whether a good part of these bytes is in memory: somebody else reads them."""
    cached = syscalls.cached_bytes(fd, offset, length)
    return cached is None or cached > length // 16
