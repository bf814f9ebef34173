"""Packages: taken whole and checked, or not at all."""

from __future__ import annotations

import hashlib
import json

import pytest

from paddlecloud.wire.package import MAGIC
from tests.server.running import Caller, Running, pack


def _put(caller: Caller, data: bytes) -> tuple[int, dict]:
    digest = hashlib.sha256(data).hexdigest()
    answer = caller.call("PUT", f"/api/v2/packages/{digest}", data)
    return answer.status, answer.json


def _stream(manifest: object, content: bytes = b"") -> bytes:
    raw = json.dumps(manifest).encode()
    return MAGIC + len(raw).to_bytes(8, "big") + raw + content


def test_takes_a_package_and_says_what_it_is(user: Caller) -> None:
    data = pack({"a.py": b"12345", "b/c.py": b"67"})
    status, body = _put(user, data)
    digest = hashlib.sha256(data).hexdigest()
    assert (status, body) == (201, {"digest": digest, "files": 2, "bytes": 7})
    assert user.call("HEAD", f"/api/v2/packages/{digest}").status == 200
    assert _put(user, data)[0] == 201


def test_refuses_bytes_that_do_not_have_the_digest(user: Caller) -> None:
    answer = user.call("PUT", f"/api/v2/packages/{'0' * 64}", pack({"a": b"x"}))
    assert (answer.status, answer.json["field"]) == (400, "digest")
    assert user.call("HEAD", f"/api/v2/packages/{'0' * 64}").status == 404
    assert user.call("PUT", "/api/v2/packages/zz", b"").status == 400


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a package",
        MAGIC,
        MAGIC + (2**40).to_bytes(8, "big"),
        _stream([]),
        _stream({"files": [{"path": "../x", "size": 0, "exec": False}], "dirs": []}),
        _stream({"files": [{"path": "/x", "size": 0, "exec": False}], "dirs": []}),
        _stream({"files": [{"path": "a", "size": 9, "exec": False}], "dirs": []}, b"short"),
        _stream({"files": [{"path": "a", "size": 1, "exec": False}], "dirs": []}, b"long"),
        _stream({"files": [{"path": "a", "size": 2**50, "exec": False}], "dirs": []}),
        _stream({"files": [], "dirs": ["a/../../b"]}),
    ],
)
def test_refuses_what_is_not_a_safe_package(server: Running, user: Caller, data: bytes) -> None:
    status, body = _put(user, data)
    assert status in (400, 413), body
    digest = hashlib.sha256(data).hexdigest()
    assert user.call("HEAD", f"/api/v2/packages/{digest}").status == 404
    assert not list(server.state.glob(f"packages/*/{digest}*"))


def test_leaves_nothing_of_a_package_that_breaks_off(server: Running, user: Caller) -> None:
    connection = user.connect()
    headers = user.headers({"Content-Length": "1000000"})
    connection.request("PUT", f"/api/v2/packages/{'1' * 64}", b"x" * 1000, headers)
    connection.close()
    while list(server.state.glob("packages/*/.*.part")):
        assert user.get("/api/v2/whoami").status == 200


def test_refuses_a_package_above_the_limit_before_reading_it(make_server) -> None:
    server = make_server(PADDLECLOUD_MAX_PACKAGE_BYTES="1000").start()
    connection = server.admin.connect()
    headers = server.admin.headers({"Content-Length": str(2**40), "Expect": "100-continue"})
    connection.request("PUT", f"/api/v2/packages/{'1' * 64}", b"", headers)
    assert connection.getresponse().status == 413
    connection.close()
    status, _ = _put(server.admin, pack({"a": b"x" * 1001}))
    assert status == 413
