"""Protocol v2, call by call, over real HTTP on a real store."""

from __future__ import annotations

import os
import time
from urllib.parse import quote

import pytest
from xxhash import xxh3_128_hexdigest

from paddlecloud.wire import records, snapshots
from paddlecloud.wire.digests import LEAF_BYTES, folder_digest
from tests.pfs.calls import (
    PFS,
    ask,
    batch,
    begin,
    content,
    digest_of,
    leaf_digests,
    put,
    read_stream,
    record,
    stream,
)
from tests.pfs.running import Caller, Running

_THREE_LEAVES = os.urandom(2 * LEAF_BYTES + 12_345)


@pytest.mark.parametrize("size", [0, 1, 4096, LEAF_BYTES, LEAF_BYTES + 1])
def test_stores_what_was_sent(server: Running, alice: Caller, home: str, size: int) -> None:
    data = os.urandom(size)
    entry = put(alice, f"{home}/f", data, executable=True, mtime_ns=1_600_000_000_123_456_789)
    assert entry.status == 200
    assert entry.json == {
        "name": "f",
        "type": "file",
        "size": size,
        "mtime_ns": 1_600_000_000_123_456_789,
        "executable": True,
        "digest": digest_of(data),
    }
    got = content(alice, f"{home}/f")
    assert (got.status, got.body) == (200, data)
    assert got.headers["content-length"] == str(size)
    assert got.headers["pfs-executable"] == "1"
    assert got.headers["pfs-mtime-ns"] == "1600000000123456789"


def test_answers_each_leaf_and_resumes_with_those_it_has(alice: Caller, home: str) -> None:
    data, leaves = _THREE_LEAVES, leaf_digests(_THREE_LEAVES)
    upload = begin(alice, f"{home}/f", data)["id"]
    second = data[LEAF_BYTES : 2 * LEAF_BYTES]
    sent = alice.call("PUT", f"{PFS}/uploads/{upload}?offset={LEAF_BYTES}", second)
    assert sent.json == {"leaves": [leaves[1]]}
    again = begin(alice, f"{home}/f", data)
    assert (again["id"], again["received"]) == (upload, [[1, leaves[1]]])
    early = alice.post(f"{PFS}/uploads/{upload}/commit", {"digest": digest_of(data)})
    assert (early.status, early.json["code"], early.json["missing"]) == (409, "conflict", [0, 2])
    assert ask(alice, "entry", f"{home}/f").status == 404
    alice.call("PUT", f"{PFS}/uploads/{upload}?offset=0", data[:LEAF_BYTES])
    last = alice.call("PUT", f"{PFS}/uploads/{upload}?offset={2 * LEAF_BYTES}", b"x" * 12_345)
    assert last.status == 200
    wrong = alice.post(f"{PFS}/uploads/{upload}/commit", {"digest": digest_of(data)})
    assert wrong.status == 409
    assert wrong.json["leaves"][:2] == leaves[:2]
    assert wrong.json["leaves"][2] != leaves[2]
    alice.call("PUT", f"{PFS}/uploads/{upload}?offset={2 * LEAF_BYTES}", data[2 * LEAF_BYTES :])
    done = alice.post(f"{PFS}/uploads/{upload}/commit", {"digest": digest_of(data)})
    assert done.status == 200
    assert content(alice, f"{home}/f").body == data


def test_answers_the_checks_of_leaves_when_asked(alice: Caller, home: str) -> None:
    data = _THREE_LEAVES
    upload = begin(alice, f"{home}/f", data)
    assert upload["checks"] is True
    asked = f"{PFS}/uploads/{upload['id']}?checks=1&offset="
    sent = alice.call("PUT", f"{asked}{LEAF_BYTES}", data[LEAF_BYTES:])
    assert sent.json == {
        "leaves": leaf_digests(data)[1:],
        "checks": [
            xxh3_128_hexdigest(data[LEAF_BYTES : 2 * LEAF_BYTES]),
            xxh3_128_hexdigest(data[2 * LEAF_BYTES :]),
        ],
    }
    refused = alice.call("PUT", f"{PFS}/uploads/{upload['id']}?checks=md5", data)
    assert (refused.status, refused.json["field"]) == (400, "checks")


