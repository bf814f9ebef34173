"""A large file passes through the kernel's memory and does not stay there.

What a transfer of this size leaves in memory would push out what other programs read. It is also
cheaper, as the same few pages are used again and again; a virtual machine that gives free memory
back to its host otherwise pays several CPU seconds per GB for new ones. Who reads the file later
brings it back as usual; a file to be sent that is in memory already stays there.

Only hints: where the system knows none (macOS, Windows), or the disk is slower than the network,
nothing changes. Called by `downloading` and `local_files`.
"""

from __future__ import annotations

import os
import sys

LARGE_BYTES = 256 << 20  # from here on; smaller ones stay for whoever reads them next
STEP_BYTES = 16 << 20
_CACHESTAT = 451  # the call's number, the same for all architectures in use; since Linux 6.5
_PAGE_BYTES = 4096  # no page is smaller


class Passing:
    """Follows what is written into a file, or read from it, and lets go of what lies behind."""

    def __init__(self, descriptor: int, start: int, *, is_wanted: bool) -> None:
        self._descriptor = descriptor
        self._start = start
        has_hints = is_wanted and hasattr(os, "posix_fadvise")
        self._next = start + STEP_BYTES if has_hints else sys.maxsize

    def reached(self, at: int) -> None:
        """Everything before `at` was written, or read."""
        if at < self._next:
            return
        self._next = at + STEP_BYTES
        # The first time the system begins to write them to the disk, the second time they go.
        begin = max(self._start, at - 2 * STEP_BYTES)
        try:
            os.posix_fadvise(self._descriptor, begin, at - begin, os.POSIX_FADV_DONTNEED)
        except OSError:
            pass


def writing(descriptor: int, start: int, size_bytes: int) -> Passing:
    """From `start` on into a file that will have so many bytes."""
    return Passing(descriptor, start, is_wanted=size_bytes >= LARGE_BYTES)


def reading(descriptor: int, start: int, length: int, size_bytes: int) -> Passing:
    """A part of a file that has so many bytes."""
    is_large = size_bytes >= LARGE_BYTES and length >= STEP_BYTES
    is_wanted = is_large and not is_held(descriptor, start, length)
    return Passing(descriptor, start, is_wanted=is_wanted)


def is_held(descriptor: int, start: int, length: int) -> bool:
    """Whether a good part of these bytes is in memory, or nobody can tell."""
    if sys.platform != "linux":
        return True
    import ctypes

    asked, answer = (ctypes.c_uint64 * 2)(start, length), (ctypes.c_uint64 * 5)()
    if ctypes.CDLL(None).syscall(_CACHESTAT, descriptor, asked, answer, 0) != 0:
        return True
    return answer[0] * _PAGE_BYTES > length // 16
