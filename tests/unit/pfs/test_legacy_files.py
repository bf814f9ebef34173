"""The first protocol's touch and chunks: what is seen changes at once, when all of it is there."""

from __future__ import annotations

import hashlib
import os

import pytest

from paddlecloud.core.errors import (
    InvalidInput,
    NotAllowed,
    NotFound,
    QuotaExceeded,
)
from paddlecloud.pfs.legacy_files import LegacyFiles
from paddlecloud.wire.pfspath import PfsPath
from tests.old_chunks import (
    CHUNK,
    Clock,
    F,
    bench,
    clock,
    files,
    give_up,
    post,
    quiet,
    upload,
)
from tests.storing import ANN, Bench, at, owner

__all__ = ["bench", "clock", "files"]  # fixtures


def test_a_new_file_appears_with_its_last_chunk(bench: Bench, files: LegacyFiles):
    data = os.urandom(3 * CHUNK + 10)
    assert upload(files, data, until=3) == [0, CHUNK, 2 * CHUNK]
    with pytest.raises(NotFound):
        bench.get("f")
    files.chunk_meta(ANN, F, 3 * CHUNK, CHUNK)
    post(files, ANN, F, 3 * CHUNK, data[3 * CHUNK :])
    assert bench.get("f") == data
    assert bench.leftovers() == []


def test_only_chunks_that_differ_are_posted_and_the_file_changes_at_once(
    bench: Bench, files: LegacyFiles
):
    old = os.urandom(4 * CHUNK)
    bench.put("f", old)
    new = old[:CHUNK] + os.urandom(CHUNK) + old[2 * CHUNK : 3 * CHUNK] + os.urandom(CHUNK)
    assert upload(files, new, until=3) == [CHUNK]
    assert bench.get("f") == old
    files.chunk_meta(ANN, F, 3 * CHUNK, CHUNK)
    post(files, ANN, F, 3 * CHUNK, new[3 * CHUNK :])
    assert bench.get("f") == new


def test_a_last_chunk_that_was_only_asked_for_counts_after_a_silence(
    bench: Bench, files: LegacyFiles, clock: Clock
):
    old = os.urandom(2 * CHUNK)
    bench.put("f", old)
    new = os.urandom(CHUNK) + old[CHUNK:]
    assert upload(files, new) == [0]
    files.tick()
    assert bench.get("f") == old
    quiet(files, clock)
    assert bench.get("f") == new


def test_a_client_that_stops_half_way_changes_nothing_and_can_go_on(
    bench: Bench, files: LegacyFiles, clock: Clock
):
    old = os.urandom(3 * CHUNK)
    bench.put("f", old)
    new = os.urandom(3 * CHUNK)
    upload(files, new, until=2)
    for _ in range(5):
        quiet(files, clock)
    assert bench.get("f") == old
    assert upload(files, new) == [2 * CHUNK]
    assert bench.get("f") == new


def test_a_cut_chunk_is_not_counted(bench: Bench, files: LegacyFiles, clock: Clock):
    data = os.urandom(CHUNK)
    files.touch(ANN, F, CHUNK)
    receiver = files.receive_chunk(ANN, F, 0)
    receiver.write(data[:100])
    receiver.cut()
    quiet(files, clock)
    with pytest.raises(NotFound):
        bench.get("f")
    post(files, ANN, F, 0, data)
    assert bench.get("f") == data


@pytest.mark.parametrize("size_bytes", [0, 100])
def test_another_size_keeps_the_bytes_that_fit(bench: Bench, files: LegacyFiles, size_bytes: int):
    old = os.urandom(CHUNK)
    bench.put("f", old)
    upload(files, old[:size_bytes])
    files.flush()
    assert bench.get("f") == old[:size_bytes]


def test_a_chunk_for_a_file_nobody_touched_changes_it_after_a_silence(
    bench: Bench, files: LegacyFiles, clock: Clock
):
    bench.put("f", b"a" * 2 * CHUNK, executable=True)
    post(files, ANN, F, CHUNK, b"b" * CHUNK)
    assert bench.get("f") == b"a" * 2 * CHUNK
    quiet(files, clock)
    assert bench.get("f") == b"a" * CHUNK + b"b" * CHUNK
    assert bench.store.entry(ANN, F).executable
    with pytest.raises(NotFound):
        post(files, ANN, at("nothing"), 0, b"x")


def test_answers_the_end_of_a_file_with_an_empty_chunk(bench: Bench, files: LegacyFiles):
    bench.put("f", b"x" * 10)
    meta = files.chunk_meta(ANN, F, 10, CHUNK)
    assert (meta.checksum, meta.size_bytes) == (hashlib.md5(b"").hexdigest(), 0)
    assert files.chunk_meta(ANN, F, 0, CHUNK).size_bytes == 10
    with files.open_chunk(ANN, F) as content:
        assert os.pread(content.fd, CHUNK, 5) == b"x" * 5


def test_reserves_the_whole_size(bench: Bench, files: LegacyFiles, clock: Clock):
    bench.who = who = owner(limit_bytes=1000)
    files.touch(who, F, 800)
    assert bench.used() == (800, 1)
    with pytest.raises(QuotaExceeded):
        files.touch(who, at("g"), 300)
    give_up(files, clock)
    assert bench.used() == (0, 0)
    assert bench.leftovers() == []


@pytest.mark.parametrize("size_bytes", [-1, (1 << 40) + 1])
def test_refuses_a_bad_size(files: LegacyFiles, size_bytes: int):
    with pytest.raises(InvalidInput, match="bad file size"):
        files.touch(ANN, F, size_bytes)


def test_writes_only_within_the_size(files: LegacyFiles):
    files.touch(ANN, F, 10)
    with pytest.raises(InvalidInput):
        post(files, ANN, F, 5, b"x" * 6)
    with pytest.raises(InvalidInput):
        post(files, ANN, F, 11, b"")


def test_gives_the_checksums_of_public_data_and_writes_none(bench: Bench, files: LegacyFiles):
    (bench.root / "public" / "f").write_bytes(b"data")
    path = PfsPath.parse("/pfs/local/public/f")
    assert files.chunk_meta(ANN, path, 0, CHUNK).checksum == hashlib.md5(b"data").hexdigest()
    with pytest.raises(NotAllowed):
        files.touch(ANN, path, 4)
    with pytest.raises(NotAllowed):
        post(files, ANN, path, 0, b"evil")
    with pytest.raises(NotAllowed):
        files.chunk_meta(ANN, at("f", "bob"), 0, CHUNK)