def test_reuses_leaves_of_the_file_that_is_there(alice: Caller, home: str) -> None:
    put(alice, f"{home}/f", _THREE_LEAVES, mtime_ns=1)
    time.sleep(0.05)  # a file written this instant is not believed yet, its times may not tell
    ask(alice, "entry", f"{home}/f", digest=1)
    changed = _THREE_LEAVES[:LEAF_BYTES] + b"y" + _THREE_LEAVES[LEAF_BYTES + 1 :]
    upload = begin(alice, f"{home}/f", changed, source="other")
    assert upload["base"] == leaf_digests(_THREE_LEAVES)
    twice = alice.post(f"{PFS}/uploads/{upload['id']}/reuse", {"leaves": [0, 2, 0]})
    assert (twice.status, twice.json["field"]) == (400, "leaves")
    reused = alice.post(f"{PFS}/uploads/{upload['id']}/reuse", {"leaves": [0, 2]})
    leaves = leaf_digests(changed)
    assert reused.json == {"leaves": [[0, leaves[0]], [2, leaves[2]]]}
    middle = changed[LEAF_BYTES : 2 * LEAF_BYTES]
    alice.call("PUT", f"{PFS}/uploads/{upload['id']}?offset={LEAF_BYTES}", middle)
    done = alice.post(f"{PFS}/uploads/{upload['id']}/commit", {"digest": digest_of(changed)})
    assert done.status == 200
    assert content(alice, f"{home}/f").body == changed


def test_lists_and_forgets_unfinished_uploads(alice: Caller, home: str) -> None:
    upload = begin(alice, f"{home}/later", _THREE_LEAVES)["id"]
    alice.call("PUT", f"{PFS}/uploads/{upload}?offset=0", _THREE_LEAVES[:LEAF_BYTES])
    rows = {row["id"]: row for row in alice.get(f"{PFS}/uploads").json["uploads"]}
    assert rows[upload]["path"] == f"{home}/later"
    assert rows[upload]["received_bytes"] == LEAF_BYTES
    gone = alice.call("DELETE", f"{PFS}/uploads/{upload}")
    assert (gone.status, gone.body) == (204, b"")
    assert upload not in {row["id"] for row in alice.get(f"{PFS}/uploads").json["uploads"]}


@pytest.mark.parametrize(
    ("query", "data", "status"),
    [
        ("offset=1", b"x", 400),
        ("offset=0", b"too short", 400),
        (f"offset={LEAF_BYTES}", b"behind the end", 400),
        ("offset=-1", b"", 400),
        ("offset=x", b"", 400),
    ],
)
def test_refuses_bodies_that_are_no_leaves(
    alice: Caller, home: str, query: str, data: bytes, status: int
) -> None:
    upload = begin(alice, f"{home}/f", b"1234567890")["id"]
    assert alice.call("PUT", f"{PFS}/uploads/{upload}?{query}", data).status == status


def test_stores_a_batch_and_says_which_records_it_refused(
    server: Running, alice: Caller, home: str
) -> None:
    body = (
        records.MAGIC
        + record("a/one", b"1")
        + record("a/run.sh", b"#!/bin/sh\n", records.Kind.EXECUTABLE)
        + record("../out", b"2")
        + record("bad", b"3")[:-1]
        + b"\0"
        + records.encode_head(records.Kind.DIRECTORY, "empty/folder")
        + record("empty file", b"")
        + record("ünï/ß", "ß".encode())
        + records.END
    )
    answer = batch(alice, home, body, 7, 100)
    assert answer.status == 200, answer
    assert answer.json["stored"] == 4
    assert [(row[0], row[1]["code"]) for row in answer.json["refused"]] == [
        (2, "invalid_input"),
        (3, "conflict"),
    ]
    rows = {row["name"]: row for row in ask(alice, "entries", home, recursive=1).json["entries"]}
    assert sorted(rows) == sorted(
        ["a", "a/one", "a/run.sh", "empty", "empty/folder", "empty file", "ünï", "ünï/ß"]
    )
    assert rows["a/run.sh"]["executable"] is True
    assert rows["a/one"]["mtime_ns"] == 1_700_000_000_000_000_000
    assert not (server.home() / "out").exists()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"PFSREC\0\2",
        records.MAGIC,
        stream({"f": b"content"})[:-1],
        stream({"f": b"content"})[:-20],
        stream({"f": b"content"}) + b"more",
        records.MAGIC + b"\x09" + b"\0" * 40,
        records.MAGIC + records.encode_head(records.Kind.FAILED, "f", 2) + b"{}" + records.END,
    ],
)
def test_stores_nothing_of_a_stream_that_is_not_whole(
    alice: Caller, home: str, body: bytes
) -> None:
    answer = batch(alice, home, body, 1, 100)
    assert (answer.status, answer.json["field"]) == (400, "body")
    assert ask(alice, "entries", home).json["entries"] == []


