"""The runtime in front of a program: it ends as the program ends, and says why."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from paddlecloud.forms import start_command
from paddlecloud.runtime import delivery, paddlecloud_runtime
from tests import possible
from tests.patience import PATIENCE_S

FILE = Path(delivery.__file__).with_name(delivery.FILE_NAME)
SAVES = """
import signal, sys, time
def save(number, frame):
    time.sleep(0.3)
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("up", flush=True)
time.sleep(60)
"""


class InFront:
    """Programs started behind the runtime, with a file for words."""

    def __init__(self, folder: Path, python: str) -> None:
        self.message = folder / "termination-log"
        self.message.write_text("")
        self._front = [python, "-s", "-S", str(FILE), str(self.message)]

    @property
    def words(self) -> str:
        return self.message.read_text()

    def run(self, *command: str, **more: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._front, *command], capture_output=True, text=True, timeout=PATIENCE_S, **more
        )  # type: ignore[call-overload, no-any-return]

    def start(self, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen([*self._front, *command], stdout=subprocess.PIPE, text=True)


@pytest.fixture(params=["this python", "python3.6"])
def in_front(request: pytest.FixtureRequest, tmp_path: Path) -> InFront:
    python: str | None = sys.executable
    if request.param == "python3.6":
        possible.skip_unless_possible("python3.6")
        python = possible.old_python()
    assert python is not None
    return InFront(tmp_path, python)


@pytest.mark.parametrize("code", [0, 1, 3, 127, 255])
def test_ends_with_the_programs_code(in_front, code):
    assert in_front.run("sh", "-c", f"exit {code}").returncode == code
    assert in_front.words == ""


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGTERM"])
def test_tells_the_signal_a_program_died_of(in_front, name):
    number = getattr(signal, name)
    program = f"import os; os.kill(os.getpid(), {number:d})"
    assert in_front.run(sys.executable, "-c", program).returncode == 128 + number
    assert in_front.words.startswith(f"killed by {name}")


def test_gives_a_program_the_signals_python_takes_for_itself(in_front):
    done = in_front.run("sh", "-c", "kill -PIPE $$; echo survived")
    assert done.returncode == 128 + signal.SIGPIPE
    look = ("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
    alone = subprocess.run(look, capture_output=True, text=True).stdout
    assert in_front.run(*look).stdout == alone


def test_leaves_ignored_what_was_ignored_before_it(in_front):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        done = in_front.run("sh", "-c", "kill -HUP $$; echo survived")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (done.returncode, done.stdout) == (0, "survived\n")


def test_tells_the_exception_that_nobody_caught_and_where_it_was_raised(in_front, tmp_path):
    (tmp_path / "train.py").write_text("def f():\n    raise ValueError('no such column: é')\nf()\n")
    done = in_front.run(sys.executable, str(tmp_path / "train.py"))
    assert done.returncode == 1
    assert in_front.words == "ValueError: no such column: é (train.py:2)"
    assert done.stderr.startswith("Traceback (most recent call last):\n")
    assert done.stderr.endswith("ValueError: no such column: é\n")


def test_tells_the_last_line_where_there_was_no_exception(in_front):
    assert in_front.run("sh", "-c", "echo first >&2; echo second >&2; exit 4").returncode == 4
    assert in_front.words == "last line on stderr: second"


def test_leaves_the_programs_own_words(in_front):
    in_front.run("sh", "-c", f"echo mine > {in_front.message}; echo other >&2; exit 1")
    assert in_front.words == "mine\n"


def test_says_nothing_of_a_program_that_ended_well(in_front):
    assert in_front.run("sh", "-c", "echo warning >&2").stderr == "warning\n"
    assert in_front.words == ""


@pytest.mark.parametrize(("name", "code"), [("no-such-program", 127), ("/", 126)])
def test_says_when_a_program_cannot_be_started(in_front, name, code):
    done = in_front.run(name)
    assert done.returncode == code
    assert in_front.words.startswith(f"{start_command.CANNOT_START}{name}: ")
    assert in_front.words in done.stderr


def test_passes_stderr_on_whole_and_all_of_it(in_front):
    megabyte = "import os; [os.write(2, b'123456\\xff\\n' * 8192) for _ in range(16)]"
    done = in_front.run(sys.executable, "-c", megabyte, encoding="latin-1")
    assert done.stderr == "123456\xff\n" * 131072


def test_leaves_stdin_and_stdout_to_the_program(in_front):
    assert in_front.run("cat", input="hello\n").stdout == "hello\n"


@pytest.mark.parametrize("shells", [0, 1, 2], ids=["alone", "in-a-shell", "in-two-shells"])
def test_lets_a_program_save_when_it_is_told_to_end(in_front, tmp_path, shells):
    (tmp_path / "saves.py").write_text(SAVES)
    command = [sys.executable, str(tmp_path / "saves.py")]
    for _ in range(shells):
        # With something to do afterwards: a shell would otherwise become the program.
        command = ["sh", "-c", f"{' '.join(map(_quoted, command))}; true"]
    running = in_front.start(*command)
    assert running.stdout is not None
    assert running.stdout.readline() == "up\n"
    running.send_signal(signal.SIGTERM)
    assert running.stdout.read() == "saved\n"
    assert running.wait(PATIENCE_S) == (128 + signal.SIGTERM if shells else 0)


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def test_passes_other_signals_on(in_front):
    running = in_front.start("sh", "-c", "trap 'echo heard; exit 5' USR1; echo up; sleep 60 & wait")
    assert running.stdout is not None
    assert running.stdout.readline() == "up\n"
    running.send_signal(signal.SIGUSR1)
    assert running.stdout.readline() == "heard\n"
    assert running.wait(PATIENCE_S) == 5


def test_does_not_wait_for_what_a_program_left_behind(in_front):
    done = in_front.run("sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!")
    os.kill(int(done.stdout), signal.SIGKILL)
    assert done.returncode == 0


def test_does_not_wait_for_what_was_not_told_to_end(in_front, tmp_path):
    program = (
        "import subprocess, time; quiet = subprocess.DEVNULL\n"
        "left = subprocess.Popen(['sleep', '600'], stdout=quiet, stderr=quiet)\n"
        "print(left.pid, flush=True); time.sleep(600)"
    )
    running = in_front.start(sys.executable, "-c", program)
    assert running.stdout is not None
    left = int(running.stdout.readline())
    try:
        running.send_signal(signal.SIGTERM)
        assert running.wait(PATIENCE_S) == 128 + signal.SIGTERM
    finally:
        os.kill(left, signal.SIGKILL)


def test_reaps_orphans(in_front):
    orphans = "for i in 1 2 3; do sh -c 'sleep 0.05 &'; done; sleep 0.6; ps -o stat= --ppid $PPID"
    states = in_front.run("sh", "-c", orphans).stdout.split()
    assert states
    assert not [state for state in states if state.startswith("Z")]


def test_lets_the_program_import_the_library_after_its_own(in_front, tmp_path):
    show = "import os, paddlecloud_runtime; print(os.environ['PYTHONPATH'])"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = in_front.run(sys.executable, "-c", show, env=environment)
    assert done.stdout == f"{tmp_path}:{FILE.parent}\n"


def test_says_how_it_is_used():
    done = subprocess.run([sys.executable, str(FILE)], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: ")


def test_uses_the_same_words_as_the_platform():
    assert paddlecloud_runtime.CANNOT_START == start_command.CANNOT_START


@pytest.mark.parametrize(
    ("code", "said", "words"),
    [
        (0, "Traceback (most recent call last):\nE: x\n", ""),
        (1, "", ""),
        (3, "Traceback (most recent call last):\nE: x\nlast\n", "last line on stderr: last"),
        (1, 'Traceback (most recent call last):\n  File "a.py", line 3\n', "File"),
        (139, "", "killed by SIGSEGV (segmentation fault)"),
        (255, "", ""),
        (255, "gave up\n", "last line on stderr: gave up"),
        (1, "x" * 5000, "x"),
    ],
)
def test_finds_the_cause(code, said, words):
    found = paddlecloud_runtime.cause(code, said)
    assert words in found
    assert bool(found) == bool(words)
    assert len(found) <= 1000
    assert not re.search("\n", found)
