"""Reads and bounds one attempt's log.

The program writes the file itself, appending; nothing of it passes through the server. When it
grows over the cap the part between the head and the last stretch is given back to the disk by
punching a hole. Offsets never shift, so a reader's cursor stays valid; what was dropped is stated
in bytes. The dropped range is recorded before it is punched: a kill in between makes us say
"dropped" about bytes that are still there, never show zeros as if they were output.
"""

from __future__ import annotations

import os
from pathlib import Path

from paddlecloud.engines.local import linux
from paddlecloud.engines.protocols import LogSlice

_BLOCK = 4096  # holes are made of whole blocks


def _round_down(offset: int) -> int:
    return offset - offset % _BLOCK


class LogFile:
    """One log and its gap; there is at most one, which only grows."""

    def __init__(self, log: Path, dropped: Path) -> None:
        self._log = log
        self._dropped = dropped

    def gap(self) -> tuple[int, int]:
        """[start, end) of what was dropped; (0, 0) when all is there."""
        try:
            start, end = self._dropped.read_text().split()
        except (FileNotFoundError, ValueError):
            return 0, 0
        return int(start), int(end)

    def size(self) -> int:
        try:
            return self._log.stat().st_size
        except FileNotFoundError:
            return 0

    def read(self, start: int, limit_bytes: int, *, ended: bool) -> LogSlice:
        """A slice that never crosses the gap: it ends before it, or begins after it."""
        size = self.size()
        if start < 0:
            start = max(0, size + start)
        if start >= size:
            return LogSlice(start, start, size, b"", ended=ended)
        while True:
            gap_start, gap_end = self.gap()
            at, dropped = start, 0
            if gap_start <= start < gap_end:
                at, dropped = min(gap_end, size), min(gap_end, size) - start
            elif start < gap_start:
                limit_bytes = min(limit_bytes, gap_start - start)
            data = self._pread(at, min(limit_bytes, size - at))
            if self.gap() == (gap_start, gap_end):  # else what we read may be a hole by now
                break
        after = at + len(data)
        return LogSlice(start, after, size, data, dropped, ended and after >= size)

    def _pread(self, at: int, length: int) -> bytes:
        fd = os.open(self._log, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(fd, length, at)
        finally:
            os.close(fd)

    def shorten(self, cap_bytes: int, head_bytes: int) -> bool:
        """Drop the middle if the log takes more than the cap; True if something was dropped.

        What stays is the head and half of the cap's rest, so that the next hole is not due
        right away. Raises OSError where the file system cannot do it.
        """
        size = self.size()
        head = _round_down(head_bytes)
        old_start, old_end = self.gap()
        if size - (old_end - old_start) <= cap_bytes:
            return False
        end = _round_down(size - (cap_bytes - head) // 2)
        begin = old_end or head
        if end <= begin:
            return False
        part = self._dropped.with_name("dropped.part")
        part.write_text(f"{head} {end}")
        os.rename(part, self._dropped)
        fd = os.open(self._log, os.O_WRONLY | os.O_CLOEXEC)
        try:
            linux.punch_hole(fd, begin, end - begin)
        finally:
            os.close(fd)
        return True
