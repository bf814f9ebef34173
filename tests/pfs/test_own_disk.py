"""A file service on a disk of its own, which is filled to the brim and loses a bit."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.pfs import page_cache
from paddlecloud.wire.digests import LEAF_BYTES
from tests.pfs.calls import PFS, ask, batch, begin, content, put, stream
from tests.pfs.running import FakeCloud, Running
from tests.storing import fill, little_disk, unmounted

pytestmark = pytest.mark.needs("loop-mount")
HOME = "/pfs/local/home/alice"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with little_disk(tmp_path, 48 << 20) as folder:
        yield folder


@pytest.fixture
def running(disk: Path, cloud: FakeCloud) -> Iterator[Running]:
    started = Running(disk / "root", cloud.url).start()
    yield started
    started.stop()


def test_a_full_disk_is_said_and_is_over_when_there_is_room(running: Running) -> None:
    alice, pid = running.as_user(), running.pid
    assert put(alice, f"{HOME}/kept", b"kept" * 100_000).status == 200
    upload = begin(alice, f"{HOME}/begun", bytes(2 * LEAF_BYTES))["id"]
    fill(running.home() / "by a job")
    began_s = time.monotonic()
    cut = alice.call("PUT", f"{PFS}/uploads/{upload}?offset=0", b"y" * 2 * LEAF_BYTES)
    assert time.monotonic() - began_s < 2
    begun = alice.post(f"{PFS}/uploads", {"path": f"{HOME}/new", "size": 1 << 20, "source": "s"})
    many = batch(alice, HOME, stream({"a": b"z" * 50_000}), 1, 50_000)
    for refused in (cut, begun, many):
        assert (refused.status, refused.json["code"]) == (507, "out_of_space")
    assert content(alice, f"{HOME}/kept").body == b"kept" * 100_000
    removed = alice.post(f"{PFS}/remove", {"paths": [f"{HOME}/by a job"], "recursive": False})
    assert removed.status == 200
    again = alice.call("PUT", f"{PFS}/uploads/{upload}?offset=0", b"y" * 2 * LEAF_BYTES)
    assert again.status == 200
    assert put(alice, f"{HOME}/new", b"z" * 50_000).status == 200
    assert content(alice, f"{HOME}/new").body == b"z" * 50_000
    assert running.pid == pid
    assert running.process is not None
    assert running.process.poll() is None


def test_a_bit_that_the_disk_lost_is_found_and_healed(running: Running, disk: Path) -> None:
    alice, path = running.as_user(), f"{HOME}/f"
    data = os.urandom(100_000)
    digest = put(alice, path, data).json["digest"]
    running.stop()
    image = disk.parent / "image"
    with unmounted(disk, image):
        whole = image.read_bytes()
        at = whole.index(data[4096:8192]) + 1000
        with image.open("r+b") as file:
            file.seek(at)
            file.write(bytes([whole[at] ^ 0x04]))
    running.start()
    assert ask(alice, "entry", path, digest=1).json["digest"] == digest  # as it was written
    found = ask(alice, "entry", path, verify=1)
    assert (found.status, found.json["code"]) == (409, "conflict")
    assert "bit rot" in found.json["message"]
    assert put(alice, path, data).status == 200
    assert ask(alice, "entry", path, verify=1).json["digest"] == digest
    assert content(alice, path).body == data


def test_a_large_file_stays_in_memory_from_its_second_reader_on(
    tmp_path: Path, cloud: FakeCloud
) -> None:
    size_bytes = page_cache.LARGE_BYTES
    with little_disk(tmp_path, size_bytes + (64 << 20)) as disk:
        running = Running(disk / "root", cloud.url).start()
        alice, stored = running.as_user(), running.home() / "large"
        put(alice, f"{HOME}/small", b"makes the home")
        with stored.open("wb", buffering=0) as file:
            for _ in range(size_bytes >> 20):
                file.write(b"0123456789abcdef" * (1 << 16))
            os.fsync(file.fileno())
            page_cache.let_go(file.fileno())
        assert not _is_held(stored)
        for is_kept in (False, True):
            fetched = content(alice, f"{HOME}/large")
            assert (fetched.status, len(fetched.body)) == (200, size_bytes)
            assert _is_held(stored) is is_kept
        running.stop()


def _is_held(path: Path) -> bool:
    """Of the first half: the last bytes may still be on their way to the reader."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return page_cache.is_held(fd, 0, os.fstat(fd).st_size // 2)
    finally:
        os.close(fd)
