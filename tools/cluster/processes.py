"""Processes by pid and start time, and ports that are free. run.py calls it."""

from __future__ import annotations

import os
import random
import signal
import socket
import time
from pathlib import Path

STOP_S = 2.0  # what it holds is thrown away; a peer that is gone would be waited for in vain


PORTS = range(20_000, 32_000)  # below those that connections are given by the kernel


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on, and that no connection takes while a part is down for a moment."""
    sockets: list[socket.socket] = []
    try:
        while len(sockets) < count:
            one = socket.socket()
            try:
                one.bind(("127.0.0.1", random.choice(PORTS)))
            except OSError:
                one.close()
            else:
                sockets.append(one)
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


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
