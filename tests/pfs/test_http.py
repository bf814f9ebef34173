"""HTTP as such: conditions and ranges, keep-alive, limits, and requests meant to confuse."""

from __future__ import annotations

import json
import os
import socket
import struct
import time

import pytest

from tests.pfs.calls import PFS, ask, begin, content, digest_of, put, stream
from tests.pfs.running import Caller, Running, read_all

_DATA = os.urandom(100_000)
_TOKEN = b"Host: x\r\nAuthorization: Token alice\r\n"


@pytest.fixture
def stored(alice: Caller, home: str) -> str:
    # An old time: the tag of a file that was written this instant is not one to continue on.
    put(alice, f"{home}/f", _DATA, mtime_ns=1_600_000_000_000_000_000)
    return f"{home}/f"


# --- ranges and conditions ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=10-19", 10, 19),
        ("bytes=99990-", 99_990, 99_999),
        ("bytes=99990-200000", 99_990, 99_999),
        ("bytes=-10", 99_990, 99_999),
        ("bytes=-200000", 0, 99_999),
        ("BYTES = 5-6", 5, 6),
    ],
)
def test_sends_a_range(alice: Caller, stored: str, header: str, first: int, last: int) -> None:
    got = content(alice, stored, Range=header)
    assert (got.status, got.body) == (206, _DATA[first : last + 1])
    assert got.headers["content-range"] == f"bytes {first}-{last}/100000"


@pytest.mark.parametrize("header", ["bytes=100000-", "bytes=200000-300000", "bytes=-0"])
def test_says_when_there_is_no_such_range(alice: Caller, stored: str, header: str) -> None:
    got = content(alice, stored, Range=header)
    assert (got.status, got.headers["content-range"]) == (416, "bytes */100000")
    assert got.json["code"] == "invalid_input"


@pytest.mark.parametrize(
    "header", ["bytes=", "bytes=-", "bytes=5-4", "bytes=a-b", "lines=1-2", "bytes=0-1,5-6", "x"]
)
def test_sends_everything_when_a_range_means_nothing(
    alice: Caller, stored: str, header: str
) -> None:
    got = content(alice, stored, Range=header)
    assert (got.status, got.body) == (200, _DATA)


def test_keeps_to_the_conditions(alice: Caller, stored: str) -> None:
    tag = content(alice, stored).headers["etag"]
    same = content(alice, stored, If_None_Match=f'"other", {tag}')
    assert (same.status, same.body, same.headers["etag"]) == (304, b"", tag)
    assert content(alice, stored, If_None_Match='"other"').status == 200
    assert content(alice, stored, If_None_Match="*").status == 304
    assert content(alice, stored, If_Match=tag).status == 200
    assert content(alice, stored, If_Match='"other"').status == 412
    assert content(alice, stored, Range="bytes=0-4", If_Range=tag).status == 206
    assert content(alice, stored, Range="bytes=0-4", If_Range='"other"').body == _DATA


def test_changes_the_tag_with_the_content(alice: Caller, stored: str) -> None:
    before = content(alice, stored).headers["etag"]
    put(alice, stored, _DATA[::-1], mtime_ns=1_600_000_000_000_000_000, source="other")
    assert content(alice, stored).headers["etag"] != before


def test_answers_head_without_the_bytes(alice: Caller, stored: str) -> None:
    got = alice.call("HEAD", f"{PFS}/content?path={stored}")
    assert (got.status, got.body) == (200, b"")
    assert got.headers["content-length"] == "100000"
    assert got.headers["pfs-digest"] == digest_of(_DATA)
    assert got.headers["last-modified"] == "Sun, 13 Sep 2020 12:26:40 GMT"


# --- connections ----------------------------------------------------------------------------


def test_serves_many_requests_on_one_connection_also_sent_ahead(alice: Caller, stored: str) -> None:
    ask_once = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    last = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer = alice.raw(ask_once * 20 + last)
    assert answer.count(b"HTTP/1.1 200 OK") == 21
    assert answer.count(b"Connection: close") == 1


def test_reads_exactly_the_body_when_the_next_request_follows_at_once(
    alice: Caller, home: str
) -> None:
    upload = begin(alice, f"{home}/f", _DATA)["id"]
    head = b"PUT %s/uploads/%s?offset=0 HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n"
    first = head % (PFS.encode(), upload.encode(), _TOKEN, len(_DATA)) + _DATA
    body = json.dumps({"digest": digest_of(_DATA)}).encode()
    second = (
        b"POST %s/uploads/%s/commit HTTP/1.1\r\n%sContent-Length: %d\r\nConnection: close\r\n\r\n"
        % (PFS.encode(), upload.encode(), _TOKEN, len(body))
    )
    answer = alice.raw(first + second + body)
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert content(alice, f"{home}/f").body == _DATA


