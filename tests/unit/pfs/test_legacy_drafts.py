"""Drafts of the first protocol's files: how long a copy takes, how many there are, odd storages."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paddlecloud.core.errors import Conflict, InvalidInput
from paddlecloud.pfs import legacy_files, syscalls
from paddlecloud.pfs.legacy_files import LegacyFiles
from tests.old_chunks import (
    CHUNK,
    Clock,
    F,
    bench,
    clock,
    files,
    give_up,
    post,
    quiet,
    upload,
)
from tests.patience import PATIENCE_S
from tests.storing import ANN, BOB, Bench, at

__all__ = ["bench", "clock", "files"]  # fixtures


# --- many at a time, and long copies -----------------------------------------------------------


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """(a copy has begun, it may go on): as with a large file."""
    has_begun, may_go_on = threading.Event(), threading.Event()
    real = legacy_files.copy_whole

    def copy_whole(*args: object) -> os.stat_result:
        has_begun.set()
        assert may_go_on.wait(PATIENCE_S)
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(legacy_files, "copy_whole", copy_whole)
    yield has_begun, may_go_on
    may_go_on.set()


def _touch(files: LegacyFiles) -> None:
    files.touch(ANN, F, 2 * CHUNK)


def _change(files: LegacyFiles) -> None:
    post(files, ANN, F, 0, b"n" * CHUNK)


@pytest.mark.parametrize("call", [_touch, _change])
def test_nobody_waits_for_the_copy_of_another(
    bench: Bench,
    files: LegacyFiles,
    clock: Clock,
    stuck: tuple[threading.Event, threading.Event],
    call: Callable[[LegacyFiles], None],
):
    """Were anything here to wait, the test would hang: only its end lets the copy go on."""
    has_begun, may_go_on = stuck
    bench.put("f", b"o" * 2 * CHUNK)
    bench.put("g", b"data")
    copying = threading.Thread(target=call, args=[files])
    copying.start()
    assert has_begun.wait(PATIENCE_S)
    files.touch(BOB, at("f", "bob"), CHUNK)
    post(files, BOB, at("f", "bob"), 0, b"b" * CHUNK)
    assert files.chunk_meta(ANN, at("g"), 0, CHUNK).size_bytes == 4
    quiet(files, clock)
    # A chunk of the very file is taken, and put in once there is a draft to put it in.
    for _ in range(2):
        receiver = files.receive_chunk(ANN, F, CHUNK)
        receiver.write(b"c" * CHUNK)
        receiver.cut()
    receiver = files.receive_chunk(ANN, F, CHUNK)
    receiver.write(b"m" * CHUNK)
    finishing = threading.Thread(target=receiver.finish)
    finishing.start()
    may_go_on.set()
    for thread in (copying, finishing):
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    post(files, ANN, F, 0, b"n" * CHUNK)
    quiet(files, clock)
    assert bench.get("f") == b"n" * CHUNK + b"m" * CHUNK
    assert bench.leftovers() == []


def test_a_chunk_set_aside_must_fit_the_file_it_meets(
    bench: Bench,
    files: LegacyFiles,
    clock: Clock,
    stuck: tuple[threading.Event, threading.Event],
):
    has_begun, may_go_on = stuck
    bench.put("f", b"o" * 2 * CHUNK)
    touching = threading.Thread(target=files.touch, args=[ANN, F, CHUNK])
    touching.start()
    assert has_begun.wait(PATIENCE_S)
    receiver = files.receive_chunk(ANN, F, CHUNK)
    receiver.write(b"m" * CHUNK)
    may_go_on.set()
    touching.join(PATIENCE_S)
    with pytest.raises(InvalidInput, match="behind the end"):
        receiver.finish()
    give_up(files, clock)
    assert bench.leftovers() == []


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_nothing_is_open_between_two_calls(bench: Bench, files: LegacyFiles):
    bench.put("old", b"x" * 2 * CHUNK)
    before = _open_files()
    for number in range(20):
        files.touch(ANN, at(f"new-{number}"), 2 * CHUNK)
    files.chunk_meta(ANN, at("new-1"), 0, CHUNK)
    post(files, ANN, at("new-1"), 0, b"y" * CHUNK)
    post(files, ANN, at("old"), 0, b"y" * CHUNK)
    assert _open_files() == before
    receiver = files.receive_chunk(ANN, at("new-2"), 0)
    assert _open_files() == before + 1
    receiver.cut()
    with pytest.raises(InvalidInput):
        files.receive_chunk(ANN, at("new-2"), 3 * CHUNK)
    files.flush()
    assert _open_files() == before


def test_one_account_can_have_so_many_begun(
    bench: Bench, files: LegacyFiles, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(legacy_files, "MOST_PER_ACCOUNT", 3)
    for name in "abc":
        files.touch(ANN, at(name), CHUNK)
    with pytest.raises(Conflict, match="3 files are being written already"):
        files.touch(ANN, at("d"), CHUNK)
    files.touch(ANN, at("a"), 2 * CHUNK)
    files.touch(BOB, at("d", "bob"), CHUNK)
    post(files, ANN, at("b"), 0, b"x" * CHUNK)
    files.touch(ANN, at("d"), CHUNK)
    give_up(files, clock)
    for name in "efg":
        files.touch(ANN, at(name), CHUNK)
    give_up(files, clock)
    assert bench.leftovers() == []


# --- honest about storages ---------------------------------------------------------------------


def test_a_draft_is_a_whole_copy_where_the_kernel_stops_before_the_end(
    bench: Bench, files: LegacyFiles, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    data = os.urandom(3 * CHUNK)
    bench.put("f", data)
    monkeypatch.setattr(os, "copy_file_range", lambda *_: 0)
    post(files, ANN, F, 0, b"n" * CHUNK)
    quiet(files, clock)
    assert bench.get("f") == b"n" * CHUNK + data[CHUNK:]


@pytest.mark.parametrize("call", [_touch, _change])
def test_a_file_that_is_being_written_is_not_taken_for_zeros(
    bench: Bench,
    files: LegacyFiles,
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[[LegacyFiles], None],
):
    bench.put("f", b"o" * 2 * CHUNK)
    sizes = iter(range(2 * CHUNK - 1, 0, -1))

    def shrink(*_: object) -> int:
        os.truncate(bench.home / "f", next(sizes))
        return 0

    monkeypatch.setattr(os, "copy_file_range", shrink)
    with pytest.raises(Conflict, match="is being written"):
        call(files)
    assert bench.leftovers() == []
    assert bench.used()[1] == 1


def test_a_file_that_grew_meanwhile_keeps_its_end(
    bench: Bench, files: LegacyFiles, monkeypatch: pytest.MonkeyPatch
):
    bench.put("f", b"o" * 2 * CHUNK)
    real = os.copy_file_range

    def grow(*args: int) -> int:
        with (bench.home / "f").open("ab") as file:
            file.write(b"more")
        monkeypatch.setattr(os, "copy_file_range", real)
        return real(*args)

    monkeypatch.setattr(os, "copy_file_range", grow)
    with pytest.raises(Conflict, match="is being written"):
        _change(files)
    _change(files)
    files.flush()
    assert bench.get("f") == b"n" * CHUNK + b"o" * CHUNK + b"more"


def test_a_draft_with_its_name_is_not_kept_for_another_attempt(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    bench = Bench(tmp_path / "synced")
    files = LegacyFiles(bench.store, clock)
    bench.put("f", b"o" * 2 * CHUNK)
    _change(files)

    def fail(fd: int) -> bool:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(syscalls, "sync_directory", fail)
        quiet(files, clock)
    assert bench.get("f") == b"n" * CHUNK + b"o" * CHUNK
    assert bench.used() == (2 * CHUNK, 1)
    bench.put("f", b"newer")
    quiet(files, clock)
    assert bench.get("f") == b"newer"
    assert files.chunk_meta(ANN, F, 0, CHUNK).size_bytes == len(b"newer")
    bench.store.close()


def test_a_draft_somebody_deleted_is_begun_again(bench: Bench, files: LegacyFiles):
    files.touch(ANN, F, 2 * CHUNK)
    for name in bench.leftovers():
        (bench.parts / name).unlink()
    with pytest.raises(Conflict, match="is gone"):
        files.receive_chunk(ANN, F, 0)
    assert bench.used() == (0, 0)
    data = os.urandom(2 * CHUNK)
    upload(files, data)
    assert bench.get("f") == data
