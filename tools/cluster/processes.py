"""Processes by pid and start time. run.py calls it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

STOP_S = 2.0  # what it holds is thrown away; a peer that is gone would be waited for in vain


def start_time(pid: int) -> str | None:
    """When the process started, in the kernel's ticks; None when all of it has ended.

    The first thread may be a zombie while another still holds the files and ports of both.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        has_ended = fields[0] == "Z" and len(os.listdir(f"/proc/{pid}/task")) == 1
    except OSError:
        return None
    return None if has_ended else fields[19]


def end(pid: int) -> None:
    started = start_time(pid)
    deadline = time.monotonic() + STOP_S
    os.kill(pid, signal.SIGTERM)
    while start_time(pid) == started and started is not None:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
