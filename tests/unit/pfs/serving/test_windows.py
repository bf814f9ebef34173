"""How much of a client's bytes may be on the way: little from a neighbour, all from afar."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator

import pytest

from paddlecloud.pfs.serving import links
from paddlecloud.sdk import http
from paddlecloud.wire import windows

_FAR_US = 0  # nobody is nearer


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock


def _window(sock: socket.socket) -> int:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP)


def _accepted(listener: socket.socket) -> tuple[socket.socket, socket.socket]:
    client = socket.create_connection(listener.getsockname())
    return client, listener.accept()[0]


@pytest.mark.parametrize(("rtt_us", "is_near"), [(0, False), (1, True), (999, True), (1000, False)])
def test_a_round_trip_below_a_millisecond_is_near_if_it_was_measured(rtt_us, is_near):
    told = bytes(68) + rtt_us.to_bytes(4, sys.byteorder) + bytes(100)
    assert windows.is_near(told) == is_near


def test_a_client_goes_on_where_the_system_takes_no_hints(listener, monkeypatch):
    monkeypatch.setattr(socket, "TCP_INFO", 9999)
    port = listener.getsockname()[1]
    connection = http.Connection(http.Endpoint(f"http://127.0.0.1:{port}"), None, 5.0)
    connection.keep_little_on_the_way()
    connection.close()


def test_a_server_gives_a_neighbour_a_small_window(listener):
    client, taken = _accepted(listener)
    with client, taken:
        links.Link(taken)
        assert _window(taken) == 1 << 20


def test_a_server_gives_who_is_far_away_the_whole_window(listener, monkeypatch):
    monkeypatch.setattr(windows, "NEAR_US", _FAR_US)
    client, taken = _accepted(listener)
    with client, taken:
        before = _window(taken)
        links.Link(taken)
        assert _window(taken) == before != 1 << 20


@pytest.mark.parametrize("is_near", [True, False])
def test_a_client_gives_a_neighbour_a_small_window(listener, monkeypatch, is_near):
    if not is_near:
        monkeypatch.setattr(windows, "NEAR_US", _FAR_US)
    port = listener.getsockname()[1]
    connection = http.Connection(http.Endpoint(f"http://127.0.0.1:{port}"), None, 5.0)
    connection.keep_little_on_the_way()
    assert (_window(connection._socket) == 1 << 20) == is_near
    unsent = connection._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT)
    assert unsent == 1 << 19
    connection.close()


def _congestion(sock: socket.socket) -> bytes:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")


@pytest.mark.parametrize("is_here", [True, False])
def test_nothing_is_paced_on_one_machine(listener, monkeypatch, is_here):
    before = _congestion(listener)
    if not is_here:
        monkeypatch.setattr(windows, "is_here", lambda own, other: False)
    connection = http.Connection(
        http.Endpoint(f"http://127.0.0.1:{listener.getsockname()[1]}"), None, 5.0
    )
    taken = listener.accept()[0]
    connection.keep_little_on_the_way()
    links.Link(taken)
    assert connection.is_here == is_here
    wanted = b"reno" if is_here else before
    assert _congestion(taken) == _congestion(connection._socket) == wanted
    connection.close()
    taken.close()


def test_a_refused_hint_does_not_keep_the_others_from_being_given(listener, monkeypatch):
    monkeypatch.setattr(windows, "UNPACED", b"no-such")
    endpoint = http.Endpoint(f"http://127.0.0.1:{listener.getsockname()[1]}")
    connection = http.Connection(endpoint, None, 5.0)
    taken = listener.accept()[0]
    connection.keep_little_on_the_way()
    links.Link(taken)
    assert _window(taken) == _window(connection._socket) == 1 << 20
    connection.close()
    taken.close()


def test_who_has_another_address_is_on_another_machine():
    assert windows.is_here("10.0.0.1", "10.0.0.1")
    assert not windows.is_here("10.0.0.1", "10.0.0.2")
