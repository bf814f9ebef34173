"""What a storage promises is found by trying it, and a storage that cannot is refused."""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path

import pytest

from paddlecloud.core.errors import Unavailable
from paddlecloud.pfs import promises, syscalls
from paddlecloud.pfs.store import Store


def test_finds_what_this_disk_promises_and_leaves_nothing(tmp_path: Path):
    found = promises.check(tmp_path)
    assert found.tried
    assert found.rename_replaces
    assert found.case_sensitive == (not (tmp_path.parent / tmp_path.name.upper()).exists())
    assert os.listdir(tmp_path) == []
    assert found.to_json()["times"]["tick_ns"] == found.times.tick_ns


def test_refuses_a_storage_that_cannot_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "the disk is gone")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(Unavailable, match="cannot keep files safely"):
        Store(tmp_path / "pfs").open()


def test_refuses_a_storage_whose_rename_does_not_replace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(os, "rename", lambda *_, **__: None)
    with pytest.raises(Unavailable, match="cannot keep files safely"):
        promises.check(tmp_path)


def test_a_full_disk_refuses_nothing_and_promises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "mkdir", fail)
    found = promises.check(tmp_path)
    assert not found.tried
    assert not found.times.tell(0, 10**18)


def test_coarse_times_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tick_ns = 20_000_000
    real = os.fstat

    def coarse(fd: int) -> os.stat_result:
        facts = real(fd)
        kept = {"st_ctime_ns": facts.st_ctime_ns // tick_ns * tick_ns}
        return os.stat_result(list(facts), {**kept, "st_mtime_ns": kept["st_ctime_ns"]})

    monkeypatch.setattr(os, "fstat", coarse)
    fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    try:
        assert promises._tick_ns(fd) >= 2 * tick_ns
    finally:
        os.close(fd)


def test_a_mapped_write_shows_once_the_pages_were_written_out(tmp_path: Path):
    times = promises.check(tmp_path).times
    if not times.mapped_writes_show:
        return
    fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, mmap.PAGESIZE)
    try:
        with mmap.mmap(fd, mmap.PAGESIZE) as mapping:
            for number in range(5):
                mapping[0] = number
                syscalls.write_out(fd)
                before = os.fstat(fd)
                mapping[0] = number + 100
                assert os.fstat(fd).st_mtime_ns != before.st_mtime_ns or times.tick_ns
    finally:
        os.close(fd)


def test_a_rename_that_must_not_replace_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        for call in (syscalls._renameat2, None):
            monkeypatch.setattr(syscalls, "_renameat2", call)
            (tmp_path / "a").write_text("a")
            (tmp_path / "b").write_text("b")
            with pytest.raises(FileExistsError):
                syscalls.rename_new(fd, "a", fd, "b")
            syscalls.rename_new(fd, "a", fd, "c")
            assert sorted(os.listdir(tmp_path)) == ["b", "c"]
            (tmp_path / "c").unlink()
    finally:
        os.close(fd)


def test_syncs_everything_where_there_is_no_syncfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    synced = []
    monkeypatch.setattr(syscalls, "_syncfs", None)
    monkeypatch.setattr(os, "sync", lambda: synced.append("all"))
    syscalls.syncfs(0)
    assert synced == ["all"]


def test_a_sync_that_fails_is_an_error():
    with pytest.raises(OSError):
        syscalls.syncfs(-1)
