"""kill -9 of the platform loses nothing and starts nothing twice; a reboot leaves no lies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from paddlecloud.core.observed import EndCause, ReplicaState
from paddlecloud.engines.local import linux
from tests.engines.local.bench import (
    EVERY_WAY,
    HELD,
    Bench,
    a_mark,
    processes_with,
    until,
)

REPOSITORY = Path(__file__).parents[3]


def run_doomed(root: Path, way: str, **plan: object) -> str:
    """Run a platform until it is killed; what it said, `done` if its plan was through."""
    script = Path(__file__).with_name("doomed.py")
    done = subprocess.run(
        [sys.executable, str(script), str(root), way, json.dumps(plan)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout.strip()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "bench"
    path.mkdir()
    return path


@pytest.mark.slow
@pytest.mark.parametrize("way", EVERY_WAY)
def test_twenty_replicas_live_through_a_kill_and_are_adopted(make_bench, root, way: str):
    mark = a_mark()
    entries = [f"trap 'exit {n}' TERM; echo ready; sleep {mark} & wait" for n in range(20)]
    assert run_doomed(root, way, entries=entries, wait="running") == "done"
    bench = make_bench(way)
    keys = [bench.key(n) for n in range(20)]
    assert [bench.look(key).state for key in keys] == [ReplicaState.RUNNING] * 20
    for key in keys:
        bench.says(key, "ready")  # a shell that runs may not have come to its trap yet
    assert len(processes_with(mark)) >= 20
    for key in keys:
        bench.processes.stop(key, 600)
    assert [bench.exit_of(key).code for key in keys] == list(range(20))
    assert processes_with(mark) == []


@pytest.mark.parametrize("way", EVERY_WAY)
def test_how_they_ended_while_nobody_looked_is_known(make_bench, root, way: str):
    # They end when the platform is gone: the pipe from its standard output to us is closed.
    gate = root / "pfs" / "home" / "ann" / "jobs" / "x" / "gate"
    ends = [
        "exit 0",
        "exit 41",
        "kill -11 $$",
        "echo 'no data' > $PADDLECLOUD_TERMINATION_LOG; exit 1",
    ]
    entries = [f"while [ ! -e gate ]; do sleep 0.05; done; {end}" for end in ends]
    assert run_doomed(root, way, entries=entries, wait="running") == "done"
    gate.touch()
    locks = list((root / "state").glob("jobs/*/run-1/*/status"))
    assert len(locks) == len(ends)
    until(lambda: not any(linux.is_locked(path) for path in locks), "ending")
    bench = make_bench(way)
    exits = [bench.exit_of(bench.key(n)) for n in range(len(ends))]
    assert [(e.cause, e.code, e.signal) for e in exits] == [
        (EndCause.EXITED, 0, 0),
        (EndCause.EXITED, 41, 0),
        (EndCause.SIGNALED, 139, 11),
        (EndCause.EXITED, 1, 0),
    ]
    assert exits[3].message == "no data"
    ended = bench.look(bench.key(0))
    assert ended.started_at < ended.ended_at


@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_stop_goes_on_where_the_killed_platform_left_it(make_bench, root, way: str):
    mark = a_mark()
    stubborn = f"trap '' TERM; echo ready; sleep {mark}; sleep {mark}"
    said = run_doomed(root, way, entries=[stubborn], wait="running", stop_grace_s=0.5)
    assert said == "done"
    bench = make_bench(way)
    seen = bench.ended(bench.key(0))
    assert seen.stopping
    assert seen.exit.signal == signal.SIGKILL
    assert processes_with(mark) == []


@pytest.mark.slow
@pytest.mark.parametrize("way", HELD)
def test_a_kill_at_any_step_neither_starts_twice_nor_forgets(make_bench, tmp_path, way: str):
    """Kill at the first operation, at the second, …, until the plan is through before it."""
    step, is_through = 0, False
    while not is_through:
        step += 1
        root = tmp_path / f"step-{step}"
        root.mkdir()
        entry = "echo ran >> runs; exit 5"
        said = run_doomed(root, way, entries=[entry], wait="ended", die_at=step)
        is_through = said == "done"
        bench = make_bench(way, f"step-{step}")
        key = bench.key(0)
        bench.wait(lambda: (seen := bench.look(key)) is None or not seen.alive)  # noqa: B023
        if bench.look(key) is None:  # it never was: the engine asks again
            bench.processes.create(bench.launch(entry, key=key))
        assert bench.exit_of(key).code == 5, f"killed at step {step}"
        runs = (bench.home() / "jobs" / "x" / "runs").read_text()
        assert runs == "ran\n", f"killed at step {step}"
        assert not list((root / "state" / "live").iterdir())
    assert step > 10  # else the steps are not seen and this test proves nothing


@pytest.mark.parametrize("way", EVERY_WAY)
def test_what_was_not_told_to_go_ends_by_itself(make_bench, root, way: str):
    """Also if no platform is ever started again."""
    plan = {"entries": ["echo ran >> runs"], "wait": "ended", "die_after_spawning": True}
    os.kill(int(run_doomed(root, way, **plan)), signal.SIGCONT)
    (status,) = (root / "state").glob("jobs/*/run-1/*/status")
    until(lambda: not linux.is_locked(status), "ending")
    bench = make_bench(way)
    bench.wait(lambda: bench.look(bench.key(0)) is None)
    assert not (bench.home() / "jobs" / "x" / "runs").exists()


@pytest.mark.parametrize("way", EVERY_WAY)
def test_after_a_reboot_nothing_is_said_to_run(make_bench, monkeypatch, way: str):
    bench = make_bench(way)
    running = bench.start("sleep 1000")
    bench.running(running)
    over = bench.start("exit 3")
    bench.ended(over)
    pid = int((bench.attempt_dir(running) / "status").read_text().split()[3])
    bench.processes.close()
    monkeypatch.setattr(linux, "boot_id", lambda: "another-boot")
    bench.open()
    seen = bench.ended(running)
    assert (seen.state, seen.exit, seen.alive) == (ReplicaState.LOST, None, False)
    assert seen.started_at is not None
    assert bench.exit_of(over).code == 3
    os.kill(pid, signal.SIGKILL)  # this was no real reboot


def test_a_pid_that_now_belongs_to_another_is_left_alone(make_bench):
    """As after a crash, with the recorded pid taken over by an innocent process."""
    bench = make_bench("plain-without-cgroups")
    key = bench.start("exit 6")
    bench.ended(key)
    status = bench.attempt_dir(key) / "status"
    bench.processes.close()
    innocent = subprocess.Popen(["sleep", "1000"])
    try:
        lines = status.read_text().splitlines()
        words = lines[0].split()
        lines[0] = f"process {innocent.pid} {words[2]} {innocent.pid} {words[4]}"
        lines = [line for line in lines if not line.startswith("ended")]
        status.write_text("\n".join(lines) + "\n")
        (bench.attempt_dir(key) / "result.json").unlink()
        marker = f"{key.job_id}~1~trainer-0.a1"
        (bench.config.state_dir / "live" / marker).touch()
        bench.open()
        bench.processes.stop(key, 0)
        assert bench.exit_of(key).signal == signal.SIGKILL
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()


def test_a_directory_that_was_never_begun_is_forgotten(make_bench):
    bench = make_bench("plain-without-cgroups")
    key = bench.key(0)
    bench.processes.close()
    bench.attempt_dir(key).mkdir(parents=True)
    (bench.config.state_dir / "live" / f"{key.job_id}~1~trainer-0.a1").touch()
    bench.open()
    assert bench.look(key) is None
    bench.processes.create(bench.launch("exit 8", key=key))
    assert bench.exit_of(key).code == 8


def test_a_result_lost_in_a_power_cut_is_a_lost_replica(make_bench):
    bench = make_bench("plain-without-cgroups")
    key = bench.start("exit 8")
    bench.ended(key)
    (bench.attempt_dir(key) / "result.json").write_text("")
    bench.reopen()
    assert bench.look(key).state == ReplicaState.LOST


def test_closing_leaves_replicas_alive(make_bench):
    bench = make_bench("plain-without-cgroups")
    key = bench.start("echo ready; sleep 1000")
    bench.says(key, "ready")
    bench.reopen()
    assert bench.running(key).alive


def test_ended_attempts_are_read_from_disk_when_asked_for(make_bench):
    bench: Bench = make_bench("plain-without-cgroups")
    key = bench.start("echo words; exit 8")
    before = bench.ended(key)
    bench.reopen()
    assert bench.look(key) == before
    assert bench.log(key) == "words\n"