def test_asks_for_a_body_that_waits_for_it(alice: Caller, home: str) -> None:
    upload = begin(alice, f"{home}/f", b"body")["id"]
    with alice.connect() as sock:
        sock.sendall(
            b"PUT %s/uploads/%s HTTP/1.1\r\n%sContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
            % (PFS.encode(), upload.encode(), _TOKEN)
        )
        assert sock.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(b"body")
        assert sock.recv(1000).startswith(b"HTTP/1.1 200 OK")


def test_answers_at_once_when_a_body_that_waits_is_not_wanted(alice: Caller) -> None:
    with alice.connect() as sock:
        sock.sendall(
            b"PUT %s/uploads/none HTTP/1.1\r\n%sContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
            % (PFS.encode(), _TOKEN)
        )
        assert sock.recv(1000).startswith(b"HTTP/1.1 404 Not Found")


@pytest.mark.parametrize("size", [1, 3, 70_000])
def test_reads_chunked_bodies(alice: Caller, home: str, size: int) -> None:
    body = stream({"a": b"1" * 50_000, "b": b"2"})
    pieces = b"".join(
        b"%x;ext=1\r\n%s\r\n" % (len(piece), piece)
        for piece in (body[at : at + size * 100] for at in range(0, len(body), size * 100))
    )
    head = b"POST %s/batch?path=%s&files=2&bytes=50001 HTTP/1.1\r\n%sTransfer-Encoding: chunked\r\n"
    request = head % (PFS.encode(), home.encode(), _TOKEN) + b"\r\n" + pieces + b"0\r\nT: x\r\n\r\n"
    again = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer = alice.raw(request + again)
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert b'"stored":2' in answer


def test_wants_a_length_for_leaves(alice: Caller, home: str) -> None:
    upload = begin(alice, f"{home}/f", b"body")["id"]
    request = (
        b"PUT %s/uploads/%s HTTP/1.1\r\n%sTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"
    )
    answer = alice.raw(request % (PFS.encode(), upload.encode(), _TOKEN))
    assert answer.startswith(b"HTTP/1.1 411 ")


def test_speaks_http_1_0(alice: Caller, stored: str) -> None:
    request = f"GET {PFS}/content?path={stored} HTTP/1.0\r\n".encode() + _TOKEN + b"\r\n"
    head, _, body = alice.raw(request).partition(b"\r\n\r\n")
    assert b"Connection: close" in head
    assert body == _DATA
    fetch = json.dumps({"path": stored.rpartition("/")[0], "files": ["f"]}).encode()
    request = f"POST {PFS}/fetch HTTP/1.0\r\nContent-Length: {len(fetch)}\r\n".encode()
    head, _, body = alice.raw(request + _TOKEN + b"\r\n" + fetch).partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert body.startswith(b"PFSREC\0\1")
    assert body.endswith(b"\0")


# --- what must not pass ---------------------------------------------------------------------

_GET = b"GET /healthz HTTP/1.1\r\n"
_SMUGGLED = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        b"Content-Length: 5\r\nContent-Length: 5\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: 5, 5\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: -5\r\n",
        b"Content-Length: 0x5\r\n",
        b"Content-Length: 5 5\r\n",
        b"Content-Length: 99999999999999999999999\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Transfer-Encoding\r\n : chunked\r\n",
        b" Content-Length: 5\r\n",
        b"X: a\nContent-Length: 5\r\n",
        b"X: a\rContent-Length: 5\r\n",
        b"X: \0\r\n",
        b"X Y: a\r\n",
        b": a\r\n",
        b"Host: y\r\n",
        b"Authorization: Token bob\r\nAuthorization: Token alice\r\n",
    ],
)
def test_refuses_a_head_that_two_could_read_differently(alice: Caller, head: bytes) -> None:
    """One answer, a refusal; what follows is never taken for a request."""
    answer = alice.raw(_GET + b"Host: x\r\n" + head + b"\r\n" + _SMUGGLED)
    assert answer.split(b" ")[1] in (b"400", b"501"), answer
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"Connection: close" in answer


@pytest.mark.parametrize(
    "line",
    [
        b"GET http://x/healthz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET healthz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/3.0\r\nHost: x\r\n\r\n",
        b"GET /health z HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /healthz\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03 a client of TLS\r\n\r\n",
        b"nothing at all\r\n\r\n",
        b"CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n",
    ],
)
def test_refuses_what_is_not_a_request(alice: Caller, line: bytes) -> None:
    assert alice.raw(line).startswith(b"HTTP/1.1 400 ")


