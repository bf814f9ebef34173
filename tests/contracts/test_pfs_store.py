"""What every file store promises: bytes, unfinished uploads, batches, two at once."""

from __future__ import annotations

import os
import stat
import threading
import unicodedata

import pytest

from paddlecloud.core.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    PaddleCloudError,
    QuotaExceeded,
)
from paddlecloud.pfs.faults import DifferentLeaves, MissingLeaves
from paddlecloud.pfs.receiving import Receiver
from paddlecloud.pfs.shapes import UploadWish
from paddlecloud.wire.digests import LEAF_BYTES, combine
from paddlecloud.wire.records import Kind
from tests.storing import (
    ANN,
    BOB,
    IS_ROOT,
    Bench,
    at,
    digest_of,
    leaves_of,
    owner,
    send,
)

# --- bytes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "size_bytes", [0, 1, 4096, LEAF_BYTES - 1, LEAF_BYTES, LEAF_BYTES + 1, 2 * LEAF_BYTES + 7]
)
def test_gives_back_what_was_put(bench: Bench, size_bytes: int):
    data = os.urandom(size_bytes)
    entry = bench.put("a/b/file", data)
    assert bench.get("a/b/file") == data
    assert (entry.name, entry.size_bytes, entry.digest) == ("file", size_bytes, digest_of(data))
    assert bench.leftovers() == []
    seen = bench.store.entry(ANN, at("a/b/file"), leaves=True)
    assert seen.leaves == tuple(leaves_of(data))
    assert seen.digest == digest_of(data)


def test_makes_files_the_accounts_own_and_never_more_than_executable(bench: Bench):
    bench.put("plain", b"1")
    bench.put("program", b"2", executable=True)
    batch = bench.store.begin_batch(ANN, at("sub"), 1, 1)
    send(batch, "program", b"3", kind=Kind.EXECUTABLE, mtime_ns=1_000_000_007_000_000_000)
    batch.commit()
    modes = {
        name: stat.S_IMODE((bench.home / name).stat().st_mode)
        for name in ("plain", "program", "sub", "sub/program")
    }
    assert modes == {"plain": 0o600, "program": 0o700, "sub": 0o700, "sub/program": 0o700}
    assert (bench.home / "sub/program").stat().st_mtime_ns == 1_000_000_007_000_000_000
    if IS_ROOT:
        owners = {(bench.home / name).stat().st_uid for name in modes}
        assert owners == {ANN.uid}
        assert bench.home.stat().st_uid == ANN.uid


def test_keeps_times_that_are_given(bench: Bench):
    entry = bench.put("old", b"x", mtime_ns=1_234_567_891_000_000_000)
    assert entry.mtime_ns == 1_234_567_891_000_000_000


def test_keeps_a_file_of_more_than_four_gibibytes(bench: Bench):
    size_bytes = (4 << 30) + 5
    (bench.home).mkdir(exist_ok=True)
    bench.put("other", b"makes the home")
    with (bench.home / "huge").open("wb") as file:
        file.truncate(size_bytes)
    if IS_ROOT:
        os.chown(bench.home / "huge", ANN.uid or 0, ANN.uid or 0)
    assert bench.store.entry(ANN, at("huge")).size_bytes == size_bytes
    bench.store.copy(ANN, at("huge"), at("copy"))
    assert (bench.home / "copy").stat().st_size == size_bytes
    assert (bench.home / "copy").stat().st_blocks * 512 < 1 << 20
    with bench.store.open_content(ANN, at("huge")) as content:
        assert content.size_bytes == size_bytes
        assert os.pread(content.fd, 10, size_bytes - 3) == b"\0\0\0"


# --- uploads ---------------------------------------------------------------------------------


def _wish(data: bytes, relative: str = "f", source: str = "laptop") -> UploadWish:
    return UploadWish(at(relative), len(data), source=source)


