"""The progress line of a transfer: what it says in any width, and what a terminal is sent."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from paddlecloud.cli import sizes
from paddlecloud.cli.pfs.progress import Progress
from tests.cli.scripted_files import HOME
from tests.patience import PATIENCE_S
from tests.scripted_server import ScriptedServer

GIB = 1 << 30
MIB = 1 << 20


# --- the line --------------------------------------------------------------------------------


def under_way() -> Progress:
    progress = Progress("data", 0.0)
    progress.plan(6000, 2 * GIB, 3000, 417 * MIB)
    progress.done_files = 4102
    progress.move(406 * MIB, 0.5)
    progress.move(406 * MIB, 1.0)
    return progress


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (
            100,
            "data  ████████████░░░░░░░░  60%  1.2 of 2.0 GiB  812 MiB/s  1s left"
            "   4,102 of 6,000 files",
        ),
        (82, "data  ██████░░░░  60%  1.2 of 2.0 GiB  812 MiB/s  1s left   4,102 of 6,000 files"),
        (70, "data  60%  1.2 of 2.0 GiB  812 MiB/s  1s left   4,102 of 6,000 files"),
        (50, "data  60%  1.2 of 2.0 GiB  812 MiB/s  1s left"),
        (40, "data  60%  812 MiB/s  1s left"),
        (26, "60%  812 MiB/s  1s left"),
        (10, "60%"),
        (2, "60"),
    ],
)
def test_the_line_fits_every_width(columns: int, line: str) -> None:
    assert under_way().line(1.0, columns) == line


def test_wide_letters_count_twice() -> None:
    progress = Progress("数据", 0.0)
    progress.plan(1, 100, 0, 0)
    text = progress.line(1.0, 200)
    assert progress.line(1.0, len(text) + 2) == text
    assert progress.line(1.0, len(text) + 1) != text


def test_bytes_that_have_to_go_again_are_taken_back() -> None:
    progress = Progress("x", 0.0)
    progress.plan(1, 100, 0, 0)
    progress.move(60, 0.1)
    progress.move(-20, 0.2)
    assert progress.percent == 40


@pytest.mark.parametrize(
    ("moved", "word"), [(60, "60%  60 of 100 B  waiting for the server"), (100, "being stored")]
)
def test_a_stall_is_said(moved: int, word: str) -> None:
    progress = Progress("x", 0.0)
    progress.plan(1, 100, 0, 0)
    progress.heard(1.0)
    progress.move(moved, 1.0)
    assert "waiting" not in progress.line(3.9, 100)
    assert word in progress.line(4.0, 100)
    assert "left" not in progress.line(4.0, 100)


def test_the_rate_is_that_of_late() -> None:
    progress = Progress("x", 0.0)
    progress.plan(1, 10_000, 0, 0)
    progress.move(1000, 1.0)
    for second in range(10, 20):
        progress.move(10, float(second))
    assert 5 < progress.rate(19.0) < 20


@pytest.mark.parametrize(
    ("count", "beside", "text"),
    [
        (0, 0, "0 B"),
        (999, 0, "999 B"),
        (1000, 0, "1.0 KiB"),
        (36 << 10, 0, "36.0 KiB"),
        (819 * MIB, 2 * GIB, "0.8 GiB"),
        (9 << 10, 2 * GIB, "9.0 KiB"),
        (0, 2 * GIB, "0 B"),
        (5 << 50, 0, "5,120 TiB"),
    ],
)
def test_sizes_stand_in_the_unit_of_their_neighbour(count: int, beside: int, text: str) -> None:
    assert sizes.binary(count, beside) == text


# --- on a terminal ---------------------------------------------------------------------------

PROGRAM = """
import sys
from paddlecloud.cli.pfs import progress
from paddlecloud.cli.main import main
from paddlecloud.sdk.platform_calls import PlatformCalls
from paddlecloud.sdk.transfers.events import *
from tests.cli.scripted_files import *

clock = 100.0
class Time:
    def monotonic():
        return clock
progress.time = Time
from paddlecloud.cli.pfs import transfer
transfer.time = Time

class Files(ScriptedFiles):
    def _tell(self, on_event):
        global clock
        for seconds, event in SCRIPT:
            clock = 100.0 + seconds
            if isinstance(event, BaseException):
                raise event
            on_event(event)
        return self.summary

