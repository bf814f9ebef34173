"""/api/v1/file and /api/v1/filelist, as the first server's clients read them."""

from __future__ import annotations

import os
import socket

import pytest

from tests.pfs.running import Answer, Caller, Running


def form(data: bytes, name: str = "file") -> tuple[bytes, str]:
    body = (
        b'--XyZ\r\nContent-Disposition: form-data; name="other"\r\n\r\nsomething\r\n'
        b'--XyZ\r\nContent-Disposition: form-data; name="' + name.encode() + b'"; filename="f"'
        b"\r\nContent-Type: application/octet-stream\r\n\r\n" + data + b"\r\n--XyZ--\r\n"
    )
    return body, "multipart/form-data; boundary=XyZ"


def put(caller: Caller, path: str, data: bytes, slash: str = "/") -> Answer:
    body, content_type = form(data)
    headers = {"Content-Type": content_type}
    return caller.call("POST", f"/api/v1/file{slash}?path={path}", body, headers)


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("size", [0, 1, 65536, 9_000_001])
def test_puts_gets_and_lists(alice: Caller, home: str, slash: str, size: int) -> None:
    data = os.urandom(size)
    path = f"{home}/deep/er/f.bin"
    answer = put(alice, path, data, slash)
    assert (answer.status, answer.json) == (200, {"code": 200, "msg": ""})
    got = alice.get(f"/api/v1/file{slash}?path={path}")
    assert (got.status, got.body) == (200, data)
    assert got.headers["content-type"] == "application/force-download"
    assert put(alice, path, b"shorter", slash).status == 200
    assert alice.get(f"/api/v1/file{slash}?path={path}").body == b"shorter"
    names = alice.get(f"/api/v1/filelist{slash}?path={home}/deep/er&dc=local").json
    assert (names["msg"], names["items"]) == ("", ["f.bin"])


def test_leaves_nothing_of_an_upload_that_breaks_off(
    server: Running, alice: Caller, home: str
) -> None:
    body, content_type = form(b"x" * 200_000)
    with alice.connect() as sock:
        head = (
            f"POST /api/v1/file/?path={home}/half HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Token alice\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        sock.sendall(head.encode() + body[:100_000])
    parts = server.root / ".paddlefs" / "parts" / "1"
    while list(parts.glob("one-*")):
        assert alice.get(f"/api/v1/file/?path={home}/half").status == 404
    assert alice.get(f"/api/v1/file/?path={home}/half").status == 404


@pytest.mark.parametrize(
    ("path", "status", "msg"),
    [
        ("/etc/passwd", 400, "path must start with /pfs"),
        ("/pfs/local", 400, "path must like /pfs/[dc]/home/[user]"),
        ("/pfs/nowhere/home/alice", 400, "no datacenter nowhere"),
        ("/pfs/local/home/root", 403, "not a valid user: root"),
        ("/pfs/local/home/alice/../root", 400, "a path cannot contain '..'"),
        ("/pfs/local/home/alice/%2e%2e/root", 400, "a path cannot contain '..'"),
        ("/pfs/local/home/alice/none", 404, "dir not exist"),
        ("", 400, "path is needed"),
    ],
)
def test_refuses_paths_in_the_words_of_the_first_server(
    alice: Caller, path: str, status: int, msg: str
) -> None:
    answer = alice.get(f"/api/v1/filelist/?path={path}")
    assert (answer.status, answer.json["msg"], answer.json["code"]) == (status, msg, status)
    assert alice.get(f"/api/v1/file/?path={path}").status in (400, 403, 404)
    assert put(alice, path + "/x", b"").status in (400, 403) or status == 404


def test_says_that_a_file_is_not_there(alice: Caller, home: str) -> None:
    answer = alice.get(f"/api/v1/file/?path={home}/none")
    assert (answer.status, answer.json["msg"]) == (404, "file not exist")
    put(alice, f"{home}/f", b"")
    answer = alice.get(f"/api/v1/filelist/?path={home}/f")
    assert (answer.status, answer.json["msg"]) == (404, "dir not exist")
    wrong = alice.get(f"/api/v1/filelist/?path={home}&dc=other")
    assert (wrong.status, wrong.json["msg"]) == (400, "no datacenter other")


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"plain", "application/octet-stream"),
        (b"plain", "multipart/form-data"),
        (form(b"x", "else")[0], "multipart/form-data; boundary=XyZ"),
        (form(b"x")[0][:-8], "multipart/form-data; boundary=XyZ"),
        (form(b"x")[0].replace(b"--XyZ--", b"--XyZ!!"), "multipart/form-data; boundary=XyZ"),
        (form(b"x")[0][:-9] + form(b"y")[0], "multipart/form-data; boundary=XyZ"),
        (b"--XyZ\r\n" + b"X: y\r\n" * 9000, "multipart/form-data; boundary=XyZ"),
    ],
)
def test_refuses_an_upload_it_does_not_understand(
    alice: Caller, home: str, body: bytes, content_type: str
) -> None:
    path = f"/api/v1/file/?path={home}/odd"
    answer = alice.call("POST", path, body, {"Content-Type": content_type})
    assert (answer.status, answer.json["field"]) == (400, "file")
    assert alice.get(path).status == 404


@pytest.mark.parametrize("step", [1, 2, 7, 64])
def test_finds_the_end_wherever_the_body_is_cut(alice: Caller, home: str, step: int) -> None:
    data = b"\r\n--Xy\r\n--XyY\r\n\r\n--" + b"z" * 50
    body, content_type = form(data)
    with alice.connect() as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(
            f"POST /api/v1/file?path={home}/f HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Token alice\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
        )
        for at in range(0, len(body), step):
            sock.sendall(body[at : at + step])
        assert sock.recv(1000).startswith(b"HTTP/1.1 200")
    assert alice.get(f"/api/v1/file?path={home}/f").body == data


def test_replaces_a_link_and_never_its_target(server: Running, alice: Caller, home: str) -> None:
    folder = server.home() / home.rpartition("/")[2]
    secret = server.root.parent / "secret"
    secret.write_text("not yours")
    (folder / "link").symlink_to(secret)
    (folder / "up").symlink_to("..")
    assert alice.get(f"/api/v1/file/?path={home}/link").status == 404
    assert put(alice, f"{home}/up/x", b"mine").status in (400, 404)
    assert put(alice, f"{home}/link", b"mine").status == 200
    assert secret.read_text() == "not yours"
    assert alice.get(f"/api/v1/file/?path={home}/link").body == b"mine"


def test_keeps_to_the_quota_though_no_length_is_said(server: Running) -> None:
    small = server.as_user("small")
    path = "/pfs/local/home/small/simple"
    assert put(small, path, b"x" * 200_000).status == 507
    assert small.get(f"/api/v1/file/?path={path}").status == 404


def test_never_writes_public_data(server: Running, alice: Caller) -> None:
    (server.root / "public" / "simple").write_bytes(b"for all")
    assert alice.get("/api/v1/file/?path=/pfs/local/public/simple").body == b"for all"
    assert put(alice, "/pfs/local/public/mine", b"").status == 403
