"""A digest is remembered only of a file whose times will tell of every later write."""

from __future__ import annotations

import mmap
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.sdk.transfers import settling
from paddlecloud.sdk.transfers.digest_cache import DigestCache
from paddlecloud.sdk.transfers.local_files import hash_file, is_settled, read_into
from paddlecloud.sdk.transfers.walking import Found, found

EXT4, TMPFS, OVERLAY = 0xEF53, 0x01021994, 0x794C7630
PAGE_BYTES = 4096
TICK_S = 10.0


def found_at(path: Path) -> Found:
    return found(path.name, str(path), path.stat())


def wait_for_a_tick(folder: Path) -> None:
    """Until a write now has another time than a write before this."""
    probe = folder / "probe"
    probe.write_bytes(b"")
    before, until_s = probe.stat().st_ctime_ns, time.monotonic() + TICK_S
    while probe.stat().st_ctime_ns == before:
        assert time.monotonic() < until_s
        os.utime(probe)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DigestCache]:
    """Files need not be still for long, and nothing is known of any device."""
    monkeypatch.setattr(settling, "STILL_NS", 0)
    monkeypatch.setattr(settling, "_devices", {})
    monkeypatch.setattr(settling, "_calls", [])
    opened = DigestCache(str(tmp_path / "cache" / "digests.db"))
    yield opened
    opened.close()


@pytest.fixture
def view() -> memoryview:
    return memoryview(bytearray(1 << 20))


def test_a_file_that_was_just_written_is_not_remembered(tmp_path: Path, view: memoryview) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    assert not hash_file(found_at(tmp_path / "f"), view).is_settled


@pytest.mark.parametrize("how", ["hash", "read", "look"])
@pytest.mark.needs("linux")
def test_a_second_write_through_a_mapping_is_never_missed(
    tmp_path: Path, cache: DigestCache, view: memoryview, how: str
) -> None:
    """The page is dirty when it is read: without care the next write has no new time."""
    path = tmp_path / "f"
    path.write_bytes(b"a" * PAGE_BYTES)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), PAGE_BYTES) as mapped:
        os.fsync(file.fileno())
        mapped[0] = 1
        wait_for_a_tick(tmp_path)
        before = found_at(path)
        hashed = hash_file(before, view)
        may_keep = {
            "hash": lambda: hashed.is_settled,
            "read": lambda: read_into(before, view[:PAGE_BYTES]),
            "look": lambda: is_settled(before),
        }[how]()
        if may_keep:
            cache.learn(before, hashed.leaves)
            cache.flush()
        wait_for_a_tick(tmp_path)
        mapped[0] = 2
        assert cache.look_up([found_at(path)], [str(tmp_path)]) == [None]


@pytest.mark.needs("linux")
@pytest.mark.parametrize(
    ("kind", "is_told"), [(EXT4, True), (TMPFS, False), (OVERLAY, False), (0, False)]
)
def test_only_file_systems_that_note_mapped_writes_are_believed(
    tmp_path: Path,
    cache: DigestCache,
    view: memoryview,
    monkeypatch: pytest.MonkeyPatch,
    kind: int,
    is_told: bool,
) -> None:
    monkeypatch.setattr(settling, "_calls", [(lambda _: kind, lambda _: True)])
    path = tmp_path / "f"
    path.write_bytes(b"abc")
    wait_for_a_tick(tmp_path)
    leaves = cache.hash(found_at(path), view)
    cache.flush()
    known = cache.look_up([found_at(path)], [str(tmp_path)])
    assert known == [leaves if is_told else None]


@pytest.mark.needs("linux")
def test_pages_that_cannot_be_written_out_are_not_believed(
    tmp_path: Path, cache: DigestCache, view: memoryview, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "_calls", [(lambda _: EXT4, lambda _: False)])
    (tmp_path / "f").write_bytes(b"abc")
    wait_for_a_tick(tmp_path)
    assert not hash_file(found_at(tmp_path / "f"), view).is_settled


@pytest.mark.needs("linux")
def test_the_file_system_is_asked_once(
    tmp_path: Path, cache: DigestCache, view: memoryview, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(settling, "_calls", [(lambda fd: asked.append(fd) or EXT4, lambda _: True)])
    for name in "abc":
        (tmp_path / name).write_bytes(b"abc")
    wait_for_a_tick(tmp_path)
    for name in "abc":
        assert hash_file(found_at(tmp_path / name), view).is_settled
    assert len(asked) == 1


@pytest.mark.needs("linux")
def test_a_c_library_without_the_calls_means_reading_again(
    tmp_path: Path, cache: DigestCache, view: memoryview, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctypes", None)
    (tmp_path / "f").write_bytes(b"abc")
    wait_for_a_tick(tmp_path)
    assert not hash_file(found_at(tmp_path / "f"), view).is_settled


def test_where_no_promise_can_be_had_a_still_file_is_believed(
    tmp_path: Path, cache: DigestCache, view: memoryview, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "_IS_LINUX", False)
    (tmp_path / "f").write_bytes(b"abc")
    wait_for_a_tick(tmp_path)
    assert hash_file(found_at(tmp_path / "f"), view).is_settled


def test_a_file_that_is_gone_when_it_has_been_read_has_changed(
    tmp_path: Path, view: memoryview, monkeypatch: pytest.MonkeyPatch
) -> None:
    from paddlecloud.sdk.transfers.local_files import Changed

    path = tmp_path / "f"
    path.write_bytes(b"abc")
    file = found_at(path)
    monkeypatch.setattr(settling, "is_settled", lambda *_: path.unlink() or False)
    with pytest.raises(Changed):
        hash_file(file, view)
