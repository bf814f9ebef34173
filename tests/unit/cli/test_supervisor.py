"""When a part of the platform is started again, and what is said of its end."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from paddlecloud.cli import supervisor
from paddlecloud.cli.supervisor import how_it_ended, wait_before_s
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.needs("linux")


def test_waits_double_up_to_30_s() -> None:
    waits_s, wait_s = [], 0.0
    for _ in range(10):
        wait_s = wait_before_s(wait_s, healthy_s=1.0)
        waits_s.append(wait_s)
    assert waits_s == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


@pytest.mark.parametrize(("healthy_s", "expected_s"), [(59.9, 12.8), (60.0, 0.2)])
def test_a_minute_of_health_forgets_the_wait(healthy_s: float, expected_s: float) -> None:
    assert wait_before_s(6.4, healthy_s) == expected_s


@pytest.mark.parametrize(
    ("status", "words"),
    [(9, "killed by signal 9"), (5 << 8, "exited with code 5"), (0, "exited with code 0")],
)
def test_says_how_it_ended(status: int, words: str) -> None:
    assert how_it_ended(status) == words


# A part says that it is ready by a file, with its pid and its port, and then does as it is told.
PART = """
import json, os, signal, sys, time
run_file, port = sys.argv[1], sys.argv[-1]
signal.signal(signal.SIGTERM, {term})
with open(run_file + ".part", "w") as file:
    json.dump({{"pid": os.getpid(), "port": 7}}, file)
with open(run_file + ".said", "a") as file:
    file.write(" ".join(sys.argv[2:]) + ";")
os.replace(run_file + ".part", run_file)
time.sleep(600)
"""
FAILING = "import sys; print('error: no such luck', file=sys.stderr); sys.exit(3)"


class Supervised:
    """The real supervisor over scripted parts."""

    def __init__(self, state: Path, **programs: str) -> None:
        self.run_dir = state / "run"
        self.run_dir.mkdir()
        parts = [
            {
                "name": name,
                "command": [sys.executable, "-I", "-S", "-c", program, self.run_file(name)],
                "run_file": self.run_file(name),
                "log": str(self.run_dir / f"{name}.log"),
            }
            for name, program in programs.items()
        ]
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__, str(state)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(parts).encode())
        self.process.stdin.close()

    def run_file(self, name: str) -> str:
        return str(self.run_dir / f"{name}.json")

    def wait_ready(self, **restarts: int) -> dict[str, int]:
        """The pids of all parts, once they are ready and were started again so many times."""
        while True:
            assert self.process.poll() is None
            try:
                facts = json.loads((self.run_dir / "supervisor.json").read_text())
            except FileNotFoundError:
                continue
            parts = facts["parts"]
            if facts["is_ready"] and all(
                parts[name]["restarts"] == count for name, count in restarts.items()
            ):
                return {name: part["pid"] for name, part in parts.items()}

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> tuple[int, str]:
        """Its code, and all it said."""
        assert self.process.stderr is not None
        said = self.process.stderr.read().decode()
        return self.process.wait(PATIENCE_S), said


def wait_for_end(watch: int) -> None:
    assert select.select([watch], [], [], 30)[0]
    os.close(watch)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


POLITE = PART.format(term="lambda number, frame: sys.exit(0)")
STUBBORN = PART.format(term="signal.SIG_IGN")


def test_starts_again_the_one_that_died_and_leaves_the_other(tmp_path: Path) -> None:
    run = Supervised(tmp_path, one=POLITE, two=POLITE)
    before = run.wait_ready(one=0, two=0)
    os.kill(before["one"], signal.SIGKILL)
    after = run.wait_ready(one=1, two=0)
    assert after["two"] == before["two"]
    assert after["one"] != before["one"]
    # The second start is at the port of the first.
    assert (tmp_path / "run" / "one.json.said").read_text() == ";--port 7;"
    code, said = run.end()
    assert code == 0
    assert "the one ended: killed by signal 9" in said
    assert not any(is_alive(pid) for pid in after.values())
    assert not (tmp_path / "run" / "supervisor.json").exists()


def test_a_part_that_leaves_by_itself_is_started_again_too(tmp_path: Path) -> None:
    run = Supervised(tmp_path, one=POLITE)
    os.kill(run.wait_ready(one=0)["one"], signal.SIGTERM)
    run.wait_ready(one=1)
    assert "the one ended: exited with code 0" in run.end()[1]


def test_a_first_start_that_fails_ends_all_with_its_code(tmp_path: Path) -> None:
    run = Supervised(tmp_path, one=POLITE, two=FAILING)
    code, said = run.ended()
    assert code == 3
    assert "the two did not start: exited with code 3" in said
    assert (tmp_path / "run" / "two.log").read_text() == "error: no such luck\n"


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    part = {"name": "x", "command": [str(tmp_path / "none")], "run_file": str(tmp_path / "x.json")}
    done = subprocess.run(
        [sys.executable, "-I", "-S", supervisor.__file__, str(tmp_path)],
        input=json.dumps([part]).encode(),
        capture_output=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 126
    assert b"error: cannot start the x: " in done.stderr


def test_kills_what_does_not_end(tmp_path: Path) -> None:
    run = Supervised(tmp_path, one=STUBBORN, two=POLITE)
    pids = run.wait_ready()
    polite = os.pidfd_open(pids["two"])
    run.process.send_signal(signal.SIGTERM)
    wait_for_end(polite)
    code, said = run.end(signal.SIGINT)  # Ctrl-C while it waits: no more patience
    assert code == 0
    assert "killed what did not end: one" in said
    assert not any(is_alive(pid) for pid in pids.values())


def test_its_parts_die_with_it(tmp_path: Path) -> None:
    run = Supervised(tmp_path, one=STUBBORN)
    watch = os.pidfd_open(run.wait_ready()["one"])
    run.end(signal.SIGKILL)
    wait_for_end(watch)


@pytest.mark.slow
def test_a_second_one_on_the_same_state_is_refused(tmp_path: Path) -> None:
    run = Supervised(tmp_path, one=POLITE)
    run.wait_ready()
    done = subprocess.run(
        [sys.executable, "-I", "-S", supervisor.__file__, str(tmp_path)],
        input=b"[]",
        capture_output=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 5
    assert b"error: a platform already runs" in done.stderr
    run.end()
