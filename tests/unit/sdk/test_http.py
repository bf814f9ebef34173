"""The HTTP client against bytes on a real socket: framing, cuts, early answers, addresses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from paddlecloud.sdk.http import Connection, Cut, Endpoint, Response, query, quote
from tests.patience import PATIENCE_S
from tests.scripted_server import RawServer


def ask(server: RawServer, method: str = "GET", body: bytes = b"") -> Response:
    connection = Connection(Endpoint(server.url), None, 5.0)
    return connection.request(method, "/x", {}, body, timeout_s=5.0)


@pytest.fixture
def serve() -> Iterator[object]:
    servers: list[RawServer] = []

    def start(*scripts: bytes) -> RawServer:
        servers.append(RawServer(*scripts))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
        (b"HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n", b""),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\n",
            b"abc0123456789",
        ),
        (b"HTTP/1.0 200 OK\r\n\r\nto the end", b"to the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", b""),
    ],
)
def test_reads_a_body_however_it_is_framed(serve, answer: bytes, body: bytes) -> None:
    assert ask(serve(answer)).read() == body


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloWORLD\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n",
    ],
)
def test_tells_a_cut_or_senseless_answer_from_a_whole_one(serve, answer: bytes) -> None:
    with pytest.raises(Cut):
        ask(serve(answer)).read()


def test_gives_no_line_that_was_cut(serve) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    response = ask(serve(head + b"8\r\none\ntwo\n\r\n3\r\nthr\r\n"))
    lines = []
    with pytest.raises(Cut):
        lines.extend(iter_into(lines, response))
    assert lines == [b"one", b"two"]


def iter_into(lines: list[bytes], response: Response) -> Iterator[bytes]:
    for line in response.lines():
        lines.append(line)
    yield from ()


def test_sends_method_path_host_and_body(serve) -> None:
    server = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    ask(server, "POST", b'{"a":1}').read()
    head, _, body = server.heads[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /x HTTP/1.1\r\nHost: " + server.url[7:].encode())
    assert b"Content-Length: 7" in head
    assert body == b'{"a":1}'


def test_hears_a_server_that_answers_before_it_has_read_the_body() -> None:
    import socket
    import threading

    listening = socket.create_server(("127.0.0.1", 0))

    def refuse() -> None:
        connection, _ = listening.accept()
        connection.recv(100)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):  # unread data would reset the connection
            pass
        connection.close()

    thread = threading.Thread(target=refuse)
    thread.start()
    connection = Connection(Endpoint(f"http://127.0.0.1:{listening.getsockname()[1]}"), None, 5.0)
    pieces = (b"x" * 65536 for _ in range(64))
    size = {"Content-Length": str(64 * 65536)}
    response = connection.request("PUT", "/big", size, pieces, timeout_s=5.0)
    assert (response.status, response.read()) == (413, b"big")
    connection.close()
    thread.join(PATIENCE_S)
    listening.close()


def test_refuses_a_header_that_would_start_another() -> None:
    server = RawServer(b"")
    connection = Connection(Endpoint(server.url), None, 5.0)
    with pytest.raises(ValueError):
        connection.request("GET", "/", {"A": "b\r\nEvil: yes"}, timeout_s=5.0)
    connection.close()
    server.close()


@pytest.mark.parametrize(
    ("text", "url", "host", "port", "tls", "prefix"),
    [
        ("http://h", "http://h", "h", 80, False, ""),
        ("http://h//", "http://h", "h", 80, False, ""),
        ("http://h\\", "http://h", "h", 80, False, ""),
        ("https://h:8443/cloud/", "https://h:8443/cloud", "h", 8443, True, "/cloud"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000", "127.0.0.1", 8000, False, ""),
        ("HTTPS://h", "https://h", "h", 443, True, ""),
        ("http://[::1]:80", "http://[::1]:80", "::1", 80, False, ""),
    ],
)
def test_takes_an_endpoint_apart(
    text: str, url: str, host: str, port: int, tls: bool, prefix: str
) -> None:
    endpoint = Endpoint(text)
    found = (endpoint.url, endpoint.host, endpoint.port, endpoint.tls, endpoint.prefix)
    assert found == (url, host, port, tls, prefix)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "http://",
        "ftp://h",
        "http://h:x",
        "http://h:0",
        "http://h:70000",
        "http://u:p@h",
        "http://a b",
        "http://h?x=1",
    ],
)
def test_refuses_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError):
        Endpoint(text)


def test_quotes_utf8_and_leaves_out_what_is_not_set() -> None:
    assert quote("a b/ü") == "a%20b%2F%C3%BC"
    assert query({"a": 1, "b": None, "c": "", "d": "x&y=z"}) == "?a=1&d=x%26y%3Dz"
    assert query({}) == ""
