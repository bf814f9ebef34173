"""The load generator: N keep-alive connections that ask the same thing as fast as it is answered.

`wrk` does it when it is there (a C program: on few cores the client's own CPU would otherwise be
part of the figure), else a small epoll loop of our own. Which one it was is part of the report,
and both sides of a comparison always get the same one.
"""

from __future__ import annotations

import json
import re
import selectors
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from _report import CannotMeasure, percentile

_LUA = Path(__file__).with_name("_wrk.lua")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Target:
    port: int
    path: str
    token: str


@dataclass(frozen=True)
class Load:
    requests: int
    requests_per_s: float
    p50_ms: float
    p99_ms: float


def generator() -> str:
    return "wrk" if shutil.which("wrk") else "bench/_load.py"


def drive(target: Target, *, connections: int, seconds: float) -> Load:
    """Ask for so many seconds; any answer but 200 makes the measurement void."""
    return (_by_wrk if shutil.which("wrk") else _by_epoll)(target, connections, seconds)


# --- wrk -------------------------------------------------------------------------------------


def _by_wrk(target: Target, connections: int, seconds: float) -> Load:
    command = [
        "wrk",
        *("-t", "1", "-c", str(connections), "-d", f"{max(1, round(seconds))}s"),
        *("-s", str(_LUA), "-H", f"Authorization: Token {target.token}", "--timeout", "30s"),
        f"http://127.0.0.1:{target.port}{target.path}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60)
    if done.returncode:
        raise CannotMeasure(f"wrk failed: {done.stderr.strip() or done.stdout.strip()}")
    found = json.loads(done.stdout.splitlines()[-1])
    if found["errors"] or not found["requests"]:
        raise CannotMeasure(f"{found['errors']} of {found['requests']} answers were not 200")
    return Load(
        found["requests"],
        found["requests"] / found["duration_us"] * 1e6,
        found["p50_us"] / 1e3,
        found["p99_us"] / 1e3,
    )


# --- our own ---------------------------------------------------------------------------------


class _Connection:
    def __init__(self, target: Target) -> None:
        self.socket = socket.create_connection(("127.0.0.1", target.port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = (
            f"GET {target.path} HTTP/1.1\r\nHost: 127.0.0.1:{target.port}\r\n"
            f"Authorization: Token {target.token}\r\n\r\n"
        ).encode()
        self.ask()

    def ask(self) -> None:
        self._received = b""
        self._wanted_bytes = 0
        self._asked_at_s = time.perf_counter()
        self.socket.sendall(self._request)

    def take(self) -> float | None:
        """Read what is there; the latency when the answer is whole."""
        piece = self.socket.recv(262_144)
        if not piece:
            raise CannotMeasure("the server closed a connection it should have kept")
        self._received += piece
        if not self._wanted_bytes:
            head_bytes = self._received.find(b"\r\n\r\n")
            if head_bytes < 0:
                return None
            head = self._received[:head_bytes]
            length = _LENGTH.search(head)
            if not head.startswith(b"HTTP/1.1 200") or not length:
                raise CannotMeasure(f"answered {head[:60]!r}")
            self._wanted_bytes = head_bytes + 4 + int(length[1])
        if len(self._received) < self._wanted_bytes:
            return None
        return time.perf_counter() - self._asked_at_s


def _by_epoll(target: Target, connections: int, seconds: float) -> Load:
    latencies_s: list[float] = []
    with selectors.DefaultSelector() as selector:
        opened = [_Connection(target) for _ in range(connections)]
        for connection in opened:
            selector.register(connection.socket, selectors.EVENT_READ, connection)
        started_at_s = time.perf_counter()
        ends_at_s = started_at_s + seconds
        while time.perf_counter() < ends_at_s:
            for key, _ in selector.select(timeout=10):
                latency_s = key.data.take()
                if latency_s is not None:
                    latencies_s.append(latency_s)
                    key.data.ask()
        elapsed_s = time.perf_counter() - started_at_s
        for connection in opened:
            connection.socket.close()
    if not latencies_s:
        raise CannotMeasure("no answer came")
    return Load(
        len(latencies_s),
        len(latencies_s) / elapsed_s,
        percentile(latencies_s, 50) * 1e3,
        percentile(latencies_s, 99) * 1e3,
    )
