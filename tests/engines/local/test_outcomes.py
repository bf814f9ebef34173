"""From what is left on disk to how an attempt ended: a table."""

from __future__ import annotations

import pytest

from paddlecloud.core.observed import EndCause
from paddlecloud.engines.local.attempts import Process, parse_status
from paddlecloud.engines.local.outcomes import Facts, judge

RAN = "process 10 100 11 101\nready 1.0\nstarted 2.0\n"


@pytest.mark.parametrize(
    ("status", "oom_kills", "cause", "code", "signal"),
    [
        (RAN + "ended 0 3.0\n", 0, EndCause.EXITED, 0, 0),
        (RAN + "ended 768 3.0\n", 0, EndCause.EXITED, 3, 0),
        (RAN + "ended 9 3.0\n", 0, EndCause.SIGNALED, 137, 9),
        (RAN + "ended 139 3.0\n", 0, EndCause.SIGNALED, 139, 11),  # with a core dump
        (RAN, 0, EndCause.SIGNALED, 137, 9),  # the shim was killed
        ("process 10 100 11 101\nready 1.0\n", 0, EndCause.SIGNALED, 137, 9),
        (RAN + "ended 9 3.0\n", 1, EndCause.OUT_OF_MEMORY, 137, 9),
        (RAN + "ended 256 3.0\n", 1, EndCause.OUT_OF_MEMORY, 1, 0),
        (RAN + "ended 0 3.0\n", 1, EndCause.EXITED, 0, 0),
        (RAN, 1, EndCause.OUT_OF_MEMORY, 137, 9),
        ("process 10 100 11 101\n", 1, EndCause.OUT_OF_MEMORY, 137, 9),
        ("process 10 100 11 101\n", 0, EndCause.START_FAILED, 127, 0),
        ("", 0, EndCause.START_FAILED, 127, 0),
        ("bwrap: Can't find source path\n", 0, EndCause.START_FAILED, 127, 0),
        (RAN.replace("started 2.0", "startfail no such place"), 0, EndCause.START_FAILED, 127, 0),
    ],
)
def test_an_end_is_judged(status: str, oom_kills: int, cause: EndCause, code: int, signal: int):
    end = judge(Facts(parse_status(status.encode()), out_of_memory_kills=oom_kills)).exit
    assert end is not None
    assert (end.cause, end.code, end.signal) == (cause, code, signal)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("bwrap: Can't mkdir /x: Read-only\n", "bwrap: Can't mkdir /x: Read-only"),
        ("ready 1.0\nstartfail no such place\nended 32512 1.5\n", "no such place"),
        ("", "it was killed before its program started"),
    ],
)
def test_a_failed_start_says_why(status: str, message: str):
    end = judge(Facts(parse_status(status.encode()))).exit
    assert end is not None
    assert end.message == message


def test_times_are_the_shims_where_it_could_tell_them():
    told = judge(Facts(parse_status((RAN + "ended 0 3.5\n").encode()), seen_at=9.0))
    assert (told.started_at, told.ended_at) == (2.0, 3.5)
    killed = judge(Facts(parse_status(RAN.encode()), seen_at=9.0))
    assert (killed.started_at, killed.ended_at) == (2.0, 9.0)


def test_a_status_file_cut_short_is_read_as_far_as_it_goes():
    status = parse_status(b"process 10 100 11 101\nready 1.0\nstarted")
    assert status.process == Process(10, 100)
    assert status.shim == Process(11, 101)
    assert status.started_at is None


@pytest.mark.parametrize("line", [b"process 1 2\n", b"ended x y\n", b"started soon\n", b"\xff\n"])
def test_a_line_that_makes_no_sense_is_a_complaint(line: bytes):
    assert parse_status(line).complaints
