"""Who may hand over which open file, and when it is let go."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paddlecloud.pfs.serving import handovers
from paddlecloud.pfs.serving.handovers import Desk
from paddlecloud.wire.handovers import TAKEN

DATA = b"some bytes"
WITHIN_S = 10.0


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    started = Desk(os.stat(tmp_path).st_dev)
    started.start()
    return started


@pytest.fixture
def source(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "source"
    path.write_bytes(DATA)
    fd = os.open(path, os.O_RDONLY)
    yield fd
    os.close(fd)


@contextmanager
def visitor(name: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as link:
        link.settimeout(WITHIN_S)
        link.connect("\0" + name)
        yield link


def give(link: socket.socket, ticket: str, *fds: int) -> bytes:
    """The answer; nothing when it was refused."""
    try:
        socket.send_fds(link, [ticket.encode()], fds)
        return link.recv(16)
    except (BrokenPipeError, ConnectionResetError):
        return b""


def wait_until(is_so: Callable[[], bool]) -> None:
    until_s = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < until_s
        time.sleep(0.005)


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def is_let_go(desk: Desk, upload_id: str) -> bool:
    fd = desk.open(upload_id)
    if fd is not None:
        os.close(fd)
    return fd is None


def test_gives_a_file_that_was_handed_over_until_the_client_leaves(desk, source):
    before = open_descriptors()
    offer = desk.offer("u1", len(DATA))
    with visitor(offer["socket"]) as link:
        assert give(link, offer["ticket"], source) == TAKEN
        fd = desk.open("u1")
        assert os.pread(fd, 100, 0) == DATA
        assert not os.get_inheritable(fd)
        assert not os.get_inheritable(desk._files["u1"])
        assert desk.open("u2") is None
    wait_until(lambda: is_let_go(desk, "u1"))
    assert os.pread(fd, 100, 0) == DATA  # whoever reads is not cut off
    os.close(fd)
    assert open_descriptors() == before


def _pipe(_: Path) -> int:
    reading, writing = os.pipe()
    os.close(writing)
    return reading


def _shorter(folder: Path) -> int:
    (folder / "shorter").write_bytes(DATA[:-1])
    return os.open(folder / "shorter", os.O_RDONLY)


def _elsewhere(_: Path) -> int:
    fd = os.memfd_create("elsewhere")
    os.write(fd, DATA)
    return fd


@pytest.mark.parametrize(
    "make",
    [
        _pipe,
        _shorter,
        _elsewhere,
        lambda folder: os.open(folder, os.O_RDONLY),
        lambda folder: os.open("/dev/zero", os.O_RDONLY),
    ],
    ids=["a pipe", "another length", "another filesystem", "a directory", "a device"],
)
def test_refuses_what_is_no_such_file(desk, tmp_path, source, make):
    before = open_descriptors()
    offer = desk.offer("u1", len(DATA))
    fd = make(tmp_path)
    with visitor(offer["socket"]) as link:
        assert give(link, offer["ticket"], fd) == b""
    os.close(fd)
    assert desk.open("u1") is None
    assert open_descriptors() == before


def test_refuses_a_file_it_may_not_look_at(desk, source, monkeypatch):
    def refuse(fd: int) -> os.stat_result:
        raise PermissionError(13, "as some mounts say to everybody but their owner")

    before = open_descriptors()
    offer = desk.offer("u1", len(DATA))
    with visitor(offer["socket"]) as link, monkeypatch.context() as patched:
        patched.setattr(handovers.os, "fstat", refuse)
        assert give(link, offer["ticket"], source) == b""
    wait_until(lambda: open_descriptors() == before)


def test_takes_nothing_from_other_users(desk, source, monkeypatch):
    offer = desk.offer("u1", len(DATA))
    uid = os.geteuid()
    monkeypatch.setattr(handovers.os, "geteuid", lambda: uid + 1)
    with visitor(offer["socket"]) as link:
        assert give(link, offer["ticket"], source) == b""
    assert desk.open("u1") is None


@pytest.mark.parametrize("count", [0, 2])
def test_takes_exactly_one_file(desk, source, count):
    before = open_descriptors()
    offer = desk.offer("u1", len(DATA))
    with visitor(offer["socket"]) as link:
        answer = give(link, offer["ticket"], *[source] * count)
    if count:  # the kernel drops what nobody made room for
        assert answer == TAKEN
        wait_until(lambda: is_let_go(desk, "u1"))
    else:
        assert answer == b""
    assert desk.open("u1") is None
    wait_until(lambda: open_descriptors() == before)


@pytest.mark.parametrize("ticket", ["", "0" * 32, "ü" * 16, "x" * 5000])
def test_asks_for_a_ticket(desk, source, ticket):
    offer = desk.offer("u1", len(DATA))
    with visitor(offer["socket"]) as link:
        assert give(link, ticket, source) == b""
    assert desk.open("u1") is None


def test_a_ticket_is_good_once(desk, source):
    offer = desk.offer("u1", len(DATA))
    with visitor(offer["socket"]) as first, visitor(offer["socket"]) as second:
        assert give(first, offer["ticket"], source) == TAKEN
        assert give(second, offer["ticket"], source) == b""
        os.close(desk.open("u1"))


def test_the_newest_wins_and_the_older_takes_nothing_away_when_it_leaves(desk, source):
    before = open_descriptors()
    older, newer = (desk.offer("u1", len(DATA)) for _ in range(2))
    with visitor(newer["socket"]) as second:
        with visitor(older["socket"]) as first:
            assert give(first, older["ticket"], source) == TAKEN
            assert give(second, newer["ticket"], source) == TAKEN
        wait_until(lambda: open_descriptors() == before + 3)  # a socket's two ends, and the file
        os.close(desk.open("u1"))
    wait_until(lambda: is_let_go(desk, "u1"))
    assert open_descriptors() == before


def test_who_says_nothing_has_to_leave(monkeypatch, desk):
    monkeypatch.setattr(handovers, "_TICKET_WITHIN_S", 0.0)
    with visitor(desk.offer("u1", 1)["socket"]) as link:
        assert link.recv(1) == b""


def test_has_room_for_so_many(monkeypatch, desk, source):
    monkeypatch.setattr(handovers, "MOST_CLIENTS", 1)
    offers = [desk.offer(name, len(DATA)) for name in ("u1", "u2")]
    with visitor(offers[0]["socket"]) as first, visitor(offers[1]["socket"]) as second:
        assert give(first, offers[0]["ticket"], source) == TAKEN
        assert give(second, offers[1]["ticket"], source) == b""
    assert desk.open("u2") is None


def test_offers_nothing_before_it_is_started():
    assert Desk(0).offer("u1", 1) is None


def test_offers_nothing_where_there_are_no_such_sockets(monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(97, "Address family not supported by protocol")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    desk = Desk(0)
    desk.start()
    assert desk.offer("u1", 1) is None
