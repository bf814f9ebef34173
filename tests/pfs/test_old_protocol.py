"""The first file server's protocol, byte for byte as its client spoke it."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.patience import PATIENCE_S
from tests.pfs.calls import content, put
from tests.pfs.running import Answer, Caller, FakeCloud, Running

V1 = "/api/v1/pfs"
BOUNDARY = "8d7b0e5709d756e21e971ff4d9ac3b20"
CHUNK = 8192


def files(caller: Caller, **params: Any) -> Answer:
    return caller.get(f"{V1}/files?{urlencode(params, doseq=True)}")


def change(caller: Caller, **body: Any) -> dict[str, Any]:
    answer = caller.post(f"{V1}/files", body)
    assert answer.status == 200, answer
    assert set(answer.json) == {"err", "results"}
    return answer.json


def meta(caller: Caller, path: str, offset: int, chunk: int = CHUNK) -> dict[str, Any]:
    query = urlencode(
        {"method": "GetChunkMeta", "path": path, "offset": offset, "chunksize": chunk}
    )
    answer = caller.get(f"{V1}/chunks?{query}")
    assert answer.status == 200
    return answer.json


def name_of(path: str, offset: int, chunk: int = CHUNK) -> str:
    return urlencode({"chunksize": chunk, "offset": offset, "path": path})


def post_chunk(caller: Caller, path: str, offset: int, data: bytes, *, said: bool) -> Any:
    """The bytes of its client: mime/multipart's writer with the fixed boundary."""
    body = (
        (
            f"--{BOUNDARY}\r\n"
            f'Content-Disposition: form-data; name="chunk"; filename="{name_of(path, offset)}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        ).encode()
        + data
        + f"\r\n--{BOUNDARY}--\r\n".encode()
    )
    headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"} if said else {}
    answer = caller.call("POST", f"{V1}/storage/chunks", body, headers)
    assert answer.status == 200, answer
    return answer.json


def get_chunk(caller: Caller, path: str, offset: int) -> tuple[bytes, dict[str, Any]]:
    query = urlencode({"path": path, "offset": offset, "chunksize": CHUNK})
    answer = caller.get(f"{V1}/storage/chunks?{query}")
    assert answer.status == 200
    assert "multipart" not in answer.headers["content-type"]
    head, _, rest = answer.body.partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0] == f"--{BOUNDARY}".encode()
    assert f'filename="{name_of(path, offset)}"'.encode() in head
    data, _, envelope = rest.rpartition(f"\r\n--{BOUNDARY}--\r\n".encode())
    return data, json.loads(envelope)


def upload(caller: Caller, path: str, data: bytes, *, said: bool = True) -> list[int]:
    """What `paddlecloud cp` did: touch, then per chunk ask, and post what differs."""
    assert change(caller, method="touch", path=path, filesize=len(data))["err"] == ""
    sent = []
    for offset in range(0, max(1, len(data)), CHUNK):
        piece = data[offset : offset + CHUNK]
        answer = meta(caller, path, offset)
        assert answer["err"] == ""
        if answer["results"]["checksum"] != hashlib.md5(piece).hexdigest():
            assert post_chunk(caller, path, offset, piece, said=said) == {
                "err": "",
                "results": None,
            }
            sent.append(offset)
    return sent


@pytest.mark.parametrize("said", [True, False])
def test_takes_an_upload_and_gives_it_back(alice: Caller, home: str, said: bool) -> None:
    path, data = f"{home}/deep/f b+c", os.urandom(3 * CHUNK + 100)
    assert upload(alice, path, data, said=said) == [0, CHUNK, 2 * CHUNK, 3 * CHUNK]
    assert content(alice, path).body == data
    got = b""
    for offset in range(0, len(data), CHUNK):
        piece, envelope = get_chunk(alice, path, offset)
        got += piece
        short = len(piece) < CHUNK
        assert envelope["err"] == ("this file reaches end" if short else "")
    assert got == data


def test_goes_on_after_a_kill_with_what_had_arrived(own_server: Running) -> None:
    path, data = "/pfs/local/home/alice/f", os.urandom(3 * CHUNK)
    alice = own_server.as_user("alice")
    change(alice, method="touch", path=path, filesize=len(data))
    for offset in (0, CHUNK):
        post_chunk(alice, path, offset, data[offset : offset + CHUNK], said=True)
    own_server.stop(signal.SIGKILL)
    own_server.start()
    alice = own_server.as_user("alice")
    assert content(alice, path).status == 404
    usage = alice.get("/api/v2/pfs/usage?path=/pfs/local/home/alice").json
    assert usage["used_bytes"] == len(data)
    assert upload(alice, path, data) == [2 * CHUNK]
    assert content(alice, path).body == data


