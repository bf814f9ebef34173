"""Reads and bounds one attempt's log.

The program writes the file itself, appending; nothing of it passes through the server. When it
grows over the cap the part between the head and the last stretch is given back to the disk by
punching a hole. Offsets never shift, so a reader's cursor stays valid; what was dropped is stated
in bytes. The dropped range is recorded before it is punched: a kill in between makes us say
"dropped" about bytes that are still there, never show zeros as if they were output.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from paddlecloud.engines.local import linux
from paddlecloud.engines.protocols import LogSlice

MAX_SLICE_BYTES = 4 * 2**20  # one answer, whatever was asked for: bounds the server's memory
_BLOCK = 4096  # holes are made of whole blocks
_LINE_SEARCH_BYTES = 2**16  # how far to look for a line's end, so that gaps lie between lines


def _round_down(offset: int) -> int:
    return offset - offset % _BLOCK


class LogFile:
    """One log and its gap; there is at most one, and its end only grows."""

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
        # Past the end only if the program cut its own log short: go on from where it is now.
        start = max(0, size + start) if start < 0 else min(start, size)
        while True:
            gap_start, gap_end = gap = self.gap()
            at, stop = start, size
            if gap_start <= start < gap_end:
                at = min(gap_end, size)
            elif start < gap_start:
                stop = min(gap_start, size)
            data = self._pread(at, max(0, min(limit_bytes, MAX_SLICE_BYTES, stop - at)))
            if self.gap() == gap:  # else what we read may be a hole by now
                break
        after = at + len(data)
        return LogSlice(start, after, size, data, at - start, ended and after >= size)

    def _pread(self, at: int, length: int) -> bytes:
        if length == 0:
            return b""
        fd = os.open(self._log, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(fd, length, at)
        finally:
            os.close(fd)

    def shorten(self, cap_bytes: int, head_bytes: int) -> bool | None:
        """Drop the middle if the log takes more than the cap.

        What stays is the head and half of the cap's rest, so that the next hole is not due
        right away. True: dropped. None: nothing to do. False: dropped, but this file system
        cannot punch holes, so that everything behind the head went.
        """
        size = self.size()
        old_start, old_end = self.gap()
        if size - (old_end - old_start) <= cap_bytes:
            return None
        head = _round_down(head_bytes)
        punch_from = _round_down(old_end) or head
        punch_to = _round_down(size - (cap_bytes - head) // 2)
        if punch_to <= punch_from:
            return None
        start = old_start or self._line_end_before(head)
        self._record(start, self._line_end_after(punch_to))
        fd = self._open_to_change()
        try:
            linux.punch_hole(fd, punch_from, punch_to - punch_from)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS):
                raise
            self._cut(fd, head, start)
            return False
        finally:
            os.close(fd)
        return True

    def _open_to_change(self) -> int:
        """The log is kept read-only even for us, its owner: see `spawning`."""
        try:
            return os.open(self._log, os.O_WRONLY | os.O_CLOEXEC)
        except PermissionError:
            os.chmod(self._log, 0o600)
            try:
                return os.open(self._log, os.O_WRONLY | os.O_CLOEXEC)
            finally:
                os.chmod(self._log, 0o400)

    def _cut(self, fd: int, head: int, start: int) -> None:
        """Without holes: cut off all behind the head, then make the file as long as it was.

        What the program writes between the two calls is lost with the rest, and counted.
        """
        size = os.fstat(fd).st_size
        self._record(start, size)
        os.ftruncate(fd, head)
        os.ftruncate(fd, size)

    def _record(self, start: int, end: int) -> None:
        part = self._dropped.with_name("dropped.part")
        part.write_text(f"{start} {end}")
        os.rename(part, self._dropped)

    def _line_end_before(self, offset: int) -> int:
        begin = max(0, offset - _LINE_SEARCH_BYTES)
        found = self._pread(begin, offset - begin).rfind(b"\n")
        return begin + found + 1 if found >= 0 else offset

    def _line_end_after(self, offset: int) -> int:
        found = self._pread(offset, _LINE_SEARCH_BYTES).find(b"\n")
        return offset + found + 1 if found >= 0 else offset
