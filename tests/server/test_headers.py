"""What every answer says about itself, and what a request may not decide."""

from __future__ import annotations

import json
import socket

import pytest

from tests.server.running import Caller, Running


@pytest.mark.parametrize(
    "path", ["/healthz", "/api/v2/whoami", "/api/v2/nothing", "/admin/login/", "/filepub?uuid=x"]
)
def test_nothing_is_taken_for_a_page_because_of_its_bytes(server: Running, path: str) -> None:
    for caller in (server.anonymous, server.admin):
        answer = caller.get(path)
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_files_are_not_either(server: Running, user: Caller) -> None:
    relayed = user.get("/api/v2/pfs/entries?path=/pfs/local/home")
    assert relayed.headers["x-content-type-options"] == "nosniff"
    facts = json.loads((server.state / "run" / "pfsserver.json").read_text())
    assert Caller(facts["port"]).get("/healthz").headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/api/v2/whoami", "/api/v2/jobs", "/api/v2/nothing"])
def test_nobody_on_the_way_keeps_an_answer(server: Running, path: str) -> None:
    assert server.admin.get(path).headers["cache-control"] == "no-store"
    assert server.anonymous.get(path).headers["cache-control"] == "no-store"


def test_pages_load_from_here_alone(server: Running) -> None:
    policy = server.anonymous.get("/admin/login/").headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy


def test_two_credentials_on_one_request_are_refused(server: Running, user: Caller) -> None:
    lines = [f"Authorization: {c.headers()['Authorization']}" for c in (user, server.admin)]
    text = "\r\n".join(["GET /api/v2/whoami HTTP/1.1", "Host: x", *lines, "", ""])
    with socket.create_connection(("127.0.0.1", server.port), 20) as sock:
        sock.sendall(text.encode())
        assert sock.recv(100).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2/jobs?limit=99999999999999999999",
        "/api/v2/jobs?limit=1_0",
        "/api/v2/jobs?limit=%D9%A3",
        "/api/v2/jobs?limit=1&limit=2",
        "/api/v2/pfs/entries?path=/pfs/local/home&path=/pfs/local/home",
    ],
)
def test_odd_parameters_are_refused_by_name(user: Caller, path: str) -> None:
    answer = user.get(path)
    assert (answer.status, answer.json["code"]) == (400, "invalid_input"), answer.body
    assert answer.json["faults"][0]["field"] in ("limit", "path")


_ODD = [
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"a":"\xff"}',
    rb'{"a":"\ud800"}',
    b'{"size":' + b"9" * 5000 + b"}",
    b'{"size":18446744073709551616}',
    b"\xef\xbb\xbf{}",
]


@pytest.mark.parametrize("body", _ODD, ids=range(len(_ODD)))
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v2/jobs"),
        ("POST", "/api/v2/pfs/snapshots"),
        ("POST", "/api/v2/pfs/uploads"),
        ("POST", "/api/v2/pfs/move"),
        ("POST", "/api/v1/pfs/files"),
        ("POST", "/api/v1/jobs/"),
        ("PUT", "/v1/job"),
    ],
)
def test_odd_json_is_no_fault_of_the_server(
    user: Caller, method: str, path: str, body: bytes
) -> None:
    answer = user.call(method, path, body)
    assert answer.status < 500, answer.body
    assert answer.status >= 400 or path.startswith("/api/v1/pfs"), answer.body
