"""The file server as the platform runs it: reached through the server, kept, ended with it."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paddlecloud.testing.ports import free_port
from paddlecloud.wire.digests import LEAF_BYTES, combine, leaf_hash
from tests.patience import PATIENCE_S
from tests.server.running import Answer, Caller, Running

MIB = 1 << 20
HOME = "/pfs/local/home/root"


def _digest(data: bytes) -> str:
    leaves = []
    for start in range(0, max(1, len(data)), LEAF_BYTES):
        one = leaf_hash()
        one.update(data[start : start + LEAF_BYTES])
        leaves.append(one.digest())
    return combine(leaves).hex()


def _begin(caller: Caller, path: str, size_bytes: int) -> Answer:
    body = {
        "path": path,
        "size": size_bytes,
        "mtime_ns": None,
        "executable": False,
        "source": "test",
    }
    return caller.post("/api/v2/pfs/uploads", body)


def _put_file(caller: Caller, path: str, data: bytes) -> None:
    upload_id = _begin(caller, path, len(data)).json["id"]
    put = caller.call("PUT", f"/api/v2/pfs/uploads/{upload_id}?offset=0", data)
    assert put.status == 200, put.body
    done = caller.post(f"/api/v2/pfs/uploads/{upload_id}/commit", {"digest": _digest(data)})
    assert done.status == 200, done.body


def _content(caller: Caller, path: str, **headers: str) -> Answer:
    return caller.get(f"/api/v2/pfs/content?path={path}", **headers)


def _child(server: Running) -> int:
    """The pid of the file server."""
    assert server.process is not None
    for task in Path(f"/proc/{server.process.pid}/task").iterdir():
        for pid in (task / "children").read_text().split():
            if b"paddlecloud.pfs.serving" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return int(pid)
    raise AssertionError("no file server")


@contextmanager
def _watched(pid: int) -> Iterator[Callable[[], bool]]:
    """Whether a process ends within some seconds."""
    fd = os.pidfd_open(pid)
    try:
        yield lambda: bool(select.select([fd], [], [], 10)[0])
    finally:
        os.close(fd)


def _highest_rss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(pid)


# --- through the server ------------------------------------------------------------------------


def test_passes_a_file_both_ways(user: Caller) -> None:
    home = f"/pfs/local/home/{user.get('/api/v2/whoami').json['name']}"
    data = os.urandom(5 * MIB + 7)
    _put_file(user, f"{home}/a/b.bin", data)
    assert _content(user, f"{home}/a/b.bin").body == data
    part = _content(user, f"{home}/a/b.bin", Range="bytes=5242880-")
    assert (part.status, part.body) == (206, data[5 * MIB :])
    head = user.call("HEAD", f"/api/v2/pfs/content?path={home}/a/b.bin")
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(len(data)))
    same = _content(user, f"{home}/a/b.bin", If_None_Match=head.headers["etag"])
    assert (same.status, same.body) == (304, b"")


def test_lets_nobody_in_who_is_not_known(server: Running, user: Caller) -> None:
    for caller in (server.anonymous, Caller(server.port, "Token pct_wrong")):
        assert caller.get(f"/api/v2/pfs/entries?path={HOME}").status == 401
        assert caller.post("/api/v2/pfs/remove", {"paths": [HOME]}).status == 401
    forged = {"PFS_Relay": "x", "PFS_Caller": "e30="}
    assert server.anonymous.get(f"/api/v2/pfs/entries?path={HOME}", **forged).status == 401
    assert user.get(f"/api/v2/pfs/entries?path={HOME}").status == 403
    secret = server.state / "secrets" / "pfs-relay"
    assert secret.stat().st_mode & 0o777 == 0o600


def test_the_file_server_s_own_port_asks_the_server_who_calls(
    server: Running, user: Caller
) -> None:
    port = server.admin.get("/api/v2/status").json["pfs"]["port"]
    path = f"/api/v2/pfs/entries?path={HOME}"
    direct = server.admin
    direct.port = port
    assert direct.get(path).status == 200
    assert Caller(port).get(path).status == 401
    assert Caller(port).get(path, PFS_Relay="x", PFS_Caller="e30=").status == 401
    user.port = port
    assert user.get(path).status == 403


def test_refuses_what_the_account_may_not_store(server: Running, user: Caller) -> None:
    name = user.get("/api/v2/whoami").json["name"]
    limits = {"storage": str(2 * MIB), "files": 3}
    server.admin.call("PUT", f"/api/v2/accounts/{name}/quota", limits)
    home = f"/pfs/local/home/{name}"
    _put_file(user, f"{home}/one", b"x" * MIB)
    refused = _begin(user, f"{home}/two", MIB + 1)
    assert (refused.status, refused.json["code"]) == (507, "quota_exceeded")
    _put_file(user, f"{home}/two", b"")
    _put_file(user, f"{home}/three", b"")
    assert _begin(user, f"{home}/four", 0).status == 507


def test_a_large_body_costs_the_server_no_memory(make_server: Callable[..., Running]) -> None:
    server = make_server().start()
    size_bytes = 200 * MIB
    upload_id = _begin(server.admin, f"{HOME}/large", size_bytes).json["id"]
    assert server.process is not None
    before_mib = _highest_rss_mib(server.process.pid)
    connection = server.admin.connect()
    connection.putrequest("PUT", f"/api/v2/pfs/uploads/{upload_id}?offset=0")
    for name, value in server.admin.headers({"Content-Length": str(size_bytes)}).items():
        connection.putheader(name, value)
    connection.endheaders()
    piece = bytes(MIB)
    for _ in range(size_bytes // MIB):
        connection.send(piece)
    answer = connection.getresponse()
    leaves = json.loads(answer.read())["leaves"]
    assert answer.status == 200
    connection.close()
    digest = combine([bytes.fromhex(leaf) for leaf in leaves]).hex()
    commit = f"/api/v2/pfs/uploads/{upload_id}/commit"
    assert server.admin.post(commit, {"digest": digest}).status == 200
    connection = server.admin.connect()
    path = f"/api/v2/pfs/content?path={HOME}/large"
    connection.request("GET", path, headers=server.admin.headers())
    response, read_bytes = connection.getresponse(), 0
    while data := response.read(MIB):
        read_bytes += len(data)
    connection.close()
    assert read_bytes == size_bytes
    assert _highest_rss_mib(server.process.pid) - before_mib < 20


def test_a_client_that_does_not_read_holds_nothing_up(server: Running, user: Caller) -> None:
    home = f"/pfs/local/home/{user.get('/api/v2/whoami').json['name']}"
    _put_file(user, f"{home}/big", bytes(32 * MIB))
    slow = [user.connect() for _ in range(20)]
    for connection in slow:
        path = f"/api/v2/pfs/content?path={home}/big"
        connection.request("GET", path, headers=user.headers())
    assert user.get(f"/api/v2/pfs/entry?path={home}/big").status == 200
    assert user.get("/api/v2/whoami").status == 200
    for connection in slow:
        connection.close()


def test_a_cut_upload_keeps_what_came_whole(user: Caller) -> None:
    home = f"/pfs/local/home/{user.get('/api/v2/whoami').json['name']}"
    data = os.urandom(3 * LEAF_BYTES)
    upload_id = _begin(user, f"{home}/cut", len(data)).json["id"]
    connection = user.connect()
    connection.putrequest("PUT", f"/api/v2/pfs/uploads/{upload_id}?offset=0")
    for name, value in user.headers({"Content-Length": str(len(data))}).items():
        connection.putheader(name, value)
    connection.endheaders()
    connection.send(data[: LEAF_BYTES + MIB])
    connection.close()
    deadline = time.monotonic() + PATIENCE_S
    received: list[list[object]] = []
    while not received and time.monotonic() < deadline:
        received = _begin(user, f"{home}/cut", len(data)).json["received"]
    assert [index for index, _ in received] == [0]
    rest = f"/api/v2/pfs/uploads/{upload_id}?offset={LEAF_BYTES}"
    assert user.call("PUT", rest, data[LEAF_BYTES:]).status == 200
    commit = f"/api/v2/pfs/uploads/{upload_id}/commit"
    assert user.post(commit, {"digest": _digest(data)}).status == 200
    assert _content(user, f"{home}/cut").body == data


def test_asks_for_a_body_only_when_it_can_be_taken(server: Running, user: Caller) -> None:
    name = user.get("/api/v2/whoami").json["name"]
    upload_id = _begin(user, f"/pfs/local/home/{name}/x", 4).json["id"]
    for target, expected in ((upload_id, b"100"), ("no-such-upload", b"404")):
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as sock:
            head = f"PUT /api/v2/pfs/uploads/{target}?offset=0 HTTP/1.1\r\nHost: x\r\n"
            head += "Content-Length: 4\r\nExpect: 100-continue\r\n"
            head += "".join(f"{key}: {value}\r\n" for key, value in user.headers().items())
            sock.sendall(head.encode() + b"\r\n")
            assert sock.recv(4096).split()[1] == expected


# --- its life ------------------------------------------------------------------------------------


def test_is_started_again_on_the_same_port_and_goes_on(
    make_server: Callable[..., Running],
) -> None:
    server = make_server().start()
    data = os.urandom(2 * LEAF_BYTES)
    upload_id = _begin(server.admin, f"{HOME}/x", len(data)).json["id"]
    first = f"/api/v2/pfs/uploads/{upload_id}?offset=0"
    assert server.admin.call("PUT", first, data[:LEAF_BYTES]).status == 200
    port, child = server.admin.get("/api/v2/status").json["pfs"]["port"], _child(server)
    with _watched(child) as has_ended:
        os.kill(child, signal.SIGKILL)
        assert has_ended()
    # Nothing is refused in between: whoever connects waits for the next one.
    received = _begin(server.admin, f"{HOME}/x", len(data)).json["received"]
    assert [index for index, _ in received] == [0]
    rest = f"/api/v2/pfs/uploads/{upload_id}?offset={LEAF_BYTES}"
    assert server.admin.call("PUT", rest, data[LEAF_BYTES:]).status == 200
    commit = f"/api/v2/pfs/uploads/{upload_id}/commit"
    assert server.admin.post(commit, {"digest": _digest(data)}).status == 200
    pfs = server.admin.get("/api/v2/status").json["pfs"]
    assert (pfs["port"], pfs["url"], pfs["state"]) == (port, "", "running")
    assert "rename atomic" in pfs["promises"]
    assert _child(server) != child
    assert "SIGKILL" in server.log.read_text()


def test_a_transfer_that_is_cut_by_its_end_is_cut_for_the_client(
    make_server: Callable[..., Running],
) -> None:
    server = make_server().start()
    _put_file(server.admin, f"{HOME}/big", bytes(64 * MIB))
    connection = server.admin.connect()
    path = f"/api/v2/pfs/content?path={HOME}/big"
    connection.request("GET", path, headers=server.admin.headers())
    response = connection.getresponse()
    response.read(MIB)
    os.kill(_child(server), signal.SIGKILL)
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        response.read()
    connection.close()
    assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize("how", ["stop", "kill_9"])
def test_ends_with_the_server(make_server: Callable[..., Running], how: str) -> None:
    server = make_server().start()
    assert server.admin.get(f"/api/v2/pfs/entries?path={HOME}").status == 200
    with _watched(_child(server)) as has_ended:
        getattr(server, how)()
        assert has_ended()


def test_a_server_that_was_killed_finds_the_files_again(
    make_server: Callable[..., Running],
) -> None:
    server = make_server().start()
    _put_file(server.admin, f"{HOME}/x", b"kept")
    server.kill_9()
    server.start()
    assert _content(server.admin, f"{HOME}/x").body == b"kept"


def test_a_port_can_be_chosen_and_a_taken_one_is_named(
    make_server: Callable[..., Running],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = make_server(PADDLECLOUD_PFS_PORT=str(port))
        process = server.launch()
        assert process.wait(PATIENCE_S) == 5
        assert f"cannot listen on 127.0.0.1:{port}" in server.log.read_text()
    server.start()
    assert server.admin.get("/api/v2/status").json["pfs"]["port"] == port
    # A child that still serves when its server is killed holds the port a moment longer.
    _put_file(server.admin, f"{HOME}/big", bytes(32 * MIB))
    slow = server.admin.connect()
    path = f"/api/v2/pfs/content?path={HOME}/big"
    slow.port = port
    slow.request("GET", path, headers=server.admin.headers())
    assert slow.getresponse().status == 200
    server.kill_9()
    server.start()
    assert server.admin.get("/api/v2/status").json["pfs"]["port"] == port
    slow.close()


def test_serves_files_over_tls(make_server: Callable[..., Running]) -> None:
    server = make_server(PADDLECLOUD_TLS="1").start()
    context = ssl.create_default_context(cafile=str(server.state / "secrets" / "ca.pem"))

    def get(port: int, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=PATIENCE_S, context=context
        )
        try:
            connection.request("GET", path, headers=server.admin.headers())
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    port = json.loads(get(server.port, "/api/v2/status")[1])["pfs"]["port"]
    path = f"/api/v2/pfs/entries?path={HOME}"
    assert get(server.port, path)[0] == 200
    assert get(port, path)[0] == 200


@pytest.mark.parametrize("knows_secret", [False, True])
def test_uses_a_file_server_that_runs_elsewhere(
    make_server: Callable[..., Running], tmp_path: Path, knows_secret: bool
) -> None:
    server = make_server().start()  # to have a port and the secrets
    assert server.stop() == 0
    port = free_port()
    program = [sys.executable, "-m", "paddlecloud.pfs.serving", "--port", str(port)]
    program += ["--root", str(server.state / "pfs"), "--run-file", str(tmp_path / "run.json")]
    program += ["--server", f"http://127.0.0.1:{server.port}"]
    if knows_secret:
        program += ["--relay-secret", str(server.state / "secrets" / "pfs-relay")]
        server.env["PADDLECLOUD_PFS_SECRET"] = "1"
    elsewhere = subprocess.Popen(program, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not (tmp_path / "run.json").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        server.env["PADDLECLOUD_PFS_URL"] = f"http://127.0.0.1:{port}"
        server.start()
        _put_file(server.admin, f"{HOME}/x", b"there")
        assert _content(server.admin, f"{HOME}/x").body == b"there"
        # Who has no token of his own is let in by our word, if that is known for ours.
        url = server.admin.post("/api/v2/publications", {"path": f"{HOME}/x"}).json["url"]
        published = server.anonymous.get(url.partition(str(server.port))[2])
        assert published.status == (200 if knows_secret else 404)
        pfs = server.admin.get("/api/v2/status").json["pfs"]
        assert (pfs["port"], pfs["state"]) == (0, "outside")
        assert pfs["url"] == f"http://127.0.0.1:{port}"
    finally:
        elsewhere.terminate()
        elsewhere.wait(PATIENCE_S)
    answer = _content(server.admin, f"{HOME}/x")
    assert (answer.status, answer.json["code"]) == (503, "unavailable")


def test_many_relayed_requests_at_once(user: Caller) -> None:
    home = f"/pfs/local/home/{user.get('/api/v2/whoami').json['name']}"
    failures: list[object] = []

    def work(number: int) -> None:
        data = os.urandom(100_000)
        try:
            _put_file(user, f"{home}/many/{number}", data)
            assert _content(user, f"{home}/many/{number}").body == data
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_stop_cuts_what_still_goes_through(make_server: Callable[..., Running]) -> None:
    server = make_server().start()
    _put_file(server.admin, f"{HOME}/big", bytes(64 * MIB))
    slow = server.admin.connect()
    slow.request("GET", f"/api/v2/pfs/content?path={HOME}/big", headers=server.admin.headers())
    assert slow.getresponse().status == 200
    with _watched(_child(server)) as has_ended:
        assert server.stop() == 0
        assert has_ended()
    slow.close()
    assert "Traceback" not in server.log.read_text()
