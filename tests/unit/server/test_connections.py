"""Who gets a place, and who gives way."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from paddlecloud.pfs.serving.connection_counts import network_of
from paddlecloud.server.configuration import ConnectionLimits
from paddlecloud.server.connections import Connection, Connections, Listener, within_descriptors

HERE, THERE = "192.0.2.1", "192.0.2.2"


class Place:
    """Connections as they are accepted, with addresses of the test's choosing."""

    def __init__(self, stack: ExitStack, **limits: int) -> None:
        self.connections = Connections(ConnectionLimits(**limits))
        self._stack = stack

    def connect(self, address: str) -> tuple[Connection | None, socket.socket]:
        ours, theirs = socket.socketpair()
        theirs.settimeout(20)
        self._stack.enter_context(theirs)
        admitted = self.connections.admit(ours, address)
        if admitted is not None:
            self._stack.callback(admitted.close)
        return admitted, theirs

    def work(self, address: str) -> Connection:
        """One with a request under way."""
        connection, _ = self.connect(address)
        assert connection is not None
        self.connections.has_request(connection)
        return connection


@pytest.fixture
def place() -> Iterator[Place]:
    with ExitStack() as stack:
        yield Place(stack, most=4, per_address=3)


def test_an_address_that_is_full_of_requests_is_refused_and_told(place: Place) -> None:
    for _ in range(3):
        place.work(HERE)
    refused, theirs = place.connect(HERE)
    assert refused is None
    assert theirs.recv(100).startswith(b"HTTP/1.1 503 ")
    assert place.connect(THERE)[0] is not None


def test_the_one_that_waited_longest_gives_way_to_its_own_address(place: Place) -> None:
    busy = place.work(HERE)
    _, first = place.connect(HERE)
    _, second = place.connect(HERE)
    assert place.connect(HERE)[0] is not None
    assert first.recv(1) == b""  # cut
    second.setblocking(False)
    with pytest.raises(BlockingIOError):
        second.recv(1)
    assert busy.fileno() >= 0


def test_the_address_with_the_most_gives_way_when_all_places_are_taken(place: Place) -> None:
    _, first = place.connect(HERE)
    place.connect(HERE)
    place.connect(HERE)
    _, other = place.connect(THERE)
    assert place.connect("192.0.2.3")[0] is not None
    assert first.recv(1) == b""
    other.setblocking(False)
    with pytest.raises(BlockingIOError):
        other.recv(1)


def test_a_closed_connection_gives_its_place_back(place: Place) -> None:
    for _ in range(10):
        for connection in [place.work(HERE) for _ in range(3)]:
            connection.close()
            connection.close()  # counted once
    assert place.connect(HERE)[0] is not None


def test_a_listener_leaves_the_loop_after_a_bunch_of_refusals() -> None:
    connections = Connections(ConnectionLimits(most=1, per_address=1))
    with ExitStack() as stack:
        listener = Listener(socket.create_server(("127.0.0.1", 0), backlog=200), connections)
        stack.enter_context(listener)
        for _ in range(100):
            client = socket.create_connection(listener.getsockname())
            stack.enter_context(client)
        accepted, _ = listener.accept()
        assert isinstance(accepted, Connection)
        stack.enter_context(accepted)
        connections.has_request(accepted)
        with pytest.raises(BlockingIOError):
            listener.accept()
        listener.settimeout(0)
        with pytest.raises(BlockingIOError):  # the rest, and none was left behind
            listener.accept()


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_an_ipv6_subscriber_is_one_address(address: str, network: str) -> None:
    assert network_of(address) == network


@pytest.mark.parametrize(
    ("soft", "hard", "most", "raised", "left"),
    [
        (1024, 1 << 20, 4096, 2 * 4096 + 8192, 4096),
        (1024, resource.RLIM_INFINITY, 4096, 2 * 4096 + 8192, 4096),
        (1 << 20, 1 << 20, 4096, 1 << 20, 4096),
        (1024, 4096, 4096, 4096, 1024),  # half are the engine's
        (1024, 1024, 4096, 1024, 256),
        (1024, 1024, 100, 1024, 100),
    ],
)
def test_connections_are_fewer_where_descriptors_do_not_reach(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, most: int, raised: int, left: int
) -> None:
    limits = [(soft, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda which, pair: limits.append(pair))
    assert within_descriptors(ConnectionLimits(most=most)).most == left
    assert limits[-1] == (raised, hard)
