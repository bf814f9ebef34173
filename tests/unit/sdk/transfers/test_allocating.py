"""A download makes room on the local disk step by step, where that can be done."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.sdk.transfers import allocating
from paddlecloud.sdk.transfers.allocating import STEP_BYTES, Allocation
from paddlecloud.wire.digests import LEAF_BYTES


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    opened = os.open(tmp_path / "part", os.O_RDWR | os.O_CREAT)
    yield opened
    os.close(opened)


def test_it_makes_room_for_what_comes_next_and_not_beyond_the_end(descriptor: int) -> None:
    stop = STEP_BYTES + 2 * LEAF_BYTES + 5
    room = Allocation(descriptor, 0, stop)
    for at, size_bytes in (
        (0, STEP_BYTES),
        (LEAF_BYTES, STEP_BYTES),
        (STEP_BYTES, stop),
        (stop, stop),
    ):
        room.reach(at)
        assert os.fstat(descriptor).st_size == size_bytes
    assert os.fstat(descriptor).st_blocks * 512 >= stop


def test_it_makes_none_for_a_single_leaf(descriptor: int) -> None:
    Allocation(descriptor, 0, LEAF_BYTES).reach(0)
    assert os.fstat(descriptor).st_size == 0


def test_it_does_nothing_where_it_cannot_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []
    real = allocating._allocate

    def allocate(descriptor: int, start: int, length: int) -> bool:
        tries.append(start)
        return real(descriptor, start, length)

    monkeypatch.setattr(allocating, "_allocate", allocate)
    reading, writing = os.pipe()
    try:
        room = Allocation(writing, 0, 2 * STEP_BYTES)
        room.reach(0)
        room.reach(STEP_BYTES)
        assert tries == [0]
    finally:
        os.close(reading)
        os.close(writing)


def test_it_says_when_there_is_no_room(descriptor: int) -> None:
    with pytest.raises(OSError, match="large"):
        Allocation(descriptor, 1 << 60, 1 << 61).reach(1 << 60)
