"""The first protocol's client, as far as the store sees it; and a clock that a test sets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.pfs.legacy_files import FORGOTTEN_S, QUIET_S, LegacyFiles
from paddlecloud.pfs.owners import Owner
from paddlecloud.wire.pfspath import PfsPath
from tests.storing import ANN, Bench, at

CHUNK = 4096
F = at("f")


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path / "pfs", sync=False)
    yield bench
    bench.store.close()


@pytest.fixture
def files(bench: Bench, clock: Clock) -> LegacyFiles:
    return LegacyFiles(bench.store, clock)


def post(files: LegacyFiles, who: Owner, path: PfsPath, offset: int, data: bytes) -> None:
    """A whole chunk at once."""
    receiver = files.receive_chunk(who, path, offset)
    try:
        receiver.write(data)
        receiver.finish()
    finally:
        receiver.cut()


def upload(files: LegacyFiles, data: bytes, *, until: int | None = None) -> list[int]:
    """As the old client does it; the offsets it had to post."""
    files.touch(ANN, F, len(data))
    posted = []
    for n, offset in enumerate(range(0, max(1, len(data)), CHUNK)):
        if n == until:
            return posted
        piece = data[offset : offset + CHUNK]
        meta = files.chunk_meta(ANN, F, offset, CHUNK)
        if meta.checksum != hashlib.md5(piece).hexdigest():
            post(files, ANN, F, offset, piece)
            posted.append(offset)
    return posted


def quiet(files: LegacyFiles, clock: Clock) -> None:
    clock.now_s += QUIET_S
    files.tick()


def give_up(files: LegacyFiles, clock: Clock) -> None:
    """Nobody comes back for a day."""
    clock.now_s += FORGOTTEN_S + 1
    files.tick()
