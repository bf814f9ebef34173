"""Buffers for file bytes begin where a page begins."""

from __future__ import annotations

import ctypes
import mmap

import pytest

from paddlecloud.wire.buffers import buffer


@pytest.mark.parametrize("size_bytes", [1, 4096, 256 << 10, (1 << 20) + 1])
def test_it_is_aligned_zeroed_and_as_long_as_asked(size_bytes: int) -> None:
    view = buffer(size_bytes)
    assert len(view) == size_bytes
    assert view.tobytes() == bytes(size_bytes)
    address = ctypes.addressof(ctypes.c_char.from_buffer(view))
    assert address % mmap.PAGESIZE == 0


def test_it_can_be_written_and_cut() -> None:
    view = buffer(16)
    view[4:8] = b"abcd"
    assert bytes(view[:8]) == b"\0\0\0\0abcd"
