"""One account at its worst, and what another one notices of it.

Each abuse goes on in the background, on a server whose limits per account are small enough to
reach, while somebody else makes calls, submits a job and sees it end. How long those calls take is
a figure and no matter of a test: here they are answered, all of them.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest

from tests.patience import PATIENCE_S
from tests.server.running import Caller, Running

_CALLS = 40


class Abuse:
    """Mallory, and everything to annoy others with."""

    def __init__(self, server: Running) -> None:
        self.server = server
        self.mallory = server.account("mallory")
        self.job = self.mallory.submit("mine")
        self.mallory.wait(self.job["id"])
        (run_file,) = (server.state / "run").glob("pfs*.json")
        self.files = Caller(json.loads(run_file.read_text())["port"])
        self.files.headers = self.mallory.headers  # type: ignore[method-assign]
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.rounds = 0

    def repeat(self, *calls: Callable[[], object], threads: int = 4) -> None:
        """Again and again, on several connections, until the end."""

        def work() -> None:
            while not self._stop.is_set():
                for call in calls:
                    self.rounds += 1
                    with suppress(OSError, ValueError):
                        call()

        for _ in range(threads):
            self._threads.append(threading.Thread(target=work, daemon=True))
            self._threads[-1].start()

    def hold(self, count: int, data: bytes, *, files: bool = False) -> None:
        """So many connections that have sent this and wait."""
        port = self.files.port if files else self.server.port
        held = ExitStack()
        for _ in range(count):
            with suppress(OSError):
                sock = held.enter_context(socket.create_connection(("127.0.0.1", port), 20))
                sock.sendall(data)
            self.rounds += 1
        self._threads.append(threading.Thread(target=lambda: (self._stop.wait(), held.close())))
        self._threads[-1].start()

    def head(self, line: str, *more: str) -> bytes:
        own = [f"{name}: {value}" for name, value in self.mallory.headers().items()]
        return "\r\n".join([f"{line} HTTP/1.1", "Host: x", *own, *more, "", ""]).encode()

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        self._stop, self._threads, self.rounds = threading.Event(), [], 0


def _order(abuse: Abuse, word: str) -> object:
    body = {"opType": word, "jobIds": [abuse.job["id"]] * 200}
    return abuse.mallory.call("PUT", "/v1/job", body)


def _member(abuse: Abuse) -> object:
    body = {"account": "mallory", "role": "owner"}
    return abuse.mallory.call(
        "PUT", "/api/v2/groups/mallory/members", body, Idempotency_Key=str(time.monotonic_ns())
    )


def _move(abuse: Abuse) -> object:
    rows = [{"replica": f"trainr-{n}", "host": "x"} for n in range(5000)]
    return abuse.mallory.post(f"/api/v2/jobs/{abuse.job['id']}/move", {"replicas": rows})


def _upload(abuse: Abuse) -> object:
    name = f"f{time.monotonic_ns()}"
    body = {"path": f"/pfs/local/home/mallory/{name}", "size": 1 << 30}
    return abuse.mallory.post("/api/v2/pfs/uploads", body)


def _deep(abuse: Abuse) -> object:
    return abuse.mallory.post("/api/v2/jobs", b'{"a":' * 100_000 + b"1" + b"}" * 100_000)


def _guess(abuse: Abuse) -> object:
    guess = Caller(abuse.server.port, "Basic bWFsbG9yeTp3cm9uZw==")
    return guess.get("/api/v2/whoami")


_UNKNOWN = "&".join(f"limi{n}=1" for n in range(99))
ABUSES: dict[str, Callable[[Abuse], None]] = {
    "heads that never end": lambda a: a.hold(80, b"GET / HTTP/1.1\r\nx: "),
    "bodies that never come": lambda a: a.hold(
        80, a.head("POST /api/v2/jobs", "Content-Length: 1000000")
    ),
    "waits": lambda a: a.hold(80, a.head(f"GET /api/v2/jobs/{a.job['id']}/wait?timeout_s=60")),
    "followed logs that nobody reads": lambda a: a.hold(
        80, a.head(f"GET /api/v2/jobs/{a.job['id']}/logs?follow=1")
    ),
    "requests sent ahead": lambda a: a.hold(10, a.head("GET /api/v2/jobs?limit=1000") * 15),
    "unknown parameters": lambda a: a.repeat(lambda: a.mallory.get(f"/api/v2/jobs?{_UNKNOWN}")),
    "large bodies": lambda a: a.repeat(lambda: a.mallory.post("/api/v2/jobs", b" " * 1_000_000)),
    "deep bodies": lambda a: a.repeat(lambda: _deep(a)),
    "wrong passwords": lambda a: a.repeat(lambda: _guess(a)),
    "misspelt replicas": lambda a: a.repeat(lambda: _move(a)),
    "two hundred orders at once": lambda a: a.repeat(
        lambda: _order(a, "Rerun"), lambda: _order(a, "Kill"), threads=2
    ),
    "members with a key": lambda a: a.repeat(lambda: _member(a)),
    "whole logs": lambda a: a.repeat(lambda: a.mallory.get("/api/v1/logs/?jobname=mine&n=1000000")),
    "whole lists": lambda a: a.repeat(lambda: a.mallory.get("/api/v2/jobs?limit=1000")),
    "begun uploads": lambda a: a.repeat(lambda: _upload(a)),
    "paths of many parts": lambda a: a.repeat(lambda: a.files.get("/" * 60_000), threads=8),
    "silent connections to the files": lambda a: a.hold(300, b"", files=True),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = Running(
        tmp_path_factory.mktemp("abuse") / "state",
        PADDLECLOUD_MAX_REQUESTS="40",
        PADDLECLOUD_MAX_CONNECTIONS_PER_ADDRESS="200",
        PADDLECLOUD_PFS_MAX_CONNECTIONS_PER_ADDRESS="100",
    ).start()
    yield running
    assert running.stop() == 0, running.log.read_text()


@pytest.fixture(scope="module")
def abuse(server: Running) -> Abuse:
    return Abuse(server)


@pytest.fixture(scope="module")
def victim(server: Running) -> Caller:
    return server.account("victim")


def _work(victim: Caller, name: str) -> None:
    """Calls of several kinds, while a job of this name goes from submit to its end."""
    job = victim.submit(name)
    paths = ("/healthz", "/api/v2/whoami", "/api/v2/jobs", f"/api/v2/jobs/{job['id']}")
    for number in range(_CALLS):
        answer = victim.get(paths[number % len(paths)])
        assert answer.status == 200, answer.body
    assert victim.wait(job["id"])["phase"] == "Succeeded"
    entries = victim.get("/api/v2/pfs/entries?path=/pfs/local/home/victim")
    assert entries.status == 200, entries.body


@pytest.mark.parametrize("name", ABUSES)
def test_another_account_goes_on_working(abuse: Abuse, victim: Caller, name: str) -> None:
    ABUSES[name](abuse)
    try:
        _work(victim, f"job{list(ABUSES).index(name)}")
        assert abuse.rounds > 0
    finally:
        abuse.end()


def test_the_list_is_long_enough() -> None:
    assert len(ABUSES) >= 15
