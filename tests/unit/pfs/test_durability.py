"""What is acknowledged is on the disk: the order in which files are synced and get their names."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.core.errors import Unavailable
from paddlecloud.pfs import syscalls
from paddlecloud.pfs.faults import MissingLeaves
from paddlecloud.pfs.shapes import UploadWish
from paddlecloud.pfs.store import Store
from tests.storing import ANN, Bench, at, digest_of


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path / "pfs")
    bench.put("before", b"makes the home and the folders")
    yield bench
    bench.store.close()


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What was synced and named, in order: ("file", inode), ("folder", inode), ("name", it), …"""
    seen: list[tuple[str, Any]] = []
    fsync, rename, syncfs = os.fsync, os.rename, syscalls.syncfs

    def note_fsync(fd: int) -> None:
        fsync(fd)
        facts = os.fstat(fd)
        seen.append(("folder" if stat.S_ISDIR(facts.st_mode) else "file", facts.st_ino))

    def note_rename(source: Any, target: Any, **keywords: Any) -> None:
        rename(source, target, **keywords)
        if not str(target).endswith(".json"):  # an upload's own note
            seen.append(("name", str(target)))

    def note_syncfs(fd: int) -> None:
        syncfs(fd)
        seen.append(("everything", None))

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "rename", note_rename)
    monkeypatch.setattr(syscalls, "syncfs", note_syncfs)
    return seen


def _inode(bench: Bench, name: str) -> int:
    return (bench.home / name).stat().st_ino


def test_an_upload_is_synced_named_and_its_folder_synced(bench: Bench, events: list):
    bench.put("f", b"data")
    assert events == [("file", _inode(bench, "f")), ("name", "f"), ("folder", _inode(bench, ""))]


def test_the_folders_an_upload_needs_are_synced_before_it_is_named(bench: Bench, events: list):
    bench.put("a/b/f", b"data")
    assert events[0] == ("file", _inode(bench, "a/b/f"))
    assert set(events[1:3]) == {("folder", _inode(bench, "")), ("folder", _inode(bench, "a"))}
    assert events[3:] == [("name", "f"), ("folder", _inode(bench, "a/b"))]


def test_a_batch_is_synced_once_then_named_then_its_folders_synced(bench: Bench, events: list):
    bench.batch({name: b"x" for name in ("a", "b", "c", "sub/d")})
    assert events[0] == ("everything", None)
    assert {name for kind, name in events[1:5] if kind == "name"} == {"a", "b", "c", "d"}
    assert set(events[5:]) == {("folder", _inode(bench, "")), ("folder", _inode(bench, "sub"))}


def test_a_batch_over_many_folders_syncs_them_together(bench: Bench, events: list):
    bench.batch({f"{name}/f": b"x" for name in "abcde"})
    assert [kind for kind, _ in events] == ["everything", *["name"] * 5, "everything"]


def test_a_batch_of_one_syncs_that_one(bench: Bench, events: list):
    bench.batch({"f": b"x"})
    assert events == [("file", _inode(bench, "f")), ("name", "f"), ("folder", _inode(bench, ""))]


def test_a_copied_tree_is_synced_before_it_is_named(bench: Bench, events: list):
    bench.batch({"d/a": b"1", "d/b": b"2"})
    events.clear()
    bench.store.copy(ANN, at("d"), at("e"), recursive=True, replace=True)
    kinds = [kind for kind, _ in events]
    assert kinds.index("everything") < kinds.index("name")
    assert events[-1] == ("folder", _inode(bench, "e"))


def test_moves_and_removals_sync_the_folders_they_touched(bench: Bench, events: list):
    bench.batch({"d/a": b"1", "e/b": b"2"})
    events.clear()
    bench.store.move(ANN, at("d/a"), at("e/a"))
    synced = {inode for kind, inode in events if kind == "folder"}
    assert synced == {_inode(bench, "d"), _inode(bench, "e")}
    events.clear()
    bench.store.remove(ANN, [at("e")], recursive=True)
    assert events[-1] == ("folder", _inode(bench, ""))


def test_after_a_failed_sync_nothing_of_the_upload_is_believed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    data = b"data"
    upload = bench.store.begin_upload(ANN, UploadWish(at("f"), len(data), source="x"))
    upload.receive(0, len(data)).write(data)

    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(Unavailable):
            upload.commit(digest_of(data))
    assert "f" not in bench.names()
    with pytest.raises(MissingLeaves):
        upload.commit(digest_of(data))
    upload.receive(0, len(data)).write(data)
    upload.commit(digest_of(data))
    assert bench.get("f") == data


def test_a_store_that_was_killed_is_synced_before_the_next_one_answers(bench: Bench, events: list):
    everything = ("everything", None)
    bench.reopen()
    assert everything not in events  # it was closed
    bench.store.close()
    child = os.fork()
    if not child:
        try:
            Store(bench.root, ["local"]).open()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    bench.store = Store(bench.root, ["local"]).open()
    assert events.count(everything) == 1
    bench.reopen()
    assert events.count(everything) == 1


def test_scratch_storage_syncs_nothing(tmp_path: Path, events: list):
    bench = Bench(tmp_path / "scratch", sync=False)
    events.clear()
    bench.put("a/f", b"data")
    bench.batch({f"{name}/f": b"x" for name in "abcde"})
    bench.store.copy(ANN, at("a"), at("z"), recursive=True)
    bench.store.remove(ANN, [at("a")], recursive=True)
    assert {kind for kind, _ in events} == {"name"}
    bench.store.close()
