"""What somebody who has no account can cost the server: next to nothing.

Attacks on a server whose limits are small enough to reach; most end with the question whether
others are served.
"""

from __future__ import annotations

import re
import resource
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.server.running import Running, is_readable

_HEAD_S = 0.5


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = Running(
        tmp_path_factory.mktemp("limited") / "state",
        PADDLECLOUD_MAX_CONNECTIONS="24",
        PADDLECLOUD_MAX_CONNECTIONS_PER_ADDRESS="16",
        PADDLECLOUD_HEAD_TIMEOUT_S=str(_HEAD_S),
        PADDLECLOUD_BODY_TIMEOUT_S=str(_HEAD_S),
        PADDLECLOUD_MAX_REQUESTS="8",
    ).start()
    yield running
    assert running.stop() == 0, running.log.read_text()
    assert "Traceback" not in running.log.read_text(), running.log.read_text()


def _connect(server: Running, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), 20, (address, 0))


def _all(sock: socket.socket) -> bytes:
    """Everything until the server ends it."""
    found = b""
    try:
        while data := sock.recv(65536):
            found += data
    except ConnectionResetError:
        pass
    return found


def _send_until_cut(sock: socket.socket, piece: bytes, most_bytes: int) -> int:
    """How many bytes it took before it ended the connection."""
    sent = 0
    try:
        while sent < most_bytes:
            sock.sendall(piece)
            sent += len(piece)
    except OSError:
        pass
    return sent


def _rss_bytes(server: Running) -> int:
    assert server.process is not None
    text = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+) kB", text)[0]) * 1024


def _is_served(server: Running) -> bool:
    return server.admin.get("/api/v2/whoami").status == 200


# --- heads -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "piece",
    [b"a: b\r\n" * 1000, b"x" * 6000, b"\r\n" * 3000],
    ids=["many-headers", "one-endless-header", "empty-lines"],
)
def test_a_head_without_end_is_refused_before_it_fills_the_memory(
    limited: Running, piece: bytes
) -> None:
    before = _rss_bytes(limited)
    with _connect(limited) as sock:
        if piece[:1] != b"\r":
            sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nx: ")
        _send_until_cut(sock, piece, 64 << 20)
    assert _rss_bytes(limited) - before < 16 << 20
    assert _is_served(limited)


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\n" + b"".join(b"a%d: b\r\n" % n for n in range(200)) + b"\r\n",
        b"GET /?" + b"x" * 40_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\ncookie: " + b"x" * 40_000 + b"\r\n\r\n",
    ],
    ids=["headers", "target", "value"],
)
def test_a_head_over_a_limit_is_answered_431(limited: Running, head: bytes) -> None:
    with _connect(limited) as sock:
        sock.sendall(head)
        answer = _all(sock)
    assert answer.startswith(b"HTTP/1.1 431 "), answer[:200]
    assert b'"code":"invalid_input"' in answer


def test_a_head_within_the_limits_passes_in_any_pieces(limited: Running) -> None:
    head = b"GET /healthz HTTP/1.1\r\nHost: x\r\ncookie: " + b"x" * 20_000 + b"\r\n\r\n"
    with _connect(limited) as sock:
        for at in range(0, len(head), 7000):
            sock.sendall(head[at : at + 7000])
        assert sock.recv(100).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("start", [b"", b"GET / HTTP/1.1\r\nHo", b"\r\n"])
def test_a_head_that_does_not_come_is_cut(limited: Running, start: bytes) -> None:
    with _connect(limited) as sock:
        sock.sendall(start)
        answer = _all(sock)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 408 ")


def test_a_head_that_trickles_has_no_more_time_than_others(limited: Running) -> None:
    with _connect(limited) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nx: ")
        while not is_readable(sock, _HEAD_S / 10):
            sock.sendall(b"y")
        assert _all(sock).startswith(b"HTTP/1.1 408 ")


def test_a_second_request_has_its_time_too(limited: Running) -> None:
    with _connect(limited) as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert sock.recv(1000).startswith(b"HTTP/1.1 200 ")
        sock.sendall(b"GET /healthz HTTP/1.1\r\n")
        assert b"HTTP/1.1 408 " in _all(sock)


def test_requests_sent_ahead_are_bounded(limited: Running) -> None:
    with _connect(limited) as sock:
        sock.sendall(b"GET /api/v2/jobs HTTP/1.1\r\nHost: x\r\n\r\n" * 5000)
        assert _all(sock).count(b"HTTP/1.1 ") < 100
    assert _is_served(limited)


# --- bodies ----------------------------------------------------------------------------------


