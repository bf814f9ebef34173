"""Processes a benchmark starts: found by what they carry, measured through /proc, ended by pid.

A `Mark` is a variable of its own name in the environment of everything a benchmark starts, so that
whatever came of it is found again, however far it went from its parent.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
import uuid
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, *, timeout_s: float) -> bool:
    """Whether something accepts connections there within the time."""
    ends_at_s = time.monotonic() + timeout_s
    while time.monotonic() < ends_at_s:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        except OSError:
            time.sleep(0.02)
    return False


class Mark:
    def __init__(self) -> None:
        self.env = {"PADDLECLOUD_BENCH_MARK": uuid.uuid4().hex}
        self._text = "=".join(*self.env.items()).encode()

    def pids(self) -> list[int]:
        """Every live process that carries the mark, and all that descend from one."""
        parents: dict[int, int] = {}
        marked: set[int] = set()
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                environ = (entry / "environ").read_bytes()
            except OSError:
                continue
            if fields[0] in "ZX":
                continue
            pid = int(entry.name)
            parents[pid] = int(fields[1])
            if self._text in environ:
                marked.add(pid)
        marked.discard(os.getpid())
        return sorted(pid for pid in parents if _descends(pid, marked, parents))


def _descends(pid: int, ancestors: set[int], parents: dict[int, int]) -> bool:
    while pid in parents:
        if pid in ancestors:
            return True
        pid = parents[pid]
    return False


def pss_mb(pids: list[int]) -> float:
    """Memory of these processes in MB (10^6 bytes), shared pages split among their users."""
    total_kib = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total_kib += int(line.split()[1])
    return total_kib * 1024 / 1e6


def cpu_s(pids: list[int]) -> float:
    """CPU seconds these processes and their reaped children have used."""
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except FileNotFoundError:
            continue  # it has ended since
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / _TICKS_PER_S


def end(pid: int, *, grace_s: float = 10.0) -> None:
    """TERM, wait, KILL; nothing if it is gone already."""
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        for order in (signal.SIGTERM, signal.SIGKILL):
            signal.pidfd_send_signal(watch, order)
            if select.select([watch], [], [], grace_s)[0]:
                return
    except ProcessLookupError:
        pass
    finally:
        os.close(watch)
