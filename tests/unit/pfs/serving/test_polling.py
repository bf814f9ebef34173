"""The thread that waits: every wait ends, and what is cut is told so."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from paddlecloud.pfs.serving import polling
from paddlecloud.pfs.serving.links import READ
from paddlecloud.pfs.serving.polling import Poller
from paddlecloud.pfs.serving.workers import Pool, Steps, Task
from tests.patience import PATIENCE_S

_REQUEST = b"GET / HTTP/1.1\r\n\r\n"


@dataclass
class Serving:
    port: int = 0
    heads: list[bytes] = field(default_factory=list)
    was_cut: threading.Event = field(default_factory=threading.Event)
    steps: Callable[[Task, bytes], Steps] | None = None

    def connect(self, address: str = "127.0.0.1") -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 60, (address, 0))

    def begin(self, task: Task, raw: bytes) -> Steps:
        self.heads.append(raw)
        if self.steps is not None:
            return (yield from self.steps(task, raw))
        task.link.send(b"answer")
        return True

    def wait_for_ever(self, task: Task, raw: bytes) -> Steps:
        task.patience_s = 0.1
        try:
            while True:
                task.link.recv(1000)
                yield READ
        finally:
            self.was_cut.set()


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    monkeypatch.setattr(polling, "_HEAD_WITHIN_S", 0.2)
    monkeypatch.setattr(polling, "_IDLE_S", 0.2)
    monkeypatch.setattr(polling, "_SWEEP_S", 0.02)
    listener = socket.create_server(("127.0.0.1", 0))
    found = Serving(listener.getsockname()[1])
    poller = Poller(listener, found.begin, max_connections=8, max_per_address=6)
    poller.pool = Pool("test", 2, poller)
    poller.pool.start()
    thread = threading.Thread(target=poller.run, daemon=True)
    thread.start()
    yield found
    poller.stop()
    poller.cut()
    poller.pool.stop()
    for worker in poller.pool.workers:
        worker.thread.join(PATIENCE_S)
    poller.end()
    thread.join(PATIENCE_S)
    listener.close()


def test_gives_up_on_a_head_that_does_not_come_to_its_end(serving: Serving) -> None:
    with serving.connect() as sock:
        sock.sendall(_REQUEST[:-1])
        assert sock.recv(100).startswith(b"HTTP/1.1 408 ")
    assert serving.heads == []


def test_gives_a_trickling_head_no_more_time_than_others(serving: Serving) -> None:
    with serving.connect() as sock:
        answer = b""
        sock.settimeout(0.05)
        while not answer:
            try:
                sock.sendall(b"X")
                answer = sock.recv(100)
            except TimeoutError:
                continue
        assert answer.startswith(b"HTTP/1.1 408 ")


def test_closes_connections_nobody_uses(serving: Serving) -> None:
    with serving.connect() as silent, serving.connect() as idle:
        idle.sendall(_REQUEST)
        assert idle.recv(100) == b"answer"
        assert silent.recv(100) == b""
        assert idle.recv(100) == b""


def test_lets_connections_without_a_request_give_way(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Renewed as fast as they are cut, they keep nobody out: neither elsewhere nor beside them."""
    monkeypatch.setattr(polling, "_HEAD_WITHIN_S", 60.0)
    with ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(serving.connect())
        for address in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
            with serving.connect(address) as sock:
                sock.sendall(_REQUEST)
                assert sock.recv(100) == b"answer"


def test_refuses_an_address_whose_requests_fill_its_places_and_no_other(serving: Serving) -> None:
    under_way = threading.Semaphore(0)

    def wait(task: Task, raw: bytes) -> Steps:
        under_way.release()
        while task.link.recv(1) is None:
            yield READ
        return False

    serving.steps = wait
    with ExitStack() as stack:
        for _ in range(6):
            stack.enter_context(serving.connect()).sendall(_REQUEST)
        for _ in range(6):
            assert under_way.acquire(timeout=PATIENCE_S)
        with serving.connect() as sock:
            assert sock.recv(100).startswith(b"HTTP/1.1 503 ")
        serving.steps = None
        with serving.connect("127.0.0.2") as sock:
            sock.sendall(_REQUEST)
            assert sock.recv(100) == b"answer"


def test_cuts_a_transfer_that_moves_nothing_and_lets_it_clean_up(serving: Serving) -> None:
    serving.steps = serving.wait_for_ever
    with serving.connect() as sock:
        sock.sendall(_REQUEST)
        assert sock.recv(100) == b""
    assert serving.was_cut.wait(PATIENCE_S)


def test_lets_a_transfer_go_on_that_moves_now_and_then(serving: Serving) -> None:
    seen = threading.Event()

    def slow(task: Task, raw: bytes) -> Steps:
        task.patience_s = 10
        got = b""
        while len(got) < 3:
            data = task.link.recv(1)
            if data is None:
                seen.set()
                yield READ
            else:
                got += data
        task.link.send(got)
        return True

    serving.steps = slow
    with serving.connect() as sock:
        sock.sendall(_REQUEST)
        for letter in b"abc":
            assert seen.wait(PATIENCE_S)
            seen.clear()
            sock.sendall(bytes((letter,)))
        assert sock.recv(100) == b"abc"


def test_ends_when_the_thread_sees_it_before_it_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    """It must not have closed by then what would have woken it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        poller = Poller(listener, Serving().begin, max_connections=1)
        thread = threading.Thread(target=poller.run, daemon=True)
        thread.start()
        ring = os.eventfd_write

        def ring_late(alarm: int, value: int) -> None:
            ring(alarm, value)
            thread.join(0.3)  # it would be long gone by the second ring
            ring(alarm, value)

        monkeypatch.setattr(os, "eventfd_write", ring_late)
        poller.end()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_takes_heads_apart_that_come_together_or_in_pieces(serving: Serving) -> None:
    with serving.connect() as sock:
        sock.sendall(_REQUEST * 3 + _REQUEST[:5])
        got = b""
        while len(got) < 18:
            got += sock.recv(100)
        sock.sendall(_REQUEST[5:])
        assert sock.recv(100) == b"answer"
    assert serving.heads == [_REQUEST] * 4
