"""`make test` itself: what it counts, what it tells, and that it finds whoever is in the way."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

import suites  # noqa: E402
from suites import Part, Run, Suite  # noqa: E402
from user_platform import UserPlatform  # noqa: E402

from tests.patience import PATIENCE_S  # noqa: E402

FOUR = """
import pytest

def test_passes(): pass
def test_fails(): assert [1] == [2]
def test_is_skipped(): pytest.skip("not possible here: gpu (a machine with a GPU)")

@pytest.fixture
def broken():
    yield
    raise OSError("in the clean-up")

def test_fails_afterwards(broken): pass
"""


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "output"
    folder.mkdir()
    monkeypatch.setattr(suites, "OUTPUT", folder)
    monkeypatch.setattr(suites, "ROOT", tmp_path)
    (tmp_path / "conftest.py").write_text(
        "from pathlib import Path\n"
        "from tests.outcomes import Recorder\n"
        "def pytest_addoption(parser): parser.addoption('--outcomes', type=Path)\n"
        "def pytest_configure(config):\n"
        "    if not hasattr(config, 'workerinput'):\n"
        "        config.pluginmanager.register(Recorder(config.getoption('--outcomes')))\n"
    )
    return folder


def run_suite(folder: Path, text: str, *words: str) -> tuple[Run, Suite]:
    (folder / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, "."]
    suite = Suite("a part", command)
    run = Run(suites.OUTPUT)
    run.start(suite, {**os.environ, "PYTHONPATH": str(ROOT)})
    run.finish([suite])
    return run, suite


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_counts_every_outcome_once(
    output: Path, tmp_path: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    run, suite = run_suite(tmp_path, FOUR, *words)
    assert (suite.collected, suite.code) == (4, 1)
    assert [suite.count(word) for word in ("passed", "failed", "skipped")] == [1, 2, 1]
    said = capsys.readouterr().out
    assert "FAILED test_it.py::test_fails\n" in said
    assert "a part: 1 passed, 2 failed, 1 skipped in 0:" in said
    failure = suite.failure()
    assert "assert [1] == [2]" in failure
    assert "in the clean-up" in failure
    text = suites.summary(run.parts, [], 61.0)
    assert text.splitlines()[-1] == "total: 1 passed, 2 failed, 1 skipped"
    assert "skipped 1, not possible here: gpu (a machine with a GPU):\n  test_it.py (1)\n" in text
    assert "failed:\n  test_it.py::test_fails" in text.replace("_afterwards", "")


@pytest.mark.slow
def test_a_part_that_does_not_come_to_its_tests_has_failed(output: Path, tmp_path: Path) -> None:
    run, suite = run_suite(tmp_path, "import nothing_of_that_name\n")
    assert run.failed == [suite]
    assert "nothing_of_that_name" in suite.failure()


def test_begins_nothing_after_a_check_that_failed(
    output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(output)
    parts = [
        Part("lint", [sys.executable, "-c", "print('not formatted'); raise SystemExit(2)"]),
        Part("types", ["true"]),
    ]
    assert not run.one_after_another(parts, dict(os.environ))
    assert [part.name for part in run.parts] == ["lint"]
    assert suites._report(run, []) == 1
    assert "not formatted" in capsys.readouterr().out


@pytest.mark.slow
def test_an_interrupted_part_cleans_up(output: Path, tmp_path: Path) -> None:
    text = (
        "import pathlib, pytest, subprocess, time\n"
        "@pytest.fixture\n"
        "def server():\n"
        "    left = subprocess.Popen(['sleep', '600'])\n"
        "    pathlib.Path('left').write_text(str(left.pid))\n"
        "    yield\n"
        "    pathlib.Path('ended').touch()\n"
        "def test_waits(server):\n"
        "    pathlib.Path('begun').touch()\n"
        "    time.sleep(600)\n"
    )
    (tmp_path / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    suite, run = Suite("a part", command), Run(output)
    run.start(suite, {**os.environ, "PYTHONPATH": str(ROOT)})
    while not (tmp_path / "begun").exists():
        assert suite.process is not None
        assert suite.process.poll() is None
    run.interrupt()
    assert not suite.is_running
    assert (tmp_path / "ended").exists()
    left = Path("/proc", (tmp_path / "left").read_text(), "cmdline")
    deadline_s = time.monotonic() + PATIENCE_S
    while left.exists() and left.read_bytes():  # a zombie has none
        assert time.monotonic() < deadline_s


@pytest.mark.parametrize(
    ("lacking", "last_s", "said"),
    [
        ([], 1230.0, "make test: the tests take about 20 minutes here, as the last time"),
        ([], 0.0, "make test: the tests take about 20 minutes on 2 cores; this machine has "),
        (
            ["venv", "cluster-programs"],
            0.0,
            "make test: first it makes a virtual environment (about a minute), Kubernetes from "
            "source (about 10 minutes); then the tests take about 20 minutes on 2 cores; ",
        ),
    ],
)
def test_says_what_to_expect(lacking: list[str], last_s: float, said: str) -> None:
    assert suites.expectation(lacking, last_s).startswith(said)


# --- the platform of the user --------------------------------------------------------------------


@pytest.fixture(scope="module")
def user() -> Iterator[UserPlatform]:
    made = UserPlatform(Path(sys.executable).with_name("paddlecloud"), port=0)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.mark.e2e
@pytest.mark.needs("linux")
def test_a_platform_nobody_touched_has_no_damage(user: UserPlatform) -> None:
    assert user.damage() == []


@pytest.mark.e2e
@pytest.mark.needs("linux")
def test_finds_what_was_done_to_it(user: UserPlatform) -> None:
    (user.home / ".left-behind").touch()
    with (user.home / ".paddle" / "config").open("a") as config:
        config.write("# touched\n")
    user.command("rerun", "--wait", "ended")
    damaged = [line.partition(" of the user: ")[0] for line in user.damage()]
    assert damaged == ["the jobs", "the configuration", "the home"]
    pid = json.loads(user.command("status", "-o", "json"))["pid"]
    os.kill(pid, signal.SIGKILL)  # its supervisor starts another
    while user.damage()[0].startswith(("the platform", "the jobs")):
        pass
    assert user.damage()[0].startswith(f"the server of the user: was {pid}, is ")
