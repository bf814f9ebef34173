"""Large files do not stay in the kernel's memory, what others read does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.pfs import page_cache
from paddlecloud.pfs.page_cache import Readings, is_held
from paddlecloud.wire.digests import LEAF_BYTES
from tests.storing import Bench, little_disk

STEP_BYTES = 2 * LEAF_BYTES
LARGE = os.urandom(5 * LEAF_BYTES + 100)


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "STEP_BYTES", STEP_BYTES)
    monkeypatch.setattr(page_cache, "LARGE_BYTES", len(LARGE))


@pytest.fixture
def advised(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(offset, length) of what the kernel was told not to keep."""
    seen: list[tuple[int, int]] = []

    def note(fd: int, offset: int, length: int, advice: int) -> None:
        assert advice == os.POSIX_FADV_DONTNEED
        seen.append((offset, length))

    monkeypatch.setattr(os, "posix_fadvise", note)
    return seen


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Of its own: one in memory would keep everything."""
    with little_disk(tmp_path, 96 << 20) as folder:
        yield folder


def _held(path: Path) -> bool:
    fd = os.open(path, os.O_RDONLY)
    try:
        return is_held(fd, 0, os.fstat(fd).st_size)
    finally:
        os.close(fd)


@pytest.mark.needs("loop-mount")
def test_a_large_upload_is_gone_from_memory_and_whole_on_the_disk(disk: Path):
    bench = Bench(disk / "pfs")
    bench.put("large", LARGE)
    assert not _held(bench.home / "large")
    assert bench.get("large") == LARGE
    bench.store.close()


@pytest.mark.needs("loop-mount")
def test_a_smaller_upload_stays_for_whoever_reads_it_next(disk: Path):
    bench = Bench(disk / "pfs")
    bench.put("small", LARGE[1:])
    assert _held(bench.home / "small")
    bench.store.close()


def test_a_large_upload_is_let_go_behind_itself(tmp_path: Path, advised: list):
    bench = Bench(tmp_path / "pfs")
    bench.put("large", LARGE)
    behind = [(0, STEP_BYTES), (0, 2 * STEP_BYTES)]
    assert advised == [*behind, (0, 0)]  # in the end the whole file, which is synced
    bench.store.close()


def test_storage_that_is_never_synced_is_left_alone(tmp_path: Path, advised: list):
    bench = Bench(tmp_path / "scratch", sync=False)
    bench.put("large", LARGE)
    assert advised == []
    bench.store.close()


class TestReading:
    @pytest.fixture
    def fd(self, tmp_path: Path) -> Iterator[int]:
        path = tmp_path / "large"
        path.write_bytes(LARGE)
        fd = os.open(path, os.O_RDONLY)
        yield fd
        os.close(fd)

    @pytest.fixture(autouse=True)
    def nothing_held(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(page_cache, "is_held", lambda fd, offset, length: False)

    def test_the_first_of_a_part_lets_go_behind_itself(self, fd: int, advised: list):
        passing = Readings().begin(fd, 0, len(LARGE))
        assert passing is not None
        for at in range(0, 3 * STEP_BYTES + 1, STEP_BYTES // 2):
            passing.reached(at)
        assert advised == [(0, STEP_BYTES), (0, 2 * STEP_BYTES), (STEP_BYTES, 2 * STEP_BYTES)]

    def test_the_second_of_a_part_keeps_it_for_the_third(self, fd: int):
        readings = Readings()
        assert readings.begin(fd, 0, len(LARGE)) is not None
        assert readings.begin(fd, LEAF_BYTES, STEP_BYTES) is not None  # another part
        assert readings.begin(fd, 0, len(LARGE)) is None

    def test_what_somebody_has_in_memory_is_kept(self, fd: int, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(page_cache, "is_held", is_held)
        os.pread(fd, len(LARGE), 0)
        assert Readings().begin(fd, 0, len(LARGE)) is None

    def test_small_files_and_short_parts_are_kept(self, fd: int, monkeypatch: pytest.MonkeyPatch):
        assert Readings().begin(fd, 0, STEP_BYTES - 1) is None
        monkeypatch.setattr(page_cache, "LARGE_BYTES", len(LARGE) + 1)
        assert Readings().begin(fd, 0, len(LARGE)) is None

    def test_only_the_latest_parts_are_remembered(self, fd: int, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(page_cache, "_MOST_REMEMBERED", 2)
        readings = Readings()
        for offset in (0, 1, 2):
            assert readings.begin(fd, offset, STEP_BYTES) is not None
        assert readings.begin(fd, 2, STEP_BYTES) is None
        assert readings.begin(fd, 0, STEP_BYTES) is not None
