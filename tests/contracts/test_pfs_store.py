"""What every file store promises: bytes, batches, two at once."""

from __future__ import annotations

import os
import stat
import threading
import unicodedata

import pytest

from paddlecloud.core.errors import (
    InvalidInput,
    PaddleCloudError,
    QuotaExceeded,
)
from paddlecloud.wire.digests import LEAF_BYTES, combine
from paddlecloud.wire.records import Kind
from tests.storing import (
    ANN,
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
