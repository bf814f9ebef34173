"""The session that the README shows, typed into a platform of its own and recorded.

Everything printed is what the commands printed, on a pseudo terminal: a new home, an account
called alice, a free port. Only waiting is cut short (`LONGEST_WAIT_S`), and the temporary home is
shown as ~.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path

from pictures.recording import COMMAND, OUTPUT, Recording

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from _platform import CLI, Platform  # noqa: E402

COLUMNS, ROWS = 96, 40
KEY_S = 0.02  # between two keys
BEFORE_TYPING_S = 0.7
LONGEST_WAIT_S = 0.7
PATIENCE_S = 120.0
EXAMPLES = ("wide_and_deep", "collective")


@dataclass(frozen=True)
class Step:
    command: str
    shows: str  # a pattern; a run without it is no picture
    # Ctrl-C is pressed once that was printed; otherwise the command ends by itself.
    is_interrupted: bool = False


SESSION = (
    Step(
        "paddlecloud submit -jobname wide-deep -parallelism 2 -pservers 2 --runtime paddle \\\n"
        '  -entry "python train.py" --follow ./wide_and_deep',
        shows=r"trainer-1 .*epoch 0 step 16 [^\n]*\n",
        is_interrupted=True,
    ),
    Step(
        "paddlecloud submit -jobname shapes --mode collective -parallelism 4 --runtime paddle \\\n"
        '  -entry "python train.py" ./collective',
        shows="job-",
    ),
    Step("paddlecloud explain shapes", shows="blocked by"),
    Step("paddlecloud logs -w trainer-0 -n 3 wide-deep", shows="epoch"),
)


class CannotRecord(Exception):
    """A command of the session did not do what the picture is to show."""


class Typist:
    """Types steps one after another into a platform and keeps what came of them.

    Keys take time in the recording only: nothing the platform does waits for them.
    """

    def __init__(self, platform: Platform) -> None:
        self.taken = Recording(COLUMNS, ROWS, int(time.time()))
        self._platform = platform
        self._began_s = time.monotonic()
        self._typed_s = 0.0

    def type(self, step: Step) -> None:
        if self.taken.events:
            self._add(OUTPUT, "\r\n")
        self._add(OUTPUT, "\x1b[2m$\x1b[0m ")
        self._typed_s += BEFORE_TYPING_S
        self._add(COMMAND, step.command)
        for key in step.command:
            self._typed_s += KEY_S
            self._add(OUTPUT, "\r\n\x1b[2m>\x1b[0m " if key == "\n" else f"\x1b[1m{key}\x1b[0m")
        self._add(OUTPUT, "\r\n")
        code, printed = self._run(step)
        if code != (130 if step.is_interrupted else 0) or not re.search(step.shows, printed):
            raise CannotRecord(f"{step.command}\nended with {code} and printed:\n{printed}")

    def _add(self, kind: str, text: str) -> None:
        self.taken.add(time.monotonic() - self._began_s + self._typed_s, kind, text)

    def _run(self, step: Step) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        env = self._platform.env | {
            "PATH": f"{CLI.parent}:{os.environ['PATH']}",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
        }
        env.pop("NO_COLOR", None)
        child = subprocess.Popen(
            ["bash", "-c", f"exec {step.command}"],
            cwd=self._platform.home,
            env=env,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            # So that Ctrl-C on this terminal reaches the command.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        try:
            printed = self._listen(step, ours)
            return child.wait(timeout=PATIENCE_S), printed
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
            os.close(ours)

    def _listen(self, step: Step, terminal: int) -> str:
        """What the command prints, to its end."""
        printed, is_to_interrupt = "", step.is_interrupted
        ends_s = time.monotonic() + PATIENCE_S
        while True:
            left_s = ends_s - time.monotonic()
            if left_s <= 0 or not select.select([terminal], [], [], left_s)[0]:
                raise CannotRecord(f"{step.command}\ndid not end; it printed:\n{printed}")
            try:
                text = os.read(terminal, 65536).decode()
            except OSError:  # nobody holds its other end any more
                return printed
            printed += text
            self._add(OUTPUT, text)
            if is_to_interrupt and re.search(step.shows, printed):
                is_to_interrupt = False
                os.write(terminal, b"\x03")


def record(runtime: Path) -> Recording:
    """Type the session; `runtime` is the Python environment with PaddlePaddle in it."""
    with Platform() as platform:
        platform.up()
        platform.ok("runtime", "add", "paddle", str(runtime / "bin" / "python"))
        # So that the second job has to wait, on any machine.
        platform.ok("account", "quota", "alice", "-cpu", "6")
        for name in EXAMPLES:
            shutil.copytree(
                ROOT / "examples" / name,
                platform.home / name,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        typist = Typist(platform)
        for step in SESSION:
            typist.type(step)
        homes = {str(platform.home), os.path.realpath(platform.home)}
    return _scrubbed(typist.taken, homes).without_waits(LONGEST_WAIT_S)


def _scrubbed(taken: Recording, homes: set[str]) -> Recording:
    clean = Recording(taken.columns, taken.rows, taken.recorded_at_s)
    for event in taken.events:
        text = event.text
        for home in homes:
            text = text.replace(home, "~")
        clean.add(event.at_s, event.kind, text)
    return clean