def test_who_is_not_logged_in_is_told_so_before_the_body(limited: Running) -> None:
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    for path in (b"/api/v2/jobs", b"/v1/job", b"/v1/file", b"/api/v1/jobs/"):
        with _connect(limited) as sock:
            sock.sendall(head % path)
            assert sock.recv(100).startswith(b"HTTP/1.1 401 "), path


def test_a_client_that_waits_is_not_asked_for_the_body_of_a_stranger(limited: Running) -> None:
    with _connect(limited) as sock:
        sock.sendall(
            b"POST /api/v2/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n"
            b"Expect: 100-continue\r\n\r\n"
        )
        assert sock.recv(100).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("path", [b"/api-token-auth/", b"/admin/login/"])
def test_the_login_takes_small_bodies_only(limited: Running, path: bytes) -> None:
    with _connect(limited) as sock:
        sock.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n" % path)
        _send_until_cut(sock, b"x" * 10_000, 200_000)
        assert sock.recv(100).startswith(b"HTTP/1.1 413 ")


def test_a_body_that_falls_silent_is_cut(limited: Running) -> None:
    head = b"POST /api-token-auth/ HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
    with _connect(limited) as sock:
        sock.sendall(head)
        _all(sock)  # returns when it was cut
    assert _is_served(limited)


def test_what_trickles_after_the_answer_is_cut(limited: Running) -> None:
    with _connect(limited) as sock:
        sock.sendall(b"POST /api/v2/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 401 ")
        tries = 0
        try:
            while True:
                sock.sendall(b"1\r\nx\r\n")
                tries += not is_readable(sock, _HEAD_S / 10)
                if is_readable(sock, 0) and not sock.recv(1000):
                    break
                assert tries < 100
        except OSError:
            pass
    assert _is_served(limited)


# --- parameters ------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["limi=3", "&".join(f"limi{n}" for n in range(2000)), "limit=x"])
@pytest.mark.parametrize("path", ["/api/v2/jobs", "/api/v2/nothing", "/api/v2/jobs/x/wait"])
def test_parameters_of_strangers_are_not_looked_at(server: Running, path: str, query: str) -> None:
    assert server.anonymous.get(f"{path}?{query}").status == 401


def test_parameters_are_bounded_in_number(server: Running) -> None:
    query = "&".join(f"limi{n}" for n in range(2000))
    answer = server.admin.get(f"/api/v2/jobs?{query}")
    assert (answer.status, answer.json["field"]) == (400, "query")


# --- connections -----------------------------------------------------------------------------


def test_silent_connections_of_one_address_leave_room_for_it_and_for_others(
    limited: Running,
) -> None:
    with ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(_connect(limited))
        assert limited.anonymous.get("/healthz").status == 200  # the same address
        with _connect(limited, "127.0.0.2") as other:
            other.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert other.recv(100).startswith(b"HTTP/1.1 200 ")


def test_a_handshake_that_does_not_come_is_cut(make_server: Callable[..., Running]) -> None:
    server = make_server(PADDLECLOUD_TLS="1", PADDLECLOUD_HEAD_TIMEOUT_S="0.5").start()
    with _connect(server) as sock:
        assert _all(sock) == b""
    context = ssl.create_default_context(cafile=str(server.state / "secrets" / "ca.pem"))
    with _connect(server) as raw, context.wrap_socket(raw, server_hostname="127.0.0.1") as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 200 ")


def test_descriptors_are_raised_to_what_the_connections_need(
    make_server: Callable[..., Running],
) -> None:
    """Asked of the kernel about the running server, which was started with fewer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
    try:
        server = make_server().start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert server.process is not None
    text = Path(f"/proc/{server.process.pid}/limits").read_text()
    found = int(re.findall(r"Max open files\s+(\d+)", text)[0])
    assert found >= min(hard if hard != resource.RLIM_INFINITY else 1 << 30, 2 * 4096 + 8192)


# --- trailers and logs -----------------------------------------------------------------------


def test_trailers_are_no_headers(server: Running) -> None:
    token = server.admin_token
    with _connect(server) as sock:
        sock.sendall(
            b"POST /api/v2/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"2\r\n{}\r\n0\r\nAuthorization: Token " + token.encode() + b"\r\n\r\n"
        )
        assert sock.recv(100).startswith(b"HTTP/1.1 401 ")


def test_strangers_do_not_fill_the_log(limited: Running) -> None:
    before = limited.log.stat().st_size
    for _ in range(200):
        with _connect(limited) as sock:
            sock.sendall(b"\x16\x03\x01 what is this\r\n\r\n")
            _all(sock)
    for _ in range(50):
        with _connect(limited) as sock:
            sock.sendall(
                b"GET /x HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
            )
            sock.recv(100)
    assert limited.log.stat().st_size - before < 20_000
