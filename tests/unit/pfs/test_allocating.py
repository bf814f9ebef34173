"""Large uploads get their room on the disk ahead of their bytes, where that can be done."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from paddlecloud.core.errors import OutOfSpace
from paddlecloud.pfs import receiving, syscalls
from paddlecloud.pfs.shapes import UploadWish
from paddlecloud.wire.digests import LEAF_BYTES
from tests.storing import ANN, Bench, at, digest_of

DATA = os.urandom(3 * LEAF_BYTES + 10)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(offset, length) of each that was asked for; the kernel is asked as well."""
    found: list[tuple[int, int]] = []
    real = syscalls.allocate

    def allocate(fd: int, offset: int, length: int) -> bool:
        found.append((offset, length))
        return real(fd, offset, length)

    monkeypatch.setattr(syscalls, "allocate", allocate)
    monkeypatch.setattr(receiving, "ALLOCATED_BYTES", 2 * LEAF_BYTES)
    return found


def _send(bench: Bench, data: bytes) -> None:
    upload = bench.store.begin_upload(ANN, UploadWish(at("f"), len(data)))
    receiver = upload.receive(0, len(data))
    for n in range(0, len(data), 1_000_000):
        receiver.write(data[n : n + 1_000_000])
    receiver.finish()
    upload.commit(digest_of(data))
    assert bench.get("f") == data
    bench.store.close()


def test_it_makes_room_step_by_step_and_never_beyond_the_end(
    tmp_path: Path, asked: list[tuple[int, int]]
) -> None:
    _send(Bench(tmp_path), DATA)
    assert asked == [(0, 2 * LEAF_BYTES), (2 * LEAF_BYTES, LEAF_BYTES + 10)]


def test_it_makes_none_for_a_single_leaf(tmp_path: Path, asked: list[tuple[int, int]]) -> None:
    _send(Bench(tmp_path), DATA[:LEAF_BYTES])
    assert asked == []


def test_it_asks_once_where_it_cannot_be_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[tuple[int, int]]
) -> None:
    def cannot(*_: int) -> int:
        syscalls.ctypes.set_errno(errno.EOPNOTSUPP)
        return -1

    monkeypatch.setattr(syscalls, "_fallocate", cannot)
    _send(Bench(tmp_path), DATA)
    assert len(asked) == 1


def test_a_disk_without_room_is_told_before_a_byte_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: int) -> int:
        syscalls.ctypes.set_errno(errno.ENOSPC)
        return -1

    monkeypatch.setattr(syscalls, "_fallocate", full)
    bench = Bench(tmp_path)
    upload = bench.store.begin_upload(ANN, UploadWish(at("f"), len(DATA)))
    receiver = upload.receive(0, len(DATA))
    with pytest.raises(OutOfSpace):
        receiver.write(DATA)
    receiver.cut()
    assert (upload.received(), upload.to_json()["begun"]) == ([], [])
    bench.store.close()