def test_a_cut_upload_is_found_again_and_goes_on_in_the_middle_of_a_leaf(bench: Bench):
    data = os.urandom(3 * LEAF_BYTES + 100)
    upload = bench.store.begin_upload(ANN, _wish(data))
    receiver = upload.receive(0, len(data))
    receiver.write(data[: 2 * LEAF_BYTES + 5])
    receiver.cut()
    bench.reopen()
    again = bench.store.begin_upload(ANN, _wish(data))
    assert again.id == upload.id
    assert again.received() == list(enumerate(leaves_of(data)[:2]))
    with pytest.raises(MissingLeaves) as error:
        again.commit(digest_of(data))
    assert error.value.to_json()["missing"] == [2, 3]
    assert again.to_json()["begun"] == [[2, 5]]
    assert bench.store.uploads(ANN)[0].received_bytes == 2 * LEAF_BYTES + 5
    receiver = again.receive(2 * LEAF_BYTES + 5, LEAF_BYTES + 95)
    receiver.write(data[2 * LEAF_BYTES + 5 :])
    assert receiver.finish() == leaves_of(data)[2:]
    assert again.to_json()["begun"] == []
    again.commit(digest_of(data))
    assert bench.get("f") == data
    assert bench.leftovers() == []


def test_a_leaf_that_was_cut_may_be_sent_from_anywhere_before_the_cut(bench: Bench):
    data = os.urandom(LEAF_BYTES)
    upload = bench.store.begin_upload(ANN, _wish(data))
    for first, end in ((0, 1000), (1000, 3000), (2000, 2500), (0, 10), (10, 4000)):
        receiver = upload.receive(first, len(data) - first)
        receiver.write(data[first:end])
        receiver.cut()
        assert upload.to_json()["begun"] == [[0, end]]
    with pytest.raises(InvalidInput, match="where a leaf that is begun goes on"):
        upload.receive(4001, len(data) - 4001)
    receiver = upload.receive(4000, len(data) - 4000)
    receiver.write(data[4000:])
    assert receiver.finish() == leaves_of(data)
    # Whole by now: who heard before that it was cut may still go on.
    late = upload.receive(4000, len(data) - 4000)
    late.write(b"!")
    late.cut()
    assert (upload.received(), upload.to_json()["begun"]) == ([], [[0, 4001]])
    late = upload.receive(4000, len(data) - 4000)
    late.write(data[4000:])
    late.finish()
    upload.commit(digest_of(data))
    assert bench.get("f") == data


def test_wrong_bytes_before_a_cut_are_found_when_the_leaf_is_whole(bench: Bench):
    data = os.urandom(LEAF_BYTES)
    upload = bench.store.begin_upload(ANN, _wish(data))
    receiver = upload.receive(0, len(data))
    receiver.write(b"wrong" + data[5:100])
    receiver.cut()
    receiver = upload.receive(100, len(data) - 100)
    receiver.write(data[100:])
    assert receiver.finish() != leaves_of(data)
    with pytest.raises(DifferentLeaves):
        upload.commit(digest_of(data))


def test_nothing_is_seen_before_the_commit(bench: Bench):
    bench.put("f", b"old")
    data = b"new and longer"
    upload = bench.store.begin_upload(ANN, _wish(data))
    receiver = upload.receive(0, len(data))
    receiver.write(data)
    receiver.finish()
    assert bench.get("f") == b"old"
    assert bench.names() == ["f"]
    upload.commit(digest_of(data))
    assert bench.get("f") == data


def test_refuses_bytes_that_differ_and_says_where(bench: Bench):
    data = os.urandom(LEAF_BYTES + 10)
    flipped = bytes([data[0] ^ 1]) + data[1:]
    upload = bench.store.begin_upload(ANN, _wish(data))
    receiver = upload.receive(0, len(data))
    receiver.write(flipped)
    receiver.finish()
    with pytest.raises(DifferentLeaves) as error:
        upload.commit(digest_of(data))
    assert error.value.leaves == [leaf.hex() for leaf in leaves_of(flipped)]
    receiver = upload.receive(0, LEAF_BYTES)
    receiver.write(data[:LEAF_BYTES])
    receiver.finish()
    upload.commit(digest_of(data))
    assert bench.get("f") == data


def test_a_commit_can_be_repeated(bench: Bench):
    data = b"once"
    upload = bench.store.begin_upload(ANN, _wish(data))
    upload.receive(0, 4).write(data)
    first = upload.commit(digest_of(data))
    assert bench.store.upload(ANN, upload.id).commit(digest_of(data)) == first


