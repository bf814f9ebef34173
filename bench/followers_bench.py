"""A thousand open log followers, half of which never read: what everybody else notices of it.

One job writes a line ten times a second; 1,000 connections follow its log. Meanwhile one client
lists jobs, asks for one job and reads the end of the log, one call after another. The figure is
the slowest hundredth of those calls, beside the same calls before the followers came.
"""

from __future__ import annotations

import resource
import selectors
import socket
import threading
import time
from contextlib import ExitStack

from _children import cpu_s, pss_mb
from _platform import Platform
from _report import CannotMeasure, Report, percentile, run

FOLLOWERS = 1000
SECONDS = 10.0
SPARE_FILES = 200
SMALL = {"parallelism": 1, "pservers": 0, "mode": "single", "cpu": "100m", "memory": "32Mi"}
ENTRY = (
    "i=0; while [ $i -lt 3000 ]; do echo line $i of a log that goes on; i=$((i+1)); sleep 0.1; done"
)


def _allow_files(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        raise CannotMeasure(f"this user may open {hard} files, {count} are needed")
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


class Followers:
    """Connections that ask for a log; every second one is read, the others are left full."""

    def __init__(self, port: int, path: str, token: str) -> None:
        self._request = (
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Token {token}\r\n\r\n"
        ).encode()
        self._port = port
        self._selector = selectors.DefaultSelector()
        self._sockets: list[socket.socket] = []
        self._stopping = False
        self.bytes_read = 0
        self._reader = threading.Thread(target=self._read, daemon=True)

    def open(self) -> None:
        for number in range(FOLLOWERS):
            follower = socket.socket()
            follower.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            follower.settimeout(30)
            follower.connect(("127.0.0.1", self._port))
            follower.sendall(self._request)
            head = follower.recv(64)
            if b" 200 " not in head:
                raise CannotMeasure(f"follower {number} was answered {head!r}")
            self._sockets.append(follower)
            if number % 2:
                self._selector.register(follower, selectors.EVENT_READ)
        self._reader.start()

    def _read(self) -> None:
        while not self._stopping:
            for key, _ in self._selector.select(timeout=0.2):
                piece = key.fileobj.recv(65_536)
                self.bytes_read += len(piece)
                if not piece:
                    self._selector.unregister(key.fileobj)

    def open_count(self) -> int:
        return len(self._selector.get_map())

    def close(self) -> None:
        self._stopping = True
        if self._reader.is_alive():
            self._reader.join()
        for follower in self._sockets:
            follower.close()


def _others_ms(client, job_id: str) -> list[float]:
    """The calls of somebody else, one after another for the whole time."""
    calls = (
        lambda: client.jobs_page("all", limit=100),
        lambda: client.get(job_id),
        lambda: client.logs(job_id, "trainer-0", tail=10),
    )
    took_ms: list[float] = []
    ends_at_s = time.monotonic() + SECONDS
    while time.monotonic() < ends_at_s:
        for call in calls:
            began_s = time.perf_counter()
            call()
            took_ms.append((time.perf_counter() - began_s) * 1e3)
        time.sleep(0.02)
    return took_ms


def measure(report: Report) -> None:
    _allow_files(FOLLOWERS + SPARE_FILES)
    with ExitStack() as stack:
        platform = stack.enter_context(Platform())
        platform.up()
        client = stack.enter_context(platform.client())
        digest = client.upload_folder(str(platform.package))
        job = client.submit({"name": "chatty", "entry": ENTRY, "package_digest": digest, **SMALL})
        client.wait(job["id"], "running", timeout_s=30)
        alone_ms = _others_ms(client, job["id"])
        path = f"/api/v2/jobs/{job['id']}/logs?follow=1"
        followers = Followers(platform.port, path, client.profile.token)
        stack.callback(followers.close)
        began_s = time.monotonic()
        followers.open()
        report.add("followers_opened_per_s", FOLLOWERS / (time.monotonic() - began_s))
        server = [platform.server_pid]
        used_s, read_bytes, began_s = cpu_s(server), followers.bytes_read, time.monotonic()
        followed_ms = _others_ms(client, job["id"])
        elapsed_s = time.monotonic() - began_s
        if followers.open_count() != FOLLOWERS // 2:
            raise CannotMeasure("followers were cut off")
        report.add("alone_p50_ms", percentile(alone_ms, 50))
        report.add("alone_p99_ms", percentile(alone_ms, 99))
        report.add("followed_p50_ms", percentile(followed_ms, 50))
        report.add("followed_p99_ms", percentile(followed_ms, 99), at_most=1000)
        report.add("server_cpu_percent", (cpu_s(server) - used_s) / elapsed_s * 100)
        report.add("server_pss_mb", pss_mb(server))
        report.add("followed_kb_per_s", (followers.bytes_read - read_bytes) / elapsed_s / 1e3)
        report.note("followers", FOLLOWERS)


if __name__ == "__main__":
    run("followers", measure)