MIB = 1 << 20
"""


def on_a_terminal(script: str, *words: str, columns: int = 100, **env: str) -> tuple[int, str]:
    """What a terminal would have been sent, and the exit code."""
    import fcntl
    import struct
    import termios

    program = PROGRAM + textwrap.dedent(script) + f"\nsys.exit(main({list(words)!r}))\n"
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=Path(__file__).resolve().parents[2],
        env={**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8", **env},
    )
    os.close(theirs)
    got = b""
    try:
        while piece := os.read(ours, 65536):
            got += piece
    except OSError:
        pass  # the other side has closed
    finally:
        os.close(ours)
    return child.wait(PATIENCE_S), got.decode().replace("\r\n", "\n")


SLOW = """
    SCRIPT = [
        (0.0, Planned(6000, 2048 * MIB, 3600, 1024 * MIB)),
        (0.2, Moved(100 * MIB)),
        (0.5, Moved(100 * MIB)),
        (0.55, Moved(1 * MIB)),
        (0.7, FileDone("data/a", "/pfs/x", 5, 5, "sent")),
    ]
    files = Files()
    files.summary = summary(files=6000, size_bytes=2048 * MIB, sent_files=1, sent_bytes=201 * MIB,
        same_files=3600, same_bytes=1024 * MIB, seconds=1.0)
    PlatformCalls.files = files
"""
BARS = (
    "\rdata  ███████████░░░░░░░░░  59%  1.2 of 2.0 GiB  333 MiB/s  2s left   3,600 of 6,000 files"
    "\x1b[K"
)


def test_a_terminal_sees_one_line_redrawn(server: ScriptedServer) -> None:
    code, shown = on_a_terminal(SLOW, "pfs", "cp", "-r", "data", f"{HOME}/")
    assert code == 0
    drawn, _, rest = shown.rpartition("\r\x1b[K")
    assert rest == "6,000 files, 2.0 GiB: sent 0.2 GiB, already there 1.0 GiB, 1.0 s\n"
    assert drawn.startswith(BARS)
    assert drawn.count("\r") == 2  # not at 0.0 and 0.2 (too early), not at 0.55 (too soon)
    assert "3,601 of 6,000 files" in drawn
    assert "\n" not in drawn


def test_a_narrow_terminal_is_never_wrapped(server: ScriptedServer) -> None:
    _, shown = on_a_terminal(SLOW, "pfs", "cp", "-r", "data", f"{HOME}/", columns=30)
    drawn = shown.rpartition("\r\x1b[K")[0]
    lines = [line.removesuffix("\x1b[K") for line in drawn.split("\r") if line]
    assert lines
    assert all(len(line) < 30 for line in lines)


@pytest.mark.parametrize("env", [{"TERM": "dumb"}])
def test_a_dumb_terminal_sees_only_the_summary(server: ScriptedServer, env: dict[str, str]) -> None:
    _, shown = on_a_terminal(SLOW, "pfs", "cp", "-r", "data", f"{HOME}/", **env)
    assert shown == "6,000 files, 2.0 GiB: sent 0.2 GiB, already there 1.0 GiB, 1.0 s\n"


def test_ctrl_c_on_a_terminal_keeps_the_line(server: ScriptedServer) -> None:
    script = SLOW.replace('(0.7, FileDone("data/a", "/pfs/x", 5, 5, "sent"))', "(0.7, STOP)")
    script = "\n    STOP = KeyboardInterrupt()" + script
    code, shown = on_a_terminal(script, "pfs", "cp", "-r", "data", f"{HOME}/")
    assert code == 130
    assert shown == (BARS + "\nstopped at 59%. Run the same command again to go on from there.\n")


def test_a_quick_single_file_on_a_terminal_is_two_lines(server: ScriptedServer) -> None:
    script = """
        SCRIPT = [(0.0, Planned(1, 36, 0, 0)), (0.1, Moved(36)),
            (0.1, FileDone(HOME + "/m", "./m", 36, 36, "sent"))]
        files = Files()
        files.summary = summary(files=1, size_bytes=36, sent_files=1, sent_bytes=36)
        PlatformCalls.files = files
    """
    _, shown = on_a_terminal(script, "pfs", "cp", f"{HOME}/m", ".")
    assert shown == f"Downloading {HOME}/m ... Done\n1 file, 36 B: received 36 B, 0.0 s\n"


def test_a_terminal_is_told_while_nothing_is_heard(server: ScriptedServer) -> None:
    script = """
        import threading
        progress.time = transfer.time = __import__("time")
        drawn = threading.Event()
        real = progress.ProgressLine.refresh
        def refresh(line):
            real(line)
            if line._is_drawn:
                drawn.set()
        progress.ProgressLine.refresh = refresh
        class Slow(ScriptedFiles):
            def copy(self, sources, target, **how):
                assert drawn.wait(180)
                return self.summary
        PlatformCalls.files = Slow()
    """
    code, shown = on_a_terminal(script, "pfs", "cp", "-r", "data", f"{HOME}/")
    assert code == 0
    assert shown.startswith("\rdata  looking for what has changed ...\x1b[K")
    assert shown.endswith("\r\x1b[K0 files, 0 B: sent 0 B, 0.0 s\n")


def test_verbose_lines_and_the_bar_do_not_mix(server: ScriptedServer) -> None:
    _, shown = on_a_terminal(SLOW, "pfs", "cp", "-rv", "data", f"{HOME}/")
    assert "\r\x1b[Ksent data/a -> /pfs/x\n\rdata " in shown
