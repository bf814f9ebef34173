"""Processes by pid and start time, and ports that are free. run.py calls it."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

STOP_S = 2.0  # what it holds is thrown away; a peer that is gone would be waited for in vain


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def start_time(pid: int) -> str | None:
    """When the process started, in the kernel's ticks; None when it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def end(pid: int) -> None:
    started = start_time(pid)
    deadline = time.monotonic() + STOP_S
    os.kill(pid, signal.SIGTERM)
    while start_time(pid) == started and started is not None:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