def test_takes_leaves_from_the_file_it_replaces(bench: Bench):
    data = os.urandom(3 * LEAF_BYTES)
    bench.put("f", data)
    changed = data[:LEAF_BYTES] + os.urandom(LEAF_BYTES) + data[2 * LEAF_BYTES :]
    upload = bench.store.begin_upload(ANN, _wish(changed))
    leaves = leaves_of(changed)
    assert upload.reuse([0, 2]) == [(0, leaves[0]), (2, leaves[2])]
    receiver = upload.receive(LEAF_BYTES, LEAF_BYTES)
    receiver.write(changed[LEAF_BYTES : 2 * LEAF_BYTES])
    receiver.finish()
    upload.commit(digest_of(changed))
    assert bench.get("f") == changed


def test_a_newer_connection_takes_over_the_leaves_of_an_older(bench: Bench):
    data = os.urandom(2 * LEAF_BYTES)
    upload = bench.store.begin_upload(ANN, _wish(data))
    dead = upload.receive(0, len(data))
    dead.write(b"\0" * 1000)
    alive = upload.receive(0, len(data))
    alive.write(data)
    with pytest.raises(Conflict):
        dead.write(b"\0" * 1000)
    assert alive.finish() == leaves_of(data)
    upload.commit(digest_of(data))
    assert bench.get("f") == data


