"""The process: how it starts, how it stops, and what a kill costs."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.wire.digests import LEAF_BYTES
from tests.patience import PATIENCE_S
from tests.pfs.calls import PFS, batch, begin, content, digest_of, leaf_digests, put, stream
from tests.pfs.running import Caller, FakeCloud, Running, read_all

_HOME = "/pfs/local/home/alice"


def _head(upload: str, offset: int, length: int) -> bytes:
    return (
        f"PUT {PFS}/uploads/{upload}?offset={offset} HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: Token alice\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def _main(*arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "paddlecloud.pfs.serving", *arguments]
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_says_where_it_serves_what(own_server: Running) -> None:
    line = own_server.log.splitlines()[0]
    assert f"http://127.0.0.1:{own_server.port}" in line
    assert str(own_server.root) in line
    assert "rename atomic, fsync works" in line
    assert own_server.facts["pid"] == own_server.pid


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "--root: is needed (or PADDLECLOUD_PFS_ROOT)"),
        (("--root", "{tmp}"), 2, "--server: is needed"),
        (("--root", "{tmp}", "--server", "cloud"), 2, "'cloud' is not an address"),
        (("--root", "{tmp}", "--server", "http://x", "--port", "99999"), 2, "0 to 65535"),
        (("--root", "{tmp}", "--server", "http://x", "--tls-cert", "/none"), 2, "cannot be read"),
        (("--root", "/proc/none", "--server", "http://x", "--port", "0"), 1, "error:"),
        (("--nonsense",), 2, "unrecognized arguments"),
    ],
)
def test_refuses_to_start_with_a_sentence(
    tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    ended = _main(*(word.format(tmp=tmp_path) for word in arguments))
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.returncode in (code, 4)


def test_is_started_by_its_verb(tmp_path: Path, cloud: FakeCloud) -> None:
    run_file = tmp_path / "run"
    words = [sys.executable, "-m", "paddlecloud", "pfsserver", "--root", str(tmp_path / "root")]
    words += ["--server", cloud.url, "--port", "0", "--run-file", str(run_file)]
    process = subprocess.Popen([*words, "--datacenter", "a", "--datacenter", "b", "--no-sync"])
    try:
        while not run_file.exists():
            assert process.poll() is None
            time.sleep(0.01)
        facts = json.loads(run_file.read_text())
        assert facts["pid"] == process.pid  # no process in between
        alice = Running(tmp_path / "root", cloud.url, port=facts["port"]).as_user()
        for name, status in (("a", 200), ("b", 200), ("c", 400)):
            path = f"{PFS}/entries?path=/pfs/{name}/home/alice"
            assert alice.get(path).status == status
    finally:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


def test_says_when_its_port_or_its_root_is_taken(own_server: Running, tmp_path: Path) -> None:
    server = ("--server", own_server.cloud_url)
    port = _main("--root", str(tmp_path), *server, "--port", str(own_server.port))
    assert (port.returncode, "cannot listen on" in port.stderr) == (5, True)
    root = _main("--root", str(own_server.root), *server, "--port", "0")
    assert (root.returncode, "already serves" in root.stderr) == (1, True)


def test_loses_nothing_acknowledged_to_a_kill_and_resumes(own_server: Running) -> None:
    alice = own_server.as_user()
    put(alice, f"{_HOME}/kept", b"acknowledged")
    batch(alice, _HOME, stream({"b/1": b"one", "b/2": b"two"}), 2, 6)
    data = os.urandom(3 * LEAF_BYTES + 5)
    upload = begin(alice, f"{_HOME}/big", data)["id"]
    with alice.connect() as sock:
        sock.sendall(_head(upload, 0, len(data)) + data[: 2 * LEAF_BYTES + 1000])
        while len(begin(alice, f"{_HOME}/big", data)["received"]) < 2:
            pass
        own_server.stop(signal.SIGKILL)
    own_server.start()
    alice = own_server.as_user()
    assert content(alice, f"{_HOME}/kept").body == b"acknowledged"
    assert content(alice, f"{_HOME}/b/2").body == b"two"
    assert content(alice, f"{_HOME}/big").status == 404
    again = begin(alice, f"{_HOME}/big", data)
    leaves = leaf_digests(data)
    assert again["id"] == upload
    assert again["received"] == [[0, leaves[0]], [1, leaves[1]]]
    rest = data[2 * LEAF_BYTES :]
    alice.call("PUT", f"{PFS}/uploads/{upload}?offset={2 * LEAF_BYTES}", rest)
    done = alice.post(f"{PFS}/uploads/{upload}/commit", {"digest": digest_of(data)})
    assert done.status == 200
    assert content(alice, f"{_HOME}/big").body == data


def test_keeps_the_leaves_of_a_connection_that_broke(own_server: Running) -> None:
    alice = own_server.as_user()
    data = os.urandom(2 * LEAF_BYTES)
    upload = begin(alice, f"{_HOME}/f", data)["id"]
    with alice.connect() as sock:
        sock.sendall(_head(upload, 0, len(data)) + data[: LEAF_BYTES + 1])
    while begin(alice, f"{_HOME}/f", data)["begun"] != [[1, 1]]:
        pass
    assert begin(alice, f"{_HOME}/f", data)["received"] == [[0, leaf_digests(data)[0]]]
    rest = data[LEAF_BYTES + 1 :]
    done = alice.call("PUT", f"{PFS}/uploads/{upload}?offset={LEAF_BYTES + 1}", rest)
    assert done.json["leaves"] == leaf_digests(data)[1:]


def test_finishes_the_request_in_hand_when_it_is_told_to_stop(own_server: Running) -> None:
    alice = own_server.as_user()
    data = os.urandom(LEAF_BYTES)
    upload = begin(alice, f"{_HOME}/f", data)["id"]
    with alice.connect() as idle, alice.connect() as sock:
        sock.sendall(_head(upload, 0, len(data)) + data[:1000])
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert idle.recv(100).startswith(b"HTTP/1.1 200")
        assert own_server.process is not None
        own_server.process.terminate()
        assert idle.recv(100) == b""  # closed at once, nobody waits for it
        sock.sendall(data[1000:])
        answer = read_all(sock)
        assert answer.startswith(b"HTTP/1.1 200")
        assert leaf_digests(data)[0].encode() in answer
    assert own_server.process.wait(PATIENCE_S) == 0
    assert not (own_server.root.parent / "root.run").exists()


def test_cuts_who_goes_on_after_the_grace(own_server: Running) -> None:
    alice = own_server.as_user()
    data = os.urandom(2 * LEAF_BYTES)
    upload = begin(alice, f"{_HOME}/f", data)["id"]
    with alice.connect() as sock:
        sock.sendall(_head(upload, 0, len(data)) + data[: LEAF_BYTES + 10])
        while not begin(alice, f"{_HOME}/f", data)["received"]:
            pass
        began_s = time.monotonic()
        assert own_server.stop() == 0
        assert time.monotonic() - began_s < 15
    own_server.start()
    kept = begin(own_server.as_user(), f"{_HOME}/f", data)["received"]
    assert kept == [[0, leaf_digests(data)[0]]]


# --- slow clients ---------------------------------------------------------------------------


def test_holds_no_thread_and_little_memory_for_slow_clients(own_server: Running) -> None:
    """200 who read nothing and 200 who send nothing; everybody else does not notice."""
    alice = own_server.as_user()
    put(alice, f"{_HOME}/large", os.urandom(12 << 20))
    uploads = [begin(alice, f"{_HOME}/slow{i}", b"x" * 200_000)["id"] for i in range(200)]
    threads, before = own_server.threads(), own_server.memory_bytes()
    socks: list[socket.socket] = []
    try:
        for number in range(200):
            reader = alice.connect()
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.sendall(
                f"GET {PFS}/content?path={_HOME}/large HTTP/1.1\r\nHost: x\r\n"
                "Authorization: Token alice\r\n\r\n".encode()
            )
            writer = alice.connect()
            writer.sendall(_head(uploads[number], 0, 200_000) + b"x" * 1000)
            socks += [reader, writer]
        for reader in socks[::2]:
            assert reader.recv(15) == b"HTTP/1.1 200 OK"
        answers: list[int] = []

        def work(number: int) -> None:
            for turn in range(5):
                data = os.urandom(10_000)
                path = f"{_HOME}/other-{number}-{turn}"
                answers.append(put(alice, path, data).status)
                assert content(alice, path).body == data

        workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for worker in workers:
            worker.start()
        for writer in socks[1::2]:
            writer.sendall(b"x" * 10)  # a trickle, while the others work
        for worker in workers:
            worker.join(120)
        assert answers == [200] * 20
        assert own_server.threads() == threads
        assert own_server.memory_bytes() - before < 40 << 20
        # They are slow, not lost: whoever goes on is served to the end.
        socks[1].sendall(b"x" * (200_000 - 1010))
        assert socks[1].recv(100).startswith(b"HTTP/1.1 200")
    finally:
        for sock in socks:
            sock.close()


def test_keeps_no_long_bodies_in_memory_for_slow_senders(own_server: Running) -> None:
    alice = own_server.as_user()
    alice.post(f"{PFS}/compare", {"path": _HOME, "files": []})
    before = own_server.memory_bytes()
    body = json.dumps({"path": _HOME, "files": [["x" * 200, 1, "0" * 64]] * 30_000}).encode()
    socks = [alice.connect() for _ in range(8)]
    try:
        for sock in socks:
            sock.sendall(
                f"POST {PFS}/compare HTTP/1.1\r\nHost: x\r\nAuthorization: Token alice\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body[:-1]
            )
        assert alice.get("/healthz").status == 200
        assert own_server.memory_bytes() - before < 24 << 20  # of 68 MB that were sent
        socks[0].sendall(body[-1:])
        assert socks[0].recv(100).startswith(b"HTTP/1.1 200")
    finally:
        for sock in socks:
            sock.close()


def test_keeps_no_long_lists_in_memory_for_slow_readers(own_server: Running) -> None:
    alice = own_server.as_user()
    names = {f"{number:05d}-{'n' * 200}": b"" for number in range(6000)}
    assert batch(alice, _HOME, stream(names), 6000, 0).json["stored"] == 6000
    path = f"{PFS}/entries?limit=10000&path={_HOME}"
    whole = alice.get(path).body
    assert len(whole) > 1_000_000
    before = own_server.memory_bytes()
    socks = []
    for _ in range(60):
        sock = alice.connect()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall(
            f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Token alice\r\n"
            "Connection: close\r\n\r\n".encode()
        )
        socks.append(sock)
    try:
        for sock in socks:
            assert sock.recv(15) == b"HTTP/1.1 200 OK"
        assert own_server.memory_bytes() - before < 30 << 20
        assert read_all(socks[0]).partition(b"\r\n\r\n")[2] == whole
    finally:
        for sock in socks:
            sock.close()


def _is_healthy(caller: Caller) -> bool:
    try:
        return caller.get("/healthz").status == 200
    except (ConnectionResetError, http.client.HTTPException):
        return False  # refused so early that not even the refusal arrived


@pytest.fixture
def narrow(tmp_path: Path, cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """A server for five connections."""
    monkeypatch.setenv("PADDLECLOUD_PFS_MAX_CONNECTIONS", "5")
    running = Running(tmp_path / "root", cloud.url).start()
    yield running
    running.stop()


def test_closes_an_idle_connection_for_one_that_asks(narrow: Running) -> None:
    alice = narrow.as_user()
    held = [alice.connect() for _ in range(5)]
    for sock in held:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 200")
    assert _is_healthy(alice)
    (closed,), _, _ = select.select(held, [], [], 60)
    assert closed.recv(100) == b""
    for sock in held:
        sock.close()


def test_refuses_more_connections_than_it_can_hold(narrow: Running) -> None:
    alice = narrow.as_user()
    half = (
        f"POST {PFS}/uploads HTTP/1.1\r\nHost: x\r\nAuthorization: Token alice\r\n"
        "Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n"
    ).encode()
    held = [alice.connect() for _ in range(5)]
    for sock in held:
        sock.sendall(half)
        assert sock.recv(100).startswith(b"HTTP/1.1 100")
    with alice.connect() as one_more:
        assert one_more.recv(100).startswith(b"HTTP/1.1 503")
    held.pop().close()
    while not _is_healthy(alice):
        pass
    for sock in held:
        sock.close()


# --- TLS ------------------------------------------------------------------------------------