def test_passes_over_the_offer_of_another_protocol(alice: Caller) -> None:
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    answer = alice.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + offer + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "body",
    [
        b"5\r\nhello",
        b"5\r\nhello\r\n",
        b"5\nhello\r\n0\r\n\r\n",
        b"5\r\nhelloX\r\n0\r\n\r\n",
        b"-5\r\nhello\r\n0\r\n\r\n",
        b"\r\nhello",
        b"5" * 300,
        b"ffffffffffffffff\r\n",
        b"0\r\n" + b"X: y\r\n" * 3000 + b"\r\n",
    ],
)
def test_refuses_chunks_that_are_none(alice: Caller, body: bytes) -> None:
    head = f"POST {PFS}/directories HTTP/1.1\r\nTransfer-Encoding: chunked\r\n".encode()
    answer = alice.raw(head + _TOKEN + b"\r\n" + body)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")


def test_refuses_heads_and_bodies_that_are_too_large(alice: Caller) -> None:
    large = b"X: " + b"y" * (70 << 10) + b"\r\n\r\n"
    assert alice.raw(_GET + b"Host: x\r\n" + large).startswith(b"HTTP/1.1 431 ")
    assert alice.raw(_GET + b"X: y\r\n" * 20_000).startswith(b"HTTP/1.1 431 ")
    many = b"".join(b"X-%d: y\r\n" % i for i in range(200))
    assert alice.raw(_GET + b"Host: x\r\n" + many + b"\r\n").startswith(b"HTTP/1.1 431 ")
    answer = alice.post(f"{PFS}/directories", b'{"paths":["' + b"x" * (2 << 20) + b'"]}')
    assert (answer.status, answer.json["code"]) == (413, "too_large")
    chunk = b"%x\r\n%s\r\n" % (1 << 20, b" " * (1 << 20))
    head = f"POST {PFS}/directories HTTP/1.1\r\nTransfer-Encoding: chunked\r\n".encode()
    answer_bytes = alice.raw(head + _TOKEN + b"\r\n" + chunk * 3 + b"0\r\n\r\n")
    assert answer_bytes.startswith(b"HTTP/1.1 413 ")


def test_delivers_a_refusal_to_a_client_that_is_still_sending(server: Running) -> None:
    """A refusal must not be destroyed by the reset that unread bytes would cause."""
    nobody = Caller(server, {})
    with nobody.connect() as sock:
        sock.sendall(
            f"PUT {PFS}/uploads/x HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n".encode()
        )
        try:
            for _ in range(100):
                sock.sendall(b"x" * 80_000)
        except (ConnectionResetError, BrokenPipeError):
            pass
        assert sock.recv(100).startswith(b"HTTP/1.1 401 ")


def test_lets_a_client_finish_a_head_that_is_refused(server: Running) -> None:
    """Most read an answer only when they have sent everything."""
    with Caller(server, {}).connect() as sock:
        sock.sendall(_GET + b"X: y\r\n" * 11_000)  # a little more than is read of a head
        for _ in range(50):
            sock.sendall(b"X: y\r\n" * 1_000)
            time.sleep(0.002)  # the refusal is on its way by now
        assert sock.recv(100).startswith(b"HTTP/1.1 431 ")


def test_leaves_nothing_behind_when_clients_vanish(
    server: Running, alice: Caller, home: str
) -> None:
    put(alice, f"{home}/f", _DATA * 50)
    before = len(os.listdir(f"/proc/{server.pid}/fd"))
    for number in range(30):
        sock = alice.connect()
        if number % 3 == 0:
            sock.sendall(b"GET /healthz HT")
        elif number % 3 == 1:
            path = f"{PFS}/content?path={home}/f".encode()
            sock.sendall(b"GET " + path + b" HTTP/1.1\r\n" + _TOKEN + b"\r\n")
            sock.recv(10)
        else:
            head = f"POST {PFS}/batch?path={home}/new&files=1&bytes=9999 HTTP/1.1\r\n".encode()
            body = stream({"f": b"x" * 9999})
            length = b"Content-Length: %d\r\n\r\n" % len(body)
            sock.sendall(head + _TOKEN + length + body[:5000])
        # A reset, not a goodbye.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    parts = server.root / ".paddlefs/parts/1"
    while len(os.listdir(f"/proc/{server.pid}/fd")) > before or any(parts.glob("batch-*")):
        assert alice.get("/healthz").status == 200
    assert ask(alice, "entry", f"{home}/new").status == 404


def test_cuts_a_download_whose_file_shrinks_instead_of_padding_it(
    server: Running, alice: Caller, home: str
) -> None:
    put(alice, f"{home}/f", b"x" * 20_000_000)
    file = server.home() / home.rpartition("/")[2] / "f"
    with alice.connect() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        path = f"{PFS}/content?path={home}/f".encode()
        sock.sendall(b"GET " + path + b" HTTP/1.1\r\n" + _TOKEN + b"\r\n")
        first = sock.recv(100)
        assert first.startswith(b"HTTP/1.1 200")
        os.truncate(file, 1000)
        assert len(first + read_all(sock)) < 20_000_000