def test_refuses_a_batch_that_holds_more_than_announced(alice: Caller, home: str) -> None:
    body = stream({"a": b"12345", "b": b"12345"})
    assert batch(alice, home, body, 1, 100).status == 400
    assert batch(alice, home, body, 2, 9).status == 400
    assert ask(alice, "entries", home).json["entries"] == []
    assert batch(alice, home, body, 2, 10).status == 200


def test_fetches_many_files_and_names_those_it_cannot_read(alice: Caller, home: str) -> None:
    files = {f"d{i % 7}/f{i}": os.urandom(i * 37) for i in range(198)}
    files |= {"large": os.urandom(3_000_000), "whole": os.urandom(LEAF_BYTES)}
    sent = batch(alice, home, stream(files), 200, sum(map(len, files.values())))
    assert sent.json["stored"] == 200
    names = [*files, "none", "../x", "d1"]
    answer = alice.post(f"{PFS}/fetch", {"path": home, "files": names})
    assert answer.headers["content-type"] == records.CONTENT_TYPE
    assert read_stream(answer.body) == {**files, "none": None, "../x": None, "d1": None}


def test_lists_page_by_page(alice: Caller, home: str) -> None:
    files = {f"{letter}/{number}": b"x" for letter in "abc" for number in range(5)}
    batch(alice, home, stream(files), 15, 15)
    seen, after = [], ""
    while after is not None:
        page = ask(alice, "entries", home, recursive=1, limit=4, after=quote(after)).json
        assert len(page["entries"]) <= 4
        seen += [row["name"] for row in page["entries"]]
        after = page["next"]
    assert seen == sorted(seen)
    assert set(files) <= set(seen)
    assert len(seen) == 18


def test_compares_many_files_in_one_call(alice: Caller, home: str) -> None:
    batch(alice, home, stream({"same": b"1", "other": b"2", "dir/x": b"3"}), 3, 3)
    rows = [
        ["same", 1, digest_of(b"1")],
        ["other", 1, digest_of(b"x")],
        ["other", 2, digest_of(b"xx")],
        ["none", 1, digest_of(b"1")],
        ["dir", 1, digest_of(b"1")],
        ["same/below", 1, digest_of(b"1")],
        ["dir/x", 1, digest_of(b"3")],
    ]
    whole = folder_digest([("x", False, bytes.fromhex(digest_of(b"3")))]).hex()
    folders = [["dir", 1, whole], ["", 1, whole], ["none", 1, whole]]
    asked = {"path": home, "files": rows, "folders": folders}
    answer = alice.post(f"{PFS}/compare", asked)
    assert answer.json == {
        "missing": [3],
        "different": [1, 2],
        "blocked": [4, 5],
        "folders": [1, 2],
    }
    for wrong in (
        {"files": [["a", 1, "xyz"]]},
        {"files": [], "folders": [["a", 1, "xyz"]]},
        {"files": [], "folders": [["../bob", 1, whole]]},
        {"files": [], "folders": [["a", "1", whole]]},
        {"files": [], "folders": [["a", 1, whole], ["a", 2, whole]]},
    ):
        assert alice.post(f"{PFS}/compare", {"path": home, **wrong}).status == 400


