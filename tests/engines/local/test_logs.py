"""Logs: bounded on disk, cursors for ever valid, what is dropped is stated."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.resources import Resources
from paddlecloud.engines.local import linux, logs
from paddlecloud.engines.local.logs import LogFile
from tests.engines.local.bench import HELD, Bench
from tests.patience import PATIENCE_S

KIB, MIB = 2**10, 2**20


@pytest.fixture
def log(tmp_path: Path) -> LogFile:
    return LogFile(tmp_path / "log", tmp_path / "dropped")


def write(log: LogFile, data: bytes) -> None:
    with open(log._log, "ab") as file:
        file.write(data)


def disk_bytes(log: LogFile) -> int:
    return os.stat(log._log).st_blocks * 512


def read_all(log: LogFile, start: int = 0, limit: int = 10 * KIB) -> tuple[bytes, int]:
    """Everything from a cursor on, and how many bytes were said to be missing."""
    data, dropped = b"", 0
    while True:
        part = log.read(start, limit, ended=True)
        data, dropped, start = data + part.data, dropped + part.dropped_bytes, part.next
        if part.ended:
            return data, dropped


# --- reading -----------------------------------------------------------------------------------


def test_a_log_that_does_not_exist_yet_is_empty(log: LogFile):
    part = log.read(0, 100, ended=False)
    assert (part.data, part.next, part.size, part.ended) == (b"", 0, 0, False)


def test_reading_goes_on_from_the_cursor(log: LogFile):
    write(log, b"one\ntwo\n")
    first = log.read(0, 4, ended=False)
    second = log.read(first.next, 100, ended=False)
    assert (first.data, second.data, second.next, second.size) == (b"one\n", b"two\n", 8, 8)


@pytest.mark.parametrize(
    ("start", "data"), [(-4, b"two\n"), (-8, b"one\ntwo\n"), (-99, b"one\ntwo\n")]
)
def test_a_negative_start_counts_from_the_end(log: LogFile, start: int, data: bytes):
    write(log, b"one\ntwo\n")
    assert log.read(start, 100, ended=True).data == data


def test_ended_is_said_only_with_the_last_bytes(log: LogFile):
    write(log, b"x" * 100)
    assert not log.read(0, 60, ended=True).ended
    assert log.read(60, 60, ended=True).ended
    assert not log.read(60, 60, ended=False).ended


def test_one_answer_is_bounded_whatever_is_asked_for(log: LogFile):
    write(log, b"x" * (logs.MAX_SLICE_BYTES + 1000))
    assert len(log.read(0, 2**40, ended=True).data) == logs.MAX_SLICE_BYTES


def test_a_cursor_past_a_log_that_was_cut_short_goes_on_at_its_end(log: LogFile):
    write(log, b"x" * 100)
    os.truncate(log._log, 10)
    part = log.read(100, 50, ended=False)
    assert (part.data, part.next, part.size) == (b"", 10, 10)


# --- bounding ----------------------------------------------------------------------------------


def numbered_lines(count: int, width: int = 64) -> bytes:
    return b"".join(b"%0*d\n" % (width - 1, n) for n in range(count))


def test_a_log_within_its_cap_is_left_alone(log: LogFile):
    write(log, b"x" * MIB)
    assert log.shorten(MIB, 64 * KIB) is None
    assert log.gap() == (0, 0)


def test_over_the_cap_the_middle_goes_and_the_ends_stay(log: LogFile):
    whole = numbered_lines(2 * MIB // 64)
    write(log, whole)
    assert log.shorten(MIB, 64 * KIB) is True
    data, dropped = read_all(log)
    assert len(data) + dropped == len(whole)
    assert dropped > MIB
    assert disk_bytes(log) <= MIB
    start, end = log.gap()
    assert data == whole[:start] + whole[end:]
    assert start >= 63 * KIB


def test_the_gap_lies_between_lines(log: LogFile):
    write(log, numbered_lines(2 * MIB // 100, width=100))
    log.shorten(MIB, 64 * KIB)
    data, _ = read_all(log)
    assert all(len(line) == 99 for line in data.splitlines())


def test_one_endless_line_is_bounded_too(log: LogFile):
    write(log, b"x" * (3 * MIB))
    assert log.shorten(MIB, 64 * KIB) is True
    data, dropped = read_all(log)
    assert len(data) + dropped == 3 * MIB
    assert set(data) == {ord("x")}  # and no zeros of the hole
    assert disk_bytes(log) <= MIB


def test_a_cursor_from_before_stays_valid(log: LogFile):
    whole = numbered_lines(MIB // 64)
    write(log, whole)
    cursor = 3 * MIB // 4
    before = log.read(cursor, 640, ended=False).data
    write(log, numbered_lines(MIB // 64))
    log.shorten(MIB + 512 * KIB, 64 * KIB)
    start, end = log.gap()
    if cursor >= end:
        assert log.read(cursor, 640, ended=False).data == before
    part = log.read((start + end) // 2, 640, ended=False)
    assert part.dropped_bytes == end - (start + end) // 2
    assert part.next == end + len(part.data)


def test_a_reader_behind_a_growing_gap_loses_no_count(log: LogFile):
    """Written, dropped and read in turns: what was read and what was said to be dropped add up."""
    cursor = seen = dropped = 0
    for _ in range(40):
        write(log, b"y" * (100 * KIB))
        log.shorten(MIB, 64 * KIB)
        part = log.read(cursor, 30 * KIB, ended=False)
        cursor, seen, dropped = part.next, seen + len(part.data), dropped + part.dropped_bytes
        assert b"\0" not in part.data
        assert disk_bytes(log) <= MIB + 100 * KIB
    assert seen + dropped == cursor


@given(
    writes=st.lists(st.integers(1, 300 * KIB), min_size=1, max_size=30),
    cap=st.integers(64 * KIB, MIB),
    head=st.integers(0, 32 * KIB),
)
def test_whatever_is_written_what_is_kept_is_true(tmp_path_factory, writes, cap: int, head: int):
    folder = tmp_path_factory.mktemp("log")
    log, whole = LogFile(folder / "log", folder / "dropped"), b""
    for size in writes:
        data = (b"%07d\n" % (len(whole) % 10**7)) * (size // 8 + 1)
        whole += data
        write(log, data)
        log.shorten(cap, head)
    start, end = log.gap()
    data, dropped = read_all(log)
    assert dropped == end - start
    assert data == whole[:start] + whole[end:]
    assert disk_bytes(log) <= cap + 8 * KIB


def test_a_kill_between_recording_and_punching_shows_no_zeros(log: LogFile, monkeypatch):
    write(log, numbered_lines(2 * MIB // 64))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(linux, "punch_hole", killed)
        with pytest.raises(KeyboardInterrupt):
            log.shorten(MIB, 64 * KIB)
    data, dropped = read_all(log)
    assert dropped > 0
    assert b"\0" not in data
    write(log, numbered_lines(2 * MIB // 64))
    assert log.shorten(MIB, 64 * KIB) is True
    assert b"\0" not in read_all(log)[0]
    assert disk_bytes(log) <= 3 * MIB  # the part the killed one missed is still there


def test_without_hole_punching_the_head_stays_and_cursors_hold(log: LogFile, monkeypatch):
    def unsupported(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "no holes here")

    monkeypatch.setattr(linux, "punch_hole", unsupported)
    whole = numbered_lines(2 * MIB // 64)
    write(log, whole)
    assert log.shorten(MIB, 64 * KIB) is False
    write(log, b"after\n")
    data, dropped = read_all(log)
    assert data.endswith(b"after\n")
    assert len(data) + dropped == len(whole) + 6
    assert data[: 63 * KIB] == whole[: 63 * KIB]
    assert disk_bytes(log) <= MIB


# --- a real flood ------------------------------------------------------------------------------


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.parametrize("way", HELD)
def test_a_flood_neither_grows_the_platform_nor_blocks_the_program(make_bench, way: str):
    """1 GiB as fast as the disk takes it, with a reader following."""
    bench: Bench = make_bench(way, log_cap_bytes=8 * MIB, log_head_bytes=64 * KIB)
    before = resident_bytes()
    key = bench.start(
        "yes 'a line of an endless log' | head -c 1073741824; echo; echo the end",
        resources=Resources(cpu_milli=4000),
    )
    cursor = seen = dropped = 0
    while True:
        bench.processes.wait_log(key, cursor, 5.0)
        part = bench.processes.read_log(key, cursor, MIB)
        cursor, seen, dropped = part.next, seen + len(part.data), dropped + part.dropped_bytes
        if part.ended:
            break
    assert bench.exit_of(key).ok
    assert seen + dropped == cursor == 2**30 + len("\nthe end\n")
    assert bench.processes.read_log(key, -8, 100).data == b"the end\n"
    assert os.stat(bench.processes.log_path(key)).st_blocks * 512 <= 8 * MIB
    assert resident_bytes() - before < 64 * MIB


@pytest.mark.slow
def test_one_line_of_100_megabytes_is_no_trouble(make_bench):
    bench: Bench = make_bench("plain-without-cgroups", log_cap_bytes=8 * MIB)
    key = bench.start("head -c 104857600 /dev/zero | tr '\\0' x; echo; echo the end")
    assert bench.exit_of(key).ok
    first = bench.processes.read_log(key, 0, MIB)
    last = bench.processes.read_log(key, -8, 100)
    assert (first.data[:10], last.data) == (b"x" * 10, b"the end\n")
    assert last.size == 104857600 + 9
    assert os.stat(bench.processes.log_path(key)).st_blocks * 512 <= 8 * MIB


# --- following ---------------------------------------------------------------------------------


@pytest.fixture(params=["inotify", "polling"])
def following_bench(request, make_bench, monkeypatch) -> Bench:
    if request.param == "polling":

        def refused() -> int:
            raise OSError(errno.EMFILE, "too many")

        monkeypatch.setattr(linux, "inotify_open", refused)
    return make_bench("plain-without-cgroups")


def test_waiting_ends_when_the_log_grows(following_bench: Bench):
    bench = following_bench
    key = bench.start("while [ ! -e gate ]; do sleep 0.02; done; echo grown; sleep 1000")
    bench.running(key)
    threading.Timer(0.2, bench.put, ("gate", "")).start()
    bench.processes.wait_log(key, 0, 60)
    assert bench.processes.read_log(key, 0, 100).data == b"grown\n"


def test_waiting_ends_when_the_replica_does(following_bench: Bench):
    bench = following_bench
    key = bench.start("while [ ! -e gate ]; do sleep 0.02; done")
    bench.running(key)
    threading.Timer(0.2, bench.put, ("gate", "")).start()
    bench.processes.wait_log(key, 0, 60)
    assert bench.processes.read_log(key, 0, 100).ended


def test_waiting_ends_when_the_time_is_up(following_bench: Bench):
    key = following_bench.start("sleep 1000")
    following_bench.processes.wait_log(key, 0, 0.05)
    assert not following_bench.processes.read_log(key, 0, 100).ended


def test_waiting_ends_when_the_platform_closes(following_bench: Bench):
    bench = following_bench
    key = bench.start("sleep 1000")
    bench.running(key)
    waiter = threading.Thread(target=bench.processes.wait_log, args=(key, 0, 60))
    waiter.start()
    bench.reopen()
    waiter.join(PATIENCE_S)
    assert not waiter.is_alive()


def test_a_file_is_watched_only_while_somebody_waits(make_bench):
    bench: Bench = make_bench("plain-without-cgroups")
    key = bench.start("sleep 1000")
    bench.processes.wait_log(key, 0, 0.05)
    assert bench.processes._keeper.tail._waiting == {}
