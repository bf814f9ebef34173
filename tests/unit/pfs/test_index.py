"""The cache of digests: it may forget anything, and is never wrong."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.pfs.digesting import Digests
from paddlecloud.pfs.index import Index
from paddlecloud.pfs.promises import WORST, Times
from tests.storing import leaves_of

FINE = Times(tick_ns=0)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    index = Index(tmp_path / "index.db")
    yield index
    index.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    return path


def _again(index: Index, tmp_path: Path) -> Index:
    index.close()
    return Index(tmp_path / "index.db")


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("is_written", [False, True])
def test_knows_what_it_learned(index: Index, file: Path, count: int, is_written: bool):
    leaves = [bytes([n]) * 32 for n in range(count)]
    index.learn(file.stat(), leaves)
    if is_written:
        index.flush()
    known = index.get(file.stat())
    assert known is not None
    assert known.leaves == tuple(leaves)
    assert index.digests([file.stat()]) == [known.digest]


def test_survives_a_restart(index: Index, file: Path, tmp_path: Path):
    index.learn(file.stat(), leaves_of(b"content"))
    assert _again(index, tmp_path).get(file.stat()) is not None


@pytest.mark.parametrize("change", ["bytes", "size", "mtime", "ctime", "inode"])
def test_any_change_of_the_facts_makes_it_unknown(index: Index, file: Path, change: str):
    facts = file.stat()
    index.learn(facts, leaves_of(b"content"))
    if change == "bytes":
        file.write_bytes(b"CONTENT")
    elif change == "size":
        file.write_bytes(b"content!")
        os.utime(file, ns=(facts.st_mtime_ns, facts.st_mtime_ns))
    elif change == "mtime":
        os.utime(file, ns=(1, 1))
    elif change == "ctime":
        file.chmod(0o640)
        os.utime(file, ns=(facts.st_mtime_ns, facts.st_mtime_ns))
    else:
        other = file.with_name("other")
        other.write_bytes(b"CONTENT")
        os.utime(other, ns=(facts.st_mtime_ns, facts.st_mtime_ns))
        os.rename(other, file)
    assert index.get(file.stat()) is None
    assert index.digests([file.stat()]) == [None]


def test_knows_a_folder_only_in_the_state_it_was_learnt_in(index: Index, tmp_path: Path):
    inode, state, digest = (1 << 64) - 5, b"s" * 32, b"d" * 32
    assert index.folder(inode, state) is None
    index.learn_folders([(inode, state, digest)])
    assert index.folder(inode, state) == digest
    assert index.folder(inode, b"t" * 32) is None
    assert index.folder(5, state) is None
    again = _again(index, tmp_path)
    assert again.folder(inode, state) == digest
    again._db.execute("UPDATE folders SET known = known || 'x'")
    assert again.folder(inode, state) is None
    again._db.execute("UPDATE folders SET known = ?", (state + b"e" * 32,))
    assert again.folder(inode, state) is None  # its checksum tells


def test_forgets(index: Index, file: Path):
    index.learn(file.stat(), leaves_of(b"content"))
    index.flush()
    index.learn_folders([(7, b"s" * 32, b"d" * 32)])
    index.forget(file.stat())
    assert index.get(file.stat()) is None
    assert index.folder(7, b"s" * 32) is None  # it may have stood on that file


@pytest.mark.parametrize("damage", [b"", b"not a database at all" * 100, None])
def test_begins_again_when_the_database_is_broken_or_gone(
    index: Index, file: Path, tmp_path: Path, damage: bytes | None
):
    index.learn(file.stat(), leaves_of(b"content"))
    index.close()
    for path in tmp_path.glob("index.db*"):
        path.unlink()
    if damage is not None:
        (tmp_path / "index.db").write_bytes(damage)
    again = Index(tmp_path / "index.db")
    assert again.get(file.stat()) is None
    again.learn(file.stat(), leaves_of(b"content"))
    assert _again(again, tmp_path).get(file.stat()) is not None


def test_a_database_deleted_while_open_is_found_again_after_a_restart(
    index: Index, file: Path, tmp_path: Path
):
    for path in tmp_path.glob("index.db*"):
        path.unlink()
    index.learn(file.stat(), leaves_of(b"content"))
    assert index.get(file.stat()) is not None
    assert _again(index, tmp_path).get(file.stat()) is not None


@pytest.mark.parametrize("column", ["digest", "leaves", "facts", "checksum"])
def test_a_damaged_row_answers_nothing(index: Index, file: Path, tmp_path: Path, column: str):
    index.learn(file.stat(), [b"1" * 32, b"2" * 32])
    index.flush()
    with sqlite3.connect(tmp_path / "index.db") as db:
        wrong = "checksum + 1" if column == "checksum" else "zeroblob(32)"
        db.execute(f"UPDATE digests SET {column} = {wrong}")
    assert index.get(file.stat()) is None


def test_a_full_disk_forgets_what_is_new_and_keeps_what_is_known(index: Index, file: Path):
    index.learn(file.stat(), leaves_of(b"content"))
    index.flush()
    index._db.execute("PRAGMA max_page_count=2")
    other = file.with_name("other")
    other.write_bytes(b"x")
    index.learn(other.stat(), [bytes(32)] * 10_000)
    index.flush()
    assert index.get(other.stat()) is None
    assert index.get(file.stat()) is not None
    index._db.execute("PRAGMA max_page_count=100000")
    index.learn(other.stat(), [bytes(32)] * 10_000)
    index.flush()
    assert index.get(other.stat()) is not None


def test_inodes_of_64_bits_fit(index: Index, file: Path):
    facts = list(file.stat())
    facts[1] = 2**64 - 5
    huge = os.stat_result(facts, {"st_mtime_ns": 5, "st_ctime_ns": 6})
    index.learn(huge, leaves_of(b"content"))
    index.flush()
    assert index.get(huge) is not None


# --- when a digest may be kept ---------------------------------------------------------------

TICK = Times(tick_ns=10)


@pytest.mark.parametrize(
    ("times", "ctime_ns", "looked_at_ns", "may"),
    [
        (FINE, 100, 100, True),
        (TICK, 100, 111, True),
        (TICK, 100, 110, False),  # a write in the same tick would look the same
        (TICK, 100, 90, False),  # the clock went back
        (Times(0, mapped_writes_show=False), 100, 10**9, False),
        (WORST, 100, 10**18, False),
    ],
)
def test_believes_times_only_where_a_change_must_show(
    times: Times, ctime_ns: int, looked_at_ns: int, may: bool
):
    assert times.tell(ctime_ns, looked_at_ns) is may


@pytest.mark.parametrize(
    ("times", "mtime_ns", "ctime_ns", "may"),
    [
        (FINE, 100, 100, True),
        (TICK, 100, 111, True),
        (TICK, 100, 105, False),
        (TICK, 200, 100, False),  # a time in the future
        (WORST, 0, 10**18, False),
    ],
)
def test_believes_a_new_file_only_where_a_later_write_must_show(
    times: Times, mtime_ns: int, ctime_ns: int, may: bool
):
    assert times.tell_published(mtime_ns, ctime_ns) is may


def test_a_file_just_written_is_read_each_time_where_times_are_coarse(index: Index, file: Path):
    digests = Digests(index, Times(tick_ns=10**12))
    fd = os.open(file, os.O_RDWR)
    try:
        first = digests.of(fd, "file")[1].digest
        # The same size, and on such a storage the same times.
        facts = os.fstat(fd)
        os.pwrite(fd, b"CONTENT", 0)
        os.utime(fd, ns=(facts.st_mtime_ns, facts.st_mtime_ns))
        assert index.get(facts) is None
        assert digests.of(fd, "file")[1].digest != first
    finally:
        os.close(fd)


def test_a_file_that_changes_while_it_is_read_is_read_again(
    index: Index, file: Path, monkeypatch: pytest.MonkeyPatch
):
    from paddlecloud.pfs import digesting

    whole = digesting.read_leaves
    times_read = 0

    def read_and_change(fd: int, size_bytes: int) -> list[bytes] | None:
        nonlocal times_read
        times_read += 1
        leaves = whole(fd, size_bytes)
        if times_read == 1:
            file.write_bytes(b"CONTENT")
        return leaves

    monkeypatch.setattr(digesting, "read_leaves", read_and_change)
    fd = os.open(file, os.O_RDONLY)
    try:
        known = Digests(index, FINE).of(fd, "file")[1]
    finally:
        os.close(fd)
    assert known.leaves == tuple(leaves_of(b"CONTENT"))
    assert times_read == 2