def test_moves_copies_and_removes(alice: Caller, home: str) -> None:
    put(alice, f"{home}/a", b"one")
    put(alice, f"{home}/b", b"two")
    blocked = alice.post(f"{PFS}/move", {"from": f"{home}/a", "to": f"{home}/b"})
    assert (blocked.status, blocked.json["code"]) == (409, "conflict")
    moved = alice.post(f"{PFS}/move", {"from": f"{home}/a", "to": f"{home}/c"})
    assert (moved.status, moved.json["name"]) == (200, "c")
    forced = alice.post(f"{PFS}/move", {"from": f"{home}/c", "to": f"{home}/b", "replace": True})
    assert forced.status == 200
    assert content(alice, f"{home}/b").body == b"one"
    copied = alice.post(f"{PFS}/copy", {"from": f"{home}/b", "to": f"{home}/d"})
    assert copied.json == {"files": 1, "bytes": 3}
    kept = alice.post(f"{PFS}/remove", {"paths": [f"{home}/b", f"{home}/none"]})
    assert kept.status == 404
    assert content(alice, f"{home}/b").status == 200
    removed = alice.post(f"{PFS}/remove", {"paths": [f"{home}/b"]})
    assert removed.json == {"removed": [{"path": f"{home}/b", "files": 1, "bytes": 3}]}
    refused = alice.post(f"{PFS}/remove", {"paths": [home]})
    assert (refused.status, refused.json["message"]) == (409, f"can't del directory:{home}")
    whole = alice.post(f"{PFS}/remove", {"paths": [home], "recursive": True})
    assert whole.json["removed"][0]["files"] == 1
    assert ask(alice, "entry", home).status == 404


def test_says_what_a_path_and_the_account_take_up(alice: Caller, home: str) -> None:
    batch(alice, home, stream({"a": b"12345", "b/c": b"123"}), 2, 8)
    usage = ask(alice, "usage", home).json
    assert (usage["files"], usage["directories"], usage["bytes"]) == (2, 1, 8)
    assert usage["used_bytes"] >= 8
    assert usage["limit_bytes"] is None


def test_keeps_an_account_within_its_quota(server: Running) -> None:
    small, home = server.as_user("small"), "/pfs/local/home/small"
    assert put(small, f"{home}/half", b"x" * 60_000).status == 200
    over = small.post(f"{PFS}/uploads", {"path": f"{home}/more", "size": 60_000})
    assert (over.status, over.json["code"]) == (507, "quota_exceeded")
    over = batch(small, home, stream({"more": b"x" * 60_000}), 1, 60_000)
    assert (over.status, over.json["code"]) == (507, "quota_exceeded")
    fits = batch(small, home, stream({"fits": b"x" * 30_000}), 1, 30_000)
    assert fits.json["stored"] == 1
    many = {f"f{i}": b"" for i in range(9)}
    assert batch(small, home, stream(many), 9, 0).status == 507


def test_pins_a_snapshot_once_its_blobs_are_there(alice: Caller) -> None:
    files = {"train.py": b"print(1)\n", "lib/a.py": os.urandom(100)}
    wish = snapshots.whole(
        snapshots.make(
            snapshots.File(name, len(data), False, digest_of(data)) for name, data in files.items()
        )
    )
    first = alice.post(f"{PFS}/snapshots", wish.to_json())
    assert first.status == 200, first
    assert sorted(first.json["missing"]) == sorted(digest_of(data) for data in files.values())
    assert alice.get(f"{PFS}/snapshots/{wish.digest}").status == 404
    blobs = stream({digest_of(data): data for data in files.values()})
    sent = alice.call("POST", f"{PFS}/blobs?files=2&bytes=109", blobs)
    assert (sent.status, sent.json["stored"]) == (200, 2)
    second = alice.post(f"{PFS}/snapshots", wish.to_json())
    assert (second.json["missing"], second.json["files"]) == ([], 2)
    found = alice.get(f"{PFS}/snapshots/{wish.digest}")
    assert found.json == {"digest": wish.digest, "files": 2, "bytes": 109}


def test_reads_every_byte_again_when_asked_to_verify(
    server: Running, alice: Caller, home: str
) -> None:
    put(alice, f"{home}/f", b"0123456789", mtime_ns=5)
    assert ask(alice, "entry", f"{home}/f", verify=1).json["digest"] == digest_of(b"0123456789")