def test_shows_nothing_of_an_upload_until_it_is_whole(alice: Caller, home: str) -> None:
    path, data = f"{home}/f", os.urandom(2 * CHUNK)
    put(alice, path, b"before")
    change(alice, method="touch", path=path, filesize=len(data))
    meta(alice, path, 0)
    post_chunk(alice, path, 0, data[:CHUNK], said=True)
    assert content(alice, path).body == b"before"
    meta(alice, path, CHUNK)
    post_chunk(alice, path, CHUNK, data[CHUNK:], said=True)
    assert content(alice, path).body == data


def test_sends_only_the_chunks_that_differ(alice: Caller, home: str) -> None:
    path, data = f"{home}/f", os.urandom(4 * CHUNK)
    upload(alice, path, data)
    changed = data[:CHUNK] + os.urandom(CHUNK) + data[2 * CHUNK :]
    assert upload(alice, path, changed) == [CHUNK]
    while content(alice, path).body != changed:  # the last chunk was only asked for
        pass


def test_takes_an_empty_file(alice: Caller, home: str) -> None:
    assert upload(alice, f"{home}/empty", b"") == []
    assert content(alice, f"{home}/empty").body == b""
    empty = meta(alice, f"{home}/empty", 0)
    assert empty["results"] == {"offset": 0, "checksum": hashlib.md5().hexdigest(), "len": 0}


def test_lists_and_stats(alice: Caller, home: str) -> None:
    for name in ("a.txt", "b.txt", "c.bin", "sub/d.txt"):
        put(alice, f"{home}/{name}", name.encode(), mtime_ns=1_600_000_000_000_000_001)
    flat = files(alice, method="ls", r="false", arg=home).json
    assert flat["err"] == ""
    assert [row["Path"] for row in flat["results"]] == [
        f"{home}/{name}" for name in ("a.txt", "b.txt", "c.bin", "sub")
    ]
    assert flat["results"][0] == {
        "Path": f"{home}/a.txt",
        "ModTime": 1_600_000_000_000_000_001,
        "Size": 5,
        "IsDir": False,
    }
    deep = files(alice, method="ls", r="true", arg=home).json["results"]
    assert f"{home}/sub/d.txt" in [row["Path"] for row in deep]
    globbed = files(alice, method="ls", r="false", arg=[f"{home}/*.txt", f"{home}/c*"]).json
    assert [row["Path"].rpartition("/")[2] for row in globbed["results"]] == [
        "a.txt",
        "b.txt",
        "c.bin",
    ]
    none = files(alice, method="ls", r="false", arg=f"{home}/*.none")
    assert (none.status, none.json["err"]) == (200, "no such file or directory")
    stat = files(alice, method="stat", path=f"{home}/sub").json
    assert (stat["results"]["IsDir"], stat["results"]["Path"]) == (True, f"{home}/sub")
    assert files(alice, method="stat", path=f"{home}/no").json == {
        "err": "no such file or directory",
        "results": None,
    }


def test_makes_and_removes(alice: Caller, home: str) -> None:
    made = change(alice, method="mkdir", path=[f"{home}/x/y", f"{home}/z"])
    assert made == {"err": "", "results": [{"path": f"{home}/x/y"}, {"path": f"{home}/z"}]}
    refused = change(alice, method="rm", r=False, path=[f"{home}/x"])
    assert refused["err"] == f"can't del directory:{home}/x"
    put(alice, f"{home}/z/1.txt", b"")
    put(alice, f"{home}/z/2.txt", b"")
    answer = alice.call(
        "DELETE", f"{V1}/files", {"method": "rm", "r": False, "path": [f"{home}/z/*.txt"]}
    )
    assert answer.json["results"] == [
        {"path": f"{home}/z/1.txt"},
        {"path": f"{home}/z/2.txt"},
    ]
    nothing = change(alice, method="rm", r=True, path=[f"{home}/none*"])
    assert nothing == {"err": "", "results": []}
    assert change(alice, method="rm", r=True, path=[f"{home}/x"])["err"] == ""


@pytest.mark.parametrize(
    ("path", "err"),
    [
        ("/etc/passwd", "should be pfs path:/etc/passwd"),
        ("/pfs/local", "the path should be in format eg:/pf/datacentername/"),
        ("/pfs/local/home/bob/x", "what you request is unauthorized"),
        ("/pfs/local/home/alice/../bob/x", "a path cannot contain '..'"),
    ],
)
def test_refuses_in_its_own_words(alice: Caller, path: str, err: str) -> None:
    assert files(alice, method="stat", path=path).json == {"err": err, "results": None}
    assert change(alice, method="touch", path=path, filesize=1)["err"] == err
    assert change(alice, method="rm", r=True, path=[path])["err"] == err
    assert meta(alice, path, 0)["err"] == err


