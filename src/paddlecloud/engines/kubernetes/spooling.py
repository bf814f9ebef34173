"""One attempt's log on our disk, filled from the API server without losing or doubling a byte.

The kubelet is asked for lines with their times, and `Spool` remembers the time of the last line it
has and how many lines of that very moment; what comes again after a broken connection is told by
that. The mark is written after the bytes and says how many it covers: what a crash left behind
it is cut off. What has no line end yet is taken only when the program has ended. Offsets are
those of the log as the program wrote it, as in the embedded engine.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

from paddlecloud.core.observed import ReplicaKey
from paddlecloud.engines.local.logs import LogFile
from paddlecloud.engines.protocols import LogSlice

_MAX_LINE_BYTES = 2**20  # a longer one is taken in pieces


def folder_of(root: Path, key: ReplicaKey) -> Path:
    return root / key.job_id / str(key.run) / f"{key.short}.{key.attempt}"


class Spool:
    def __init__(self, folder: Path, cap_bytes: int, head_bytes: int) -> None:
        self._folder = folder
        self._cap_bytes, self._head_bytes = cap_bytes, head_bytes
        self._file = LogFile(folder / "log", folder / "dropped")
        self._lock = threading.Lock()
        self.filling = threading.Lock()  # held by whoever fills it from a connection
        self._grown = threading.Condition()
        self._pending = b""  # bytes of a line whose end has not come
        self._in_line = False  # the line being read is longer than a line may be
        self._time, self._count, self._skip = "", 0, 0
        self.is_done = (folder / "done").exists()
        self._recover()

    def _recover(self) -> None:
        try:
            mark = json.loads((self._folder / "mark").read_text())
        except (OSError, ValueError):
            mark = {"size": 0, "time": "", "count": 0}
        self._time, self._count = mark["time"], mark["count"]
        if self._file.size() > mark["size"]:
            os.truncate(self._folder / "log", mark["size"])

    # --- reading -----------------------------------------------------------------------------

    @property
    def size(self) -> int:
        return self._file.size()

    def read(self, start: int, limit_bytes: int) -> LogSlice:
        return self._file.read(start, limit_bytes, ended=self.is_done)

    def wait(self, size: int, timeout_s: float) -> None:
        """Return when it is longer than `size`, is done, or the time is up."""
        with self._grown:
            self._grown.wait_for(lambda: self.is_done or self.size > size, timeout_s)

    def wake(self) -> None:
        with self._grown:
            self._grown.notify_all()

    # --- filling -----------------------------------------------------------------------------

    def begin(self) -> str:
        """A connection begins; the time to ask for lines since, empty for all."""
        with self._lock:
            self._pending, self._in_line = b"", False
            self._skip = self._count
            return self._time

    def take(self, piece: bytes) -> None:
        """Bytes as they came, in any pieces."""
        with self._lock:
            *lines, self._pending = (self._pending + piece).split(b"\n")
            fresh = [text for line in lines for text in self._fresh(line + b"\n")]
            if len(self._pending) > _MAX_LINE_BYTES:
                fresh += self._fresh(self._pending)
                self._in_line, self._pending = True, b""
            self._append(b"".join(fresh))

    def _fresh(self, line: bytes) -> list[bytes]:
        """The line without its time, if it is not one we have."""
        if self._in_line:
            self._in_line = not line.endswith(b"\n")
            return [line]
        stamp, _, text = line.partition(b" ")
        time = stamp.decode("ascii", "replace")
        if self._time and _order(time) < _order(self._time):
            return []
        if time == self._time:
            if self._skip > 0:
                self._skip -= 1
                return []
            self._count += 1
        else:
            self._time, self._count, self._skip = time, 1, 0
        return [text]

    def _append(self, data: bytes) -> None:
        if not data:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "log").open("ab") as file:
            file.write(data)
            size = file.tell()
        part = self._folder / "mark.part"
        part.write_text(json.dumps({"size": size, "time": self._time, "count": self._count}))
        os.replace(part, self._folder / "mark")
        self._file.shorten(self._cap_bytes, self._head_bytes)
        self.wake()

    def finish(self) -> None:
        """All has come: the program has ended, and what it wrote last need not end in a line."""
        with self._lock:
            if self._pending:
                self._append(b"".join(self._fresh(self._pending)))
                self._pending = b""
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / "done").touch()
            self.is_done = True
        self.wake()


def _order(time: str) -> tuple[str, str]:
    """RFC 3339 times in UTC sort as text once their fractions are of one length."""
    whole, _, fraction = time.rstrip("Z").partition(".")
    return whole, fraction.ljust(9, "0")
