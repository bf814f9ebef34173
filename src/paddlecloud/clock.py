"""The one place of the platform that reads the wall clock, and a clock that cannot be set.

The wall clock says when something happened, to people and to other machines. It may jump: by hand,
or when the machine finds a time server. How long something took is asked of `SteadyClock`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path


def now() -> float:
    """Seconds since 1970, as the wall clock has it at this moment."""
    return time.time()


def now_ns() -> int:
    """The same in nanoseconds, to compare with times of files."""
    return time.time_ns()


def since_boot() -> float:
    """Seconds since the machine started, sleep included; nobody can set it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class SteadyClock:
    """Seconds since 1970 that only ever pass: the wall clock as first seen in this boot.

    What that was is kept in a file, so that the next process of the same boot goes on with it.
    """

    def __init__(self, path: Path, boot_id: str, *, is_needed: Callable[[], bool]) -> None:
        """`is_needed()`: whether times of an earlier process are still compared with ours. If
        not, a clock that was set meanwhile is taken as it is now."""
        self.started_at = now() - since_boot()  # of the machine
        kept = _read(path, boot_id)
        if kept is not None and is_needed():
            self.started_at = kept
        elif kept != self.started_at:
            part = path.with_suffix(".part")
            fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with open(fd, "w", encoding="utf-8") as file:
                json.dump({"boot_id": boot_id, "started_at": self.started_at}, file)
            os.replace(part, path)

    def now(self) -> float:
        return self.started_at + since_boot()

    def from_wall(self, at: float) -> float:
        """A time of the wall clock, taken a moment ago, on this one."""
        return at + self.now() - now()


def _read(path: Path, boot_id: str) -> float | None:
    try:
        facts = json.loads(path.read_bytes())
        return float(facts["started_at"]) if facts["boot_id"] == boot_id else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
