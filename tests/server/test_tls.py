"""TLS: the platform's own CA, and client certificates as a way to log in."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.server.running import Running


@pytest.fixture
def https(make_server: Callable[..., Running]) -> Running:
    return make_server(PADDLECLOUD_TLS="1").start()


def _get(server: Running, path: str, context: ssl.SSLContext, **headers: str) -> Any:
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=30)
    try:
        connection.request("POST" if "cert" in path else "GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def _context(server: Running, cert: Path | None = None, key: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(server.state / "secrets" / "ca.pem"))
    if cert is not None:
        context.load_cert_chain(cert, key)
    return context


def _certificate(server: Running, name: str, folder: Path) -> tuple[Path, Path]:
    token = {"Authorization": f"Token {server.admin_token}"}
    status, made = _get(server, f"/api/v2/accounts/{name}/cert", _context(server), **token)
    assert status == 201, made
    cert, key = folder / "cert.pem", folder / "key.pem"
    cert.write_text(made["cert_pem"])
    key.write_text(made["key_pem"])
    assert made["ca_pem"] == (server.state / "secrets" / "ca.pem").read_text()
    return cert, key


def test_logs_in_by_client_certificate(https: Running, tmp_path: Path) -> None:
    cert, key = _certificate(https, "root", tmp_path)
    context = _context(https, cert, key)
    assert _get(https, "/api/v2/whoami", context) == (
        200,
        {"name": "root", "id": 1, "admin": True},
    )
    foreign = {"Origin": "https://evil.example"}
    assert _get(https, "/api/v2/whoami", context, **foreign)[0] == 401
    assert _get(https, "/api/v2/whoami", _context(https))[0] == 401


def test_a_certificate_of_another_ca_is_no_login(https: Running, tmp_path: Path) -> None:
    stranger = Running(tmp_path / "stranger", PADDLECLOUD_TLS="1").start()
    try:
        cert, key = _certificate(stranger, "root", tmp_path)
    finally:
        stranger.kill_9()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        _get(https, "/api/v2/whoami", _context(https, cert, key))


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
