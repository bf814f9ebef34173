"""A client of a server that serves TLS, with or without a certificate of its own."""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S
from tests.server.running import Running


def context(server: Running, cert: Path | None = None, key: Path | None = None) -> ssl.SSLContext:
    """Trusts the server's own CA; shows a certificate if one is given."""
    made = ssl.create_default_context(cafile=str(server.state / "secrets" / "ca.pem"))
    if cert is not None:
        made.load_cert_chain(cert, key)
    return made


def call(
    server: Running,
    method: str,
    path: str,
    using: ssl.SSLContext,
    body: Any = None,
    **headers: str,
) -> tuple[int, Any]:
    """(status, the JSON of the answer)."""
    connection = http.client.HTTPSConnection(
        "127.0.0.1", server.port, context=using, timeout=PATIENCE_S
    )
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def as_admin(server: Running, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    token = {"Authorization": f"Token {server.admin_token}"}
    return call(server, method, path, context(server), body, **token)


def certificate(server: Running, name: str, folder: Path) -> tuple[str, Path, Path]:
    """(serial, certificate, key) of a new certificate for an account, as files."""
    status, made = as_admin(server, "POST", f"/api/v2/accounts/{name}/cert")
    assert status == 201, made
    cert, key = folder / f"{made['serial']}.pem", folder / f"{made['serial']}.key"
    cert.write_text(made["cert_pem"])
    key.write_text(made["key_pem"])
    assert made["ca_pem"] == (server.state / "secrets" / "ca.pem").read_text()
    return made["serial"], cert, key
