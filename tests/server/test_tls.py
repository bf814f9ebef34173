"""TLS: the platform's own CA, and client certificates as a way to log in."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from paddlecloud.sdk import Client, Profile
from paddlecloud.wire.digests import LEAF_BYTES
from tests.server.https import as_admin, call, certificate, context
from tests.server.running import Running


@pytest.fixture
def https(make_server: Callable[..., Running]) -> Running:
    return make_server(PADDLECLOUD_TLS="1").start()


def test_logs_in_by_client_certificate(https: Running, tmp_path: Path) -> None:
    _, cert, key = certificate(https, "root", tmp_path)
    ours = context(https, cert, key)
    status, me = call(https, "GET", "/api/v2/whoami", ours)
    assert (status, me["name"], me["id"], me["admin"]) == (200, "root", 1, True)
    foreign = {"Origin": "https://evil.example"}
    assert call(https, "GET", "/api/v2/whoami", ours, **foreign)[0] == 401
    assert call(https, "GET", "/api/v2/whoami", context(https))[0] == 401


def test_a_certificate_and_a_token_must_be_of_one_account(https: Running, tmp_path: Path) -> None:
    assert as_admin(https, "POST", "/api/v2/accounts", {"name": "bob"})[0] == 201
    _, cert, key = certificate(https, "bob", tmp_path)
    bobs = context(https, cert, key)
    token = as_admin(https, "POST", "/api/v2/accounts/bob/token")[1]["token"]
    same, other = ({"Authorization": f"Token {t}"} for t in (token, https.admin_token))
    assert call(https, "GET", "/api/v2/whoami", bobs, **same)[0] == 200
    assert call(https, "GET", "/api/v2/whoami", bobs, **other)[0] == 401


def test_a_certificate_of_another_ca_is_no_login(https: Running, tmp_path: Path) -> None:
    stranger = Running(tmp_path / "stranger", PADDLECLOUD_TLS="1").start()
    try:
        _, cert, key = certificate(stranger, "root", tmp_path)
    finally:
        stranger.kill_9()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        call(https, "GET", "/api/v2/whoami", context(https, cert, key))


def test_keeps_its_certificate_over_a_restart(https: Running) -> None:
    cert = https.state / "secrets" / "server.pem"
    before = cert.read_bytes()
    https.stop()
    https.start()
    assert cert.read_bytes() == before


def test_makes_no_certificate_without_tls(server: Running) -> None:
    answer = server.admin.post("/api/v2/accounts/root/cert")
    assert answer.status == 409
    assert "up --tls" in answer.json["hint"]


def test_files_travel_encrypted_over_the_data_port(
    https: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    data = os.urandom(2 * LEAF_BYTES + 5)
    (tmp_path / "large").write_bytes(data)
    (tmp_path / "small").write_bytes(b"small")
    home = "/pfs/local/home/root"
    profile = Profile(
        endpoint=f"https://127.0.0.1:{https.port}",
        token=https.admin_token,
        cacert=str(https.state / "secrets" / "ca.pem"),
    )
    with Client(profile=profile) as client:
        sent = client.files.copy([str(tmp_path / "large"), str(tmp_path / "small")], f"{home}/in/")
        port = client.files.plane.endpoint.port
        client.files.copy([f"{home}/in/"], str(tmp_path / "back"), recursive=True)
    assert not sent.failures
    assert port != https.port  # the file server's own
    assert (tmp_path / "back/large").read_bytes() == data
    assert (tmp_path / "back/small").read_bytes() == b"small"
    with socket.create_connection(("127.0.0.1", port)) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        try:
            answer = plain.recv(100)
        except ConnectionError:
            answer = b""
    assert not answer.startswith(b"HTTP/")
