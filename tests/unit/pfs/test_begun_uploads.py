"""Uploads that are begun and never sent: so many, for so much, and no cost."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.core.errors import OutOfSpace, RateLimited
from paddlecloud.pfs import unfinished, uploads
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.shapes import UploadWish
from paddlecloud.wire.digests import LEAF_BYTES
from tests.storing import ANN, BOB, Bench, at, digest_of


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path / "pfs")
    yield bench
    bench.store.close()


@pytest.fixture
def free_bytes(monkeypatch: pytest.MonkeyPatch) -> int:
    free = 1 << 50
    monkeypatch.setattr(Tree, "free_bytes", lambda self: free)
    return free


def test_an_account_may_begin_so_many_and_another_as_many(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished, "MOST_UNFINISHED", 3)
    begun = [bench.store.begin_upload(ANN, UploadWish(at(f"f{n}"), 1)) for n in range(3)]
    with pytest.raises(RateLimited, match="3 unfinished uploads"):
        bench.store.begin_upload(ANN, UploadWish(at("more"), 1))
    bench.store.begin_upload(ANN, UploadWish(at("f0"), 1))  # the same again
    bench.store.begin_upload(BOB, UploadWish(at("f0", "bob"), 1))
    begun[0].abandon()
    bench.store.begin_upload(ANN, UploadWish(at("more"), 1))


def test_what_is_announced_together_must_fit(bench: Bench, free_bytes: int) -> None:
    bench.store.begin_upload(ANN, UploadWish(at("a"), free_bytes // 2 + 1))
    with pytest.raises(OutOfSpace, match="of uploads under way"):
        bench.store.begin_upload(ANN, UploadWish(at("b"), free_bytes // 2 + 1))
    bench.store.begin_upload(BOB, UploadWish(at("b", "bob"), free_bytes // 2 + 1))


def test_what_is_announced_costs_no_memory_now_nor_after_a_restart(
    bench: Bench, free_bytes: int
) -> None:
    bench.store.begin_upload(ANN, UploadWish(at("first"), 1))  # what the first one imports
    tracemalloc.start()
    try:
        for number in range(100):
            bench.store.begin_upload(ANN, UploadWish(at(f"f{number}"), 1 << 42))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
        tracemalloc.reset_peak()
        bench.reopen()
        assert len(bench.store.uploads(ANN)) == 101
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_after_a_reboot_leaves_are_read_again_when_they_are_first_used(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = os.urandom(LEAF_BYTES) + b"end"
    wish = UploadWish(at("f"), len(data), source="x")
    upload = bench.store.begin_upload(ANN, wish)
    upload.receive(0, LEAF_BYTES).write(data[:LEAF_BYTES])
    part = next(bench.root.rglob(f"up-{upload.id}"))
    read: list[int] = []
    real = uploads.read_leaf

    def note(fd: int, index: int, size_bytes: int, buffer: memoryview) -> bytes:
        read.append(index)
        return real(fd, index, size_bytes, buffer)

    monkeypatch.setattr(uploads, "read_leaf", note)
    monkeypatch.setattr(unfinished, "boot_id", lambda: "another")
    with part.open("r+b") as file:
        file.write(b"what the power cut left")
    bench.reopen()
    assert read == []
    again = bench.store.begin_upload(ANN, wish)
    assert (again.received(), read) == ([], [0])
    again.receive(0, len(data)).write(data)
    again.commit(digest_of(data))
    assert bench.get("f") == data
