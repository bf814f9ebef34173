"""Zero processes of an attempt survive it, whatever its program did to hide."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from paddlecloud.core.observed import EndCause
from tests.engines.local.bench import (
    EVERY_WAY,
    PLAIN,
    SANDBOXED,
    Bench,
    a_mark,
    processes_with,
    until,
)

# Each makes processes that carry the mark on their command line, says `ready`, and stays.
DAEMON = """
import os, sys, time
mark = sys.argv[1]
{preparation}
told, tell = os.pipe()  # closed when `sleep` begins
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve("/bin/sleep", ["sleep", mark], {environment})
    os._exit(0)
os.wait()
os.close(tell)
os.read(told, 1)
print("ready", flush=True)
"""
HIDERS = {
    "double forks into a session of its own": DAEMON.format(
        preparation="", environment="os.environ"
    ),
    "clears its environment as well": DAEMON.format(preparation="", environment="{}"),
    "ignores every signal it may": DAEMON.format(
        preparation=(
            "import signal\n"
            "for n in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:\n"
            "    signal.signal(n, signal.SIG_IGN)"
        ),
        environment="{}",
    ),
    "forks 500 children": """
import os, sys, time
mark = sys.argv[1]
for n in range(500):
    if os.fork() == 0:
        os.setsid() if n % 2 else None
        time.sleep(float(mark))
print("ready", flush=True)
""",
}
STORM = """
import os, sys, time, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
mark = sys.argv[1]
deadline = time.monotonic() + 60  # should it escape, it must not eat the machine for ever
def storm():
    while time.monotonic() < deadline:
        try:
            if os.fork() == 0:
                os.setsid()
            else:
                os._exit(0)
        except OSError:
            pass
for n in range(5):
    if os.fork() == 0:
        storm()
