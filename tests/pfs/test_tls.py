"""The file server over TLS: the same protocol, on one connection, and for slow readers."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from tests.pfs.calls import PFS, digest_of
from tests.pfs.running import FakeCloud, Running, read_all

_HOME = "/pfs/local/home/alice"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("tls")
    key, cert = str(folder / "key.pem"), str(folder / "cert.pem")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-keyout", key, "-out", cert, "-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    return cert, key


def test_serves_tls(tmp_path: Path, cloud: FakeCloud, certificate: tuple[str, str]) -> None:
    cert, key = certificate
    extra = ("--tls-cert", cert, "--tls-key", key)
    running = Running(tmp_path / "root", cloud.url, extra).start()
    context = ssl.create_default_context(cafile=cert)
    data = os.urandom(3_000_001)

    def call(sock: ssl.SSLSocket, method: str, path: str, body: bytes = b"") -> bytes:
        sock.sendall(
            f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Token alice\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = b""
        while b"\r\n\r\n" not in head:
            head += sock.recv(1)
        assert head.startswith(b"HTTP/1.1 200"), head
        left = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        answer = b""
        while len(answer) < left:
            answer += sock.recv(left - len(answer))
        return answer

    try:
        assert running.facts["tls"] is True
        with alice_tls(running, context) as sock:  # all on one connection
            wish = {"path": f"{_HOME}/f", "size": len(data)}
            upload = json.loads(call(sock, "POST", f"{PFS}/uploads", json.dumps(wish).encode()))
            call(sock, "PUT", f"{PFS}/uploads/{upload['id']}", data)
            commit = json.dumps({"digest": digest_of(data)}).encode()
            call(sock, "POST", f"{PFS}/uploads/{upload['id']}/commit", commit)
            assert call(sock, "GET", f"{PFS}/content?path={_HOME}/f") == data
            two = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 2
            sock.sendall(two)  # in one record: what epoll cannot see must be found all the same
            answer = b""
            while answer.count(b"OK") < 4:
                answer += sock.recv(1000)
        with running.as_user().connect() as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            got = b""
            try:
                got = read_all(plain)  # an alert of TLS, perhaps
            except ConnectionResetError:
                pass
            assert b"HTTP" not in got
        silent = running.as_user().connect()  # never says a word: in nobody's way
        with silent, alice_tls(running, context) as sock:
            assert call(sock, "GET", "/healthz") == b"OK"
    finally:
        running.stop()


def alice_tls(running: Running, context: ssl.SSLContext) -> ssl.SSLSocket:
    return context.wrap_socket(running.as_user().connect(), server_hostname="127.0.0.1")


def test_gives_a_slow_reader_a_long_answer_over_tls(
    tmp_path: Path, cloud: FakeCloud, certificate: tuple[str, str]
) -> None:
    """TLS wants the same bytes again after it was not ready, also when they wait on the disk."""
    cert, key = certificate
    running = Running(tmp_path / "root", cloud.url, ("--tls-cert", cert, "--tls-key", key)).start()
    folder = running.home() / "many"
    folder.mkdir(parents=True)
    for number in range(10_000):
        (folder / f"{number:04}{'n' * 240}").touch()
    context = ssl.create_default_context(cafile=cert)
    ask = (
        f"GET {PFS}/entries?path={_HOME}/many&limit=10000 HTTP/1.1\r\nHost: x\r\n"
        "Authorization: Token alice\r\nConnection: close\r\n\r\n"
    ).encode()
    try:
        plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.settimeout(60)
        plain.connect(("127.0.0.1", running.port))
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as sock:
            sock.sendall(ask)
            answer = sock.recv(1)
            time.sleep(0.3)  # meanwhile the server has filled what the kernel takes
            while piece := sock.recv(1 << 16):
                answer += piece
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        assert len(json.loads(body)["entries"]) == 10_000
    finally:
        running.stop()