@pytest.mark.parametrize(
    ("body", "err"),
    [
        (b"{", "parse json error"),
        (b"[]", "parse json error"),
        (b'{"method":"chmod"}', "invalid arguments"),
        (b'{"method":"mkdir"}', "not enough arguments"),
        (b'{"method":"touch","path":"/pfs/local/home/alice/f","filesize":-1}', "bad file size"),
        (
            b'{"method":"touch","path":"/pfs/local/home/alice/f","filesize":1099511627777}',
            "bad file size",
        ),
    ],
)
def test_refuses_bodies_in_its_own_words(alice: Caller, body: bytes, err: str) -> None:
    answer = alice.post(f"{V1}/files", body)
    assert (answer.status, answer.json) == (200, {"err": err, "results": None})


def test_reads_bodies_longer_than_the_first_server_did(alice: Caller, home: str) -> None:
    paths = [f"{home}/{number:04d}" for number in range(200)]
    assert len(json.dumps(paths)) > 2048
    assert len(change(alice, method="mkdir", path=paths)["results"]) == 200


def test_lets_public_data_be_copied_but_not_changed(server: Running, alice: Caller) -> None:
    (server.root / "public" / "old").write_bytes(b"x" * 100)
    path = "/pfs/local/public/old"
    assert meta(alice, path, 0)["results"]["len"] == 100
    assert get_chunk(alice, path, 0)[0] == b"x" * 100
    words = "public data supports only ls or stat command"
    assert change(alice, method="touch", path=path, filesize=1)["err"] == words
    assert change(alice, method="rm", r=True, path=[path])["err"] == words
    assert post_chunk(alice, path, 0, b"y", said=True)["err"] == words


@pytest.mark.parametrize("chunk", [0, 4095, (32 << 20) + 1])
def test_refuses_chunks_of_other_sizes(alice: Caller, home: str, chunk: int) -> None:
    assert meta(alice, f"{home}/f", 0, chunk)["err"] == "chunksize error"


def test_keeps_its_status_codes(server: Running, alice: Caller) -> None:
    assert server.as_user("stranger").get(f"{V1}/files?method=ls").status == 401
    unknown = alice.call("PUT", f"{V1}/files")
    assert (unknown.status, unknown.json) == (405, {"err": "", "results": None})
    md5sum = files(alice, method="md5sum")
    assert (md5sum.status, md5sum.body) == (200, b"")


def test_refuses_a_chunk_it_cannot_read(alice: Caller, home: str) -> None:
    path = f"{home}/f"
    change(alice, method="touch", path=path, filesize=CHUNK)
    for body in (b"", b"plain", f"--{BOUNDARY}\r\n\r\nx".encode(), f"--{BOUNDARY}--".encode()):
        answer = alice.call("POST", f"{V1}/storage/chunks", body)
        assert answer.status == 200
        assert answer.json["err"]
    too_long = post_chunk(alice, path, 0, b"x" * (CHUNK + 1), said=True)
    assert too_long["err"]


_WAITS = """
import os
real = os.copy_file_range
def copy_file_range(*args):
    with open(os.environ["COPIES_WAIT_FOR"]) as pipe:
        pipe.read()
    return real(*args)
os.copy_file_range = copy_file_range
"""


def test_chunks_of_a_large_file_hold_up_nobody(
    tmp_path: Path, cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of them than there are threads to move bytes, and the copy they need takes long."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(_WAITS)
    monkeypatch.setenv("COPIES_WAIT_FOR", str(pipe))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), prepend=os.pathsep)
    running = Running(tmp_path / "root", cloud.url).start()
    try:
        path = "/pfs/local/home/alice/large"
        put(running.as_user("alice"), path, b"o" * 10 * CHUNK)
        told: list[Any] = []

        def post(number: int) -> None:
            piece = bytes([number]) * CHUNK
            told.append(
                post_chunk(running.as_user("alice"), path, number * CHUNK, piece, said=True)
            )

        posts = [threading.Thread(target=post, args=[number]) for number in range(9)]
        for thread in posts:
            thread.start()
        with pipe.open("w"):  # opened: the copy is under way, and goes on when this is closed
            bob = running.as_user("bob")
            for name in "abc":
                assert running.as_user("alice").get("/healthz").status == 200
                upload(bob, f"/pfs/local/home/bob/{name}", os.urandom(2 * CHUNK))
        for thread in posts:
            thread.join(PATIENCE_S)
        assert told == [{"err": "", "results": None}] * 9
    finally:
        running.stop()
    expected = b"".join(bytes([number]) * CHUNK for number in range(9)) + b"o" * CHUNK
    assert (running.home() / "large").read_bytes() == expected  # published at the latest now