print("ready", flush=True)
"""
STORMPROOF = [case for case in EVERY_WAY if case.id != "plain-without-cgroups"]
STAY = "\ntime.sleep(1000)\n"


@pytest.fixture(params=HIDERS.values(), ids=list(HIDERS))
def hider(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("way", EVERY_WAY)
def test_nothing_is_left_after_a_stop(make_bench, way: str, hider: str):
    bench, mark = make_bench(way), a_mark()
    bench.put("hider.py", hider + STAY)
    key = bench.start(f"exec python hider.py {mark}")
    bench.says(key, "ready")
    assert processes_with(mark)
    bench.processes.stop(key, 0.2)
    assert bench.ended(key).stopping
    assert processes_with(mark) == []


@pytest.mark.parametrize("way", EVERY_WAY)
def test_nothing_is_left_after_the_program_ended_by_itself(make_bench, way: str, hider: str):
    bench, mark = make_bench(way), a_mark()
    bench.put("hider.py", hider + "os._exit(3)\n")
    end = bench.exit_of(bench.start(f"exec python hider.py {mark}"))
    assert (end.cause, end.code) == (EndCause.EXITED, 3)
    assert processes_with(mark) == []


@pytest.mark.slow
@pytest.mark.parametrize("way", STORMPROOF)
@pytest.mark.parametrize("then", [STAY, "os._exit(3)\n"], ids=["stopped", "ended"])
def test_nothing_is_left_of_a_program_that_forks_all_the_time(make_bench, way: str, then: str):
    """Where a namespace or a cgroup holds it; without either it can outrun us, as `notes` says."""
    bench, mark = make_bench(way, pids_limit=64), a_mark()
    bench.put("storm.py", STORM + then)
    key = bench.start(f"exec python storm.py {mark}")
    if then == STAY:
        bench.says(key, "ready")
        bench.processes.stop(key, 0.2)
    bench.ended(key)
    assert processes_with(mark) == []


@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_killed_shim_is_a_sigkill_and_leaves_nothing(make_bench, way: str):
    bench, mark = make_bench(way), a_mark()
    key = bench.start(f"sleep {mark} & setsid sleep {mark} & echo ready; wait")
    bench.says(key, "ready")
    shim = _shim_pid(bench, key)
    os.kill(shim, signal.SIGKILL)
    end = bench.exit_of(key)
    assert (end.cause, end.signal, end.code) == (EndCause.SIGNALED, signal.SIGKILL, 137)
    assert processes_with(mark) == []


@pytest.mark.parametrize("way", SANDBOXED)
def test_a_killed_bubblewrap_does_not_make_us_lose_its_sandbox(make_bench, way: str):
    bench, mark = make_bench(way), a_mark()
    key = bench.start(f"trap 'exit 9' TERM; sleep {mark} & echo ready; wait; sleep {mark}")
    bench.says(key, "ready")
    until(lambda: any("sleep" in _comm(pid) for pid in processes_with(mark)), "sleeping")
    status = (bench.attempt_dir(key) / "status").read_text()
    monitor = int(status.split()[1])
    os.kill(monitor, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{monitor}").exists(), "burying bubblewrap")
    bench.processes.stop(key, 600)
    end = bench.exit_of(key)
    assert (end.cause, end.code) == (EndCause.EXITED, 9)
    assert processes_with(mark) == []


@pytest.mark.parametrize("way", EVERY_WAY)
def test_work_is_saved_when_the_shell_dies_of_term_before_its_program(make_bench, way: str):
    """`cd x && python train.py`: sh dies at once, the program needs its grace."""
    bench = make_bench(way)
    bench.put(
        "train.py",
        "import signal, sys, time\n"
        "def save(*_):\n"
        "    time.sleep(0.5)\n"
        "    open('model', 'w').write('saved')\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save)\n"
        "print('ready', flush=True)\n"
        "time.sleep(1000)\n",
    )
    key = bench.start("python train.py; echo never")
    bench.says(key, "ready")
    bench.processes.stop(key, 600)
    bench.ended(key)
    assert (bench.home() / "jobs" / "x" / "model").read_text() == "saved"


@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_helper_in_another_session_does_not_use_up_the_grace(make_bench, way: str):
    bench, mark = make_bench(way), a_mark()
    key = bench.start(f"setsid sleep {mark} & echo ready; exec sleep {mark}")
    bench.says(key, "ready")
    bench.processes.stop(key, 600)  # the test would take ten minutes
    assert bench.exit_of(key).signal == signal.SIGTERM
    assert processes_with(mark) == []


@pytest.mark.parametrize("way", PLAIN)
def test_a_stopped_shim_is_killed_all_the_same(make_bench, way: str):
    bench, mark = make_bench(way), a_mark()
    key = bench.start(f"sleep {mark} & echo ready; wait")
    bench.says(key, "ready")
    os.kill(_shim_pid(bench, key), signal.SIGSTOP)
    bench.processes.stop(key, 0.1)
    assert bench.exit_of(key).signal == signal.SIGKILL
    assert processes_with(mark) == []


@pytest.fixture
def stuck_bwrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bubblewrap that never gets its sandbox done; the mark of its two processes."""
    mark, real = a_mark(), shutil.which("bwrap")
    script = tmp_path / "bin" / "bwrap"
    script.parent.mkdir()
    script.write_text(
        f'#!/bin/sh\n[ "$1" = --args ] || exec {real} "$@"\n'
        f"setsid sleep {mark} &\nexec sleep {mark}\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    return mark


@pytest.mark.parametrize("way", SANDBOXED)
def test_a_sandbox_that_does_not_get_done_can_be_stopped(make_bench, stuck_bwrap: str, way: str):
    bench: Bench = make_bench(way)
    key = bench.start("true")
    until(lambda: len(processes_with(stuck_bwrap)) == 2, "getting stuck")
    bench.processes.stop(key, 0.1)
    assert bench.exit_of(key).cause == EndCause.START_FAILED
    assert processes_with(stuck_bwrap) == []


@pytest.mark.parametrize("way", SANDBOXED)
def test_half_a_sandbox_is_not_waited_for(make_bench, stuck_bwrap: str, way: str):
    """bubblewrap was killed before its child could go on: nobody will ever tell it to."""
    bench: Bench = make_bench(way)
    key = bench.start("true")
    until(lambda: len(processes_with(stuck_bwrap)) == 2, "getting stuck")
    os.kill(bench.processes._keeper.known.find(key).process.pid, signal.SIGKILL)
    assert bench.exit_of(key).cause == EndCause.START_FAILED
    assert processes_with(stuck_bwrap) == []


@pytest.mark.parametrize("way", SANDBOXED)
def test_half_a_sandbox_of_a_predecessor_is_forgotten(make_bench, stuck_bwrap: str, way: str):
    bench: Bench = make_bench(way)
    key = bench.start("true")
    until(lambda: len(processes_with(stuck_bwrap)) == 2, "getting stuck")
    pid = bench.processes._keeper.known.find(key).process.pid
    bench.processes.close()
    os.kill(pid, signal.SIGKILL)
    bench.open()
    bench.wait(lambda: bench.look(key) is None)
    assert processes_with(stuck_bwrap) == []


@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_shim_sleeps_while_nothing_happens(make_bench, way: str):
    """After children, signals and output by name, for each of which it had to wake up."""
    bench: Bench = make_bench(way)
    key = bench.start(
        "trap 'echo hup' HUP; (setsid true; echo one > /dev/stderr) 2>/dev/null; echo ready;"
        "while :; do sleep 0.05; done"
    )
    bench.says(key, "ready")
    shim = _shim_pid(bench, key)
    os.kill(shim, signal.SIGHUP)
    bench.says(key, "hup")

    def wakings() -> list[str]:
        status = Path(f"/proc/{shim}/status").read_text().splitlines()
        return [line for line in status if "ctxt_switches" in line]

    seen: list[list[str]] = []

    def is_quiet() -> bool:
        seen.append(wakings())
        return len(seen) > 60 and all(line == seen[-1] for line in seen[-60:])

    until(is_quiet, "sleeping")


def test_stopping_one_replica_leaves_the_others_alone(make_bench):
    bench = make_bench("plain-without-cgroups")
    keys = [bench.start("echo ready; sleep 1000") for _ in range(3)]
    for key in keys:
        bench.says(key, "ready")
    bench.processes.stop(keys[1], 0)
    bench.ended(keys[1])
    assert [bench.look(key).alive for key in keys] == [True, False, True]


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


def _shim_pid(bench: Bench, key) -> int:
    """From the `process` line of the status file."""
    return int((bench.attempt_dir(key) / "status").read_text().split()[3])