def test_two_connections_send_one_file_and_a_third_replaces_the_oldest(bench: Bench):
    data = os.urandom(4 * LEAF_BYTES)
    upload = bench.store.begin_upload(ANN, _wish(data))
    ranges = [(0, 2 * LEAF_BYTES), (2 * LEAF_BYTES, 3 * LEAF_BYTES), (3 * LEAF_BYTES, len(data))]
    first, second, third = (upload.receive(start, end - start) for start, end in ranges)
    with pytest.raises(Conflict):
        first.write(data[:10])

    def send_range(receiver: Receiver, start: int, end: int) -> None:
        for n in range(start, end, 100_000):
            receiver.write(data[n : min(n + 100_000, end)])
        receiver.finish()

    threads = [
        threading.Thread(target=send_range, args=(receiver, *span))
        for receiver, span in zip((second, third), ranges[1:], strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    send_range(upload.receive(0, 2 * LEAF_BYTES), *ranges[0])
    upload.commit(digest_of(data))
    assert bench.get("f") == data


@pytest.mark.parametrize(
    ("offset", "length"),
    [(1, 5), (-1, 5), (0, 5), (0, LEAF_BYTES + 1), (LEAF_BYTES * 9, 1), (0, 0)],
)
def test_refuses_a_body_that_is_not_whole_leaves(bench: Bench, offset: int, length: int):
    upload = bench.store.begin_upload(ANN, UploadWish(at("f"), 2 * LEAF_BYTES, source="x"))
    with pytest.raises(InvalidInput):
        upload.receive(offset, length)


def test_lists_and_abandons_unfinished_uploads(bench: Bench):
    upload = bench.store.begin_upload(ANN, _wish(b"12345"))
    (row,) = bench.store.uploads(ANN)
    assert (row.id, row.path, row.size_bytes, row.received_bytes) == (upload.id, str(at("f")), 5, 0)
    assert bench.store.uploads(BOB) == []
    with pytest.raises(NotFound):
        bench.store.upload(BOB, upload.id)
    upload.abandon()
    assert bench.store.uploads(ANN) == []
    assert bench.leftovers() == []


def test_sweeps_uploads_nobody_came_back_for(bench: Bench):
    bench.store.begin_upload(ANN, _wish(b"12345"))
    assert bench.store.sweep() == 0
    assert bench.store.sweep(forgotten_s=-1) == 1
    assert bench.leftovers() == []
    assert bench.used() == (0, 0)


def test_after_a_reboot_believes_only_bytes_it_has_read_again(bench: Bench):
    data = os.urandom(2 * LEAF_BYTES)
    upload = bench.store.begin_upload(ANN, _wish(data))
    receiver = upload.receive(0, len(data))
    receiver.write(data)
    receiver.finish()
    note = next(bench.parts.glob("up-*.json"))
    note.write_text(note.read_text().replace('"boot": "', '"boot": "another-'))
    with next(bench.parts.glob(f"up-{upload.id}")).open("r+b") as file:
        file.write(b"lost by the power cut")
    bench.reopen()
    again = bench.store.begin_upload(ANN, _wish(data))
    assert [index for index, _ in again.received()] == [1]


# --- batches ---------------------------------------------------------------------------------


def test_a_batch_stores_all_with_their_directories(bench: Bench):
    files = {"a": b"1", "sub/b": b"", "sub/deep/c": b"333", "sub/d": b"4" * 5000}
    batch = bench.begin_batch(files, "data", directories=1)
    batch.directory("empty/one")
    result = batch.commit()
    assert (result.stored, result.size_bytes, result.refused) == (4, 5004, [])
    assert {name: bench.get(f"data/{name}") for name in files} == files
    assert "empty/one" in bench.names("data")
    assert bench.leftovers() == []


def test_a_batch_refuses_what_is_wrong_by_position_and_the_others_stand(bench: Bench):
    bench.store.make_directories(ANN, [at("taken")])
    bench.put("file", b"a file")
    names = ["good", "bad", "../up", "taken", "file/below", "e\u0301", "also good"]
    batch = bench.store.begin_batch(ANN, at(), len(names) + 2, 100)
    for name in names:
        send(batch, name, b"x", digest=digest_of(b"y") if name == "bad" else None)
    batch.directory("file")
    batch.directory("taken")
    result = batch.commit()
    assert [index for index, _ in result.refused] == [1, 2, 3, 4, 5, 7]
    assert result.stored == 2
    assert bench.get("good") == bench.get("also good") == b"x"
    assert bench.get("file") == b"a file"
    assert bench.leftovers() == []


def test_a_cut_batch_stores_nothing(bench: Bench):
    batch = bench.begin_batch({"a": b"1", "sub/b": b"2"})
    batch.abandon()
    assert bench.names() == []
    assert bench.leftovers() == []
    assert bench.used() == (0, 0)


def test_a_batch_holds_no_more_than_it_announced(bench: Bench):
    batch = bench.store.begin_batch(ANN, at(), 1, 3)
    send(batch, "a", b"123")
    with pytest.raises(InvalidInput):
        send(batch, "b", b"")
    with pytest.raises(InvalidInput):
        batch.directory("d")
    batch.abandon()
    with pytest.raises(InvalidInput):
        send(bench.store.begin_batch(ANN, at(), 1, 3), "a", b"1234")


def test_blobs_are_called_by_their_digest(bench: Bench):
    batch = bench.store.begin_blobs(ANN, 2, 10)
    send(batch, digest_of(b"right").hex(), b"right")
    send(batch, digest_of(b"other").hex(), b"wrong")
    result = batch.commit()
    assert result.stored == 1
    assert [index for index, _ in result.refused] == [1]


# --- two at once -----------------------------------------------------------------------------


def test_of_two_writers_one_wins_whole_and_readers_never_see_a_mix(bench: Bench):
    size_bytes = LEAF_BYTES + 1000
    contents = [bytes([letter]) * size_bytes for letter in b"ab"]
    bench.put("f", contents[0])
    stop = threading.Event()
    mixes: list[bytes] = []

    def read() -> None:
        while not stop.is_set():
            data = bench.get("f")
            if data not in contents:
                mixes.append(data[:10])

    def write(data: bytes) -> None:
        for _ in range(5):
            bench.put("f", data)

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(data,)) for data in contents]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    reader.join()
    assert mixes == []
    assert bench.get("f") in contents


def test_a_second_server_of_one_root_is_refused(bench: Bench):
    with pytest.raises(PaddleCloudError, match="already serves"):
        Bench(bench.root)


def test_a_stream_takes_its_name_when_it_is_whole(bench: Bench):
    bench.who = who = owner(limit_bytes=LEAF_BYTES + 100)
    data = os.urandom(LEAF_BYTES + 50)
    stream = bench.store.begin_stream(who, at("sub/f"))
    for n in range(0, len(data), 70_000):
        stream.write(data[n : n + 70_000])
    assert bench.names() == []
    assert stream.commit().digest == combine(leaves_of(data))
    assert bench.get("sub/f") == data
    assert bench.used() == (len(data), 1)
    stream = bench.store.begin_stream(who, at("g"))
    stream.write(b"x" * 50)
    with pytest.raises(QuotaExceeded):
        stream.write(b"x")
    stream.abandon()
    assert bench.used() == (len(data), 1)
    assert bench.leftovers() == []


def test_a_decomposed_name_is_the_composed_one_in_a_path(bench: Bench):
    bench.put("é", b"1")
    assert bench.get(unicodedata.normalize("NFD", "é")) == b"1"
