"""A large download passes through the kernel's memory and does not stay there.

A file of this size would push out what other programs read. It is also cheaper, as the same few
pages are used again and again; a virtual machine that gives free memory back to its host otherwise
pays several CPU seconds per GB for new ones. Who reads the file later brings it back as usual.

Only hints: where the system knows none (macOS, Windows), or the disk is slower than the network,
nothing changes. Called by `downloading`.
"""

from __future__ import annotations

import os
import sys

LARGE_BYTES = 256 << 20  # from here on; smaller ones stay for whoever reads them next
STEP_BYTES = 16 << 20


class Passing:
    """Follows what is written into a file, in order, and lets go of what lies behind."""

    def __init__(self, descriptor: int, start: int, size_bytes: int) -> None:
        """`size_bytes` is the whole file's."""
        is_there = size_bytes >= LARGE_BYTES and hasattr(os, "posix_fadvise")
        self._descriptor = descriptor
        self._start = start
        self._next = start + STEP_BYTES if is_there else sys.maxsize

    def reached(self, at: int) -> None:
        """Everything before `at` was written."""
        if at < self._next:
            return
        self._next = at + STEP_BYTES
        # The first time the system begins to write them to the disk, the second time they go.
        begin = max(self._start, at - 2 * STEP_BYTES)
        try:
            os.posix_fadvise(self._descriptor, begin, at - begin, os.POSIX_FADV_DONTNEED)
        except OSError:
            pass
