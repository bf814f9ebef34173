"""A job's whole life through the real parts: submit, watch, fail, kill, re-run."""

from __future__ import annotations

import json

import pytest

from paddlecloud.core.errors import Conflict, InvalidInput, NotFound, PaddleCloudError
from tests.e2e.platform import Platform, processes_with


def submit(platform: Platform, name: str, entry: str, *flags: str) -> str:
    folder = platform.package(name, main_py="print('hello')\n")
    platform.ok(
        "submit", "-jobname", name, "--mode", "single", "-entry", entry, *flags, str(folder)
    )
    return name


def ended(platform: Platform, name: str) -> dict:
    with platform.client() as client:
        job = client.wait(name, timeout_s=60)
    assert job is not None, f"{name} did not end"
    return job


def test_runs_a_job_and_keeps_its_log_and_output(platform):
    folder = platform.package(
        "hello",
        train_py="import os\nprint('rank', os.environ['PADDLE_TRAINER_ID'])\n"
        "open(os.environ['OUTPUT_PATH'] + '/model', 'w').write('weights')\n",
    )
    out = platform.ok(
        "submit",
        "-jobname",
        "hello",
        "--mode",
        "single",
        "-entry",
        "python train.py",
        "--follow",
        str(folder),
    )
    assert "Collecting package ... Done" in out
    assert "Uploading package ... Done" in out
    assert "Starting job hello ... Done" in out
    assert "rank 0" in out
    assert ended(platform, "hello")["phase"] == "Succeeded"
    assert "rank 0" in platform.ok("logs", "hello")
    platform.ok("file", "get", "/pfs/local/home/alice/jobs/hello/output/model", str(folder / "m"))
    assert (folder / "m").read_text() == "weights"


def test_collective_trainers_each_know_their_rank(platform):
    folder = platform.package(
        "ranks",
        train_py="import os\nprint('I am', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'],"
        " os.environ['POD_IP'], open('/trainer_count').read())\n",
    )
    platform.ok(
        "submit",
        "-jobname",
        "ranks",
        "--mode",
        "collective",
        "-p",
        "3",
        "-memory",
        "64Mi",
        "-entry",
        "python train.py",
        "--wait",
        str(folder),
    )
    logs = [platform.ok("logs", "-w", f"ranks-trainer-{i}", "ranks") for i in range(3)]
    assert all(f"I am {i} of 3" in text for i, text in enumerate(logs))
    assert len({text.split()[5] for text in logs}) == 3


def test_stops_parameter_servers_when_the_trainers_are_done(platform):
    folder = platform.package(
        "ps",
        train_py="import os, time\nprint(os.environ['TRAINING_ROLE'], flush=True)\n"
        "if os.environ['TRAINING_ROLE'] == 'PSERVER': time.sleep(1000)\n",
    )
    platform.ok(
        "submit",
        "-jobname",
        "ps",
        "-p",
        "2",
        "-pservers",
        "2",
        "-memory",
        "64Mi",
        "-psmemory",
        "64Mi",
        "-cpu",
        "500m",
        "-entry",
        "python train.py",
        "--wait",
        str(folder),
    )
    job = ended(platform, "ps")
    assert job["phase"] == "Succeeded"
    assert job["roles"]["pserver"]["wanted"] == 2
    assert processes_with(job["id"]) == []
    workers = platform.ok("get", "workers", "ps").splitlines()[1:]
    shown = {line.split()[0]: line.split()[1] for line in workers}
    assert shown == {
        "ps-trainer-0": "Succeeded",
        "ps-trainer-1": "Succeeded",
        "ps-pserver-0": "Stopped",
        "ps-pserver-1": "Stopped",
    }


@pytest.mark.parametrize(
    ("entry", "cause", "code", "signal"),
    [
        ("exit 3", "exited", 3, 0),
        ("kill -SEGV $$", "signaled", 139, 11),
        ("no-such-program", "exited", 127, 0),
    ],
)
def test_reports_how_a_replica_ended_exactly(platform, entry, cause, code, signal):
    name = submit(platform, f"end-{code}", entry)
    failure = ended(platform, name)["failure"]
    assert (failure["cause"], failure["code"], failure["signal"]) == (cause, code, signal)


def test_shows_the_termination_message(platform):
    name = submit(platform, "message", "echo 'disk on fire' > /dev/termination-log; exit 4")
    assert ended(platform, name)["failure"]["message"] == "disk on fire"


@pytest.mark.needs("cgroup")
def test_says_out_of_memory_when_it_was(platform):
    folder = platform.package("oom", main_py="x = bytearray(300 << 20)\nprint(len(x))\n")
    platform.ok(
        "submit",
        "-jobname",
        "oom",
        "--mode",
        "single",
        "-memory",
        "100Mi",
        "-entry",
        "python main.py",
        str(folder),
    )
    job = ended(platform, "oom")
    assert job["failure"]["cause"] == "out_of_memory"
    assert "100Mi" in job["failure"]["message"]


def test_restarts_within_the_budget_and_by_exit_code(platform):
    name = submit(platform, "again", "exit 42", "--max-restarts", "2", "--restart-exit-codes", "42")
    job = ended(platform, name)
    assert (job["phase"], job["restarts"]) == ("Failed", 2)
    with platform.client() as client:
        assert [r["attempt"] for r in client.replicas(name)] == [1, 2, 3]
    name = submit(platform, "once", "exit 41", "--max-restarts", "2", "--restart-exit-codes", "42")
    assert ended(platform, name)["restarts"] == 0


def test_ends_a_job_at_its_wall_time(platform):
    name = submit(platform, "wall", "sleep 1000", "--wall-time", "1s")
    assert ended(platform, name)["phase"] == "TimedOut"


HOSTILE = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.execve('/bin/sleep', ['sleep', '1000'], {})
    os._exit(0)
children = [subprocess.Popen(['sleep', '1000']) for _ in range(500)]
print('all are there', flush=True)
time.sleep(1000)
"""


@pytest.mark.slow
def test_leaves_no_process_of_a_hostile_job(platform):
    folder = platform.package("hostile", main_py=HOSTILE)
    platform.ok(
        "submit",
        "-jobname",
        "hostile",
        "--mode",
        "single",
        "-entry",
        "python main.py",
        "--grace",
        "1",
        str(folder),
    )
    with platform.client() as client:
        for record in client.follow_logs("hostile"):
            if "all are there" in record.get("data", ""):
                break
        job_id = client.get("hostile")["id"]
    assert processes_with(job_id)
    platform.ok("kill", "hostile")
    assert ended(platform, "hostile")["phase"] == "Killed"
    assert processes_with(job_id) == []


def test_kill_ends_a_job_and_rm_removes_it(platform):
    name = submit(platform, "victim", "sleep 1000")
    platform.ok("kill", name)
    assert ended(platform, name)["phase"] == "Killed"
    platform.ok("kill", "-rm", name)
    with platform.client() as client, pytest.raises(NotFound):
        client.get(name)


def test_rerun_runs_the_very_same_bytes(platform):
    folder = platform.package("exact", main_py="print('first')\n")
    args = ("submit", "-jobname", "exact", "--mode", "single", "-entry", "python main.py")
    platform.ok(*args, "--wait", str(folder))
    platform.ok("rerun", "exact")
    job = ended(platform, "exact")
    assert (job["run"], job["phase"]) == (2, "Succeeded")
    assert "first" in platform.ok("logs", "exact")
    with platform.client() as client:
        assert [run["run"] for run in client.runs("exact")] == [1, 2]


def test_refuses_a_second_live_job_of_one_name(platform):
    name = submit(platform, "twice", "sleep 1000")
    done = platform.run(
        "submit",
        "-jobname",
        name,
        "--mode",
        "single",
        "-entry",
        "true",
        str(platform.package("twice")),
    )
    assert done.returncode == Conflict.exit_code
    assert "twice" in done.stderr
    platform.ok("kill", name)
    ended(platform, name)


def test_refuses_what_can_never_fit_with_the_number(platform):
    folder = platform.package("huge", main_py="")
    done = platform.run(
        "submit",
        "-jobname",
        "huge",
        "--mode",
        "single",
        "-memory",
        "900Ti",
        "-entry",
        "true",
        str(folder),
    )
    assert done.returncode == PaddleCloudError.exit_code
    assert "900Ti" in done.stderr


def test_reports_all_faults_of_a_command_line_together(platform):
    done = platform.run("submit", "-memory", "10GB", "-parallelism", "two", "./pkg")
    assert done.returncode == InvalidInput.exit_code
    assert "2 problems, nothing was submitted" in done.stderr
    assert "unknown suffix GB; write 10Gi (binary) or 10G (decimal)" in done.stderr
    assert "-parallelism two" in done.stderr


def test_explains_a_job_that_waits_and_starts_it_when_there_is_room(platform):
    total = platform.json("status")["capacity"]["cpu"]
    holder = submit(platform, "holder", "sleep 1000", "-cpu", str(total))
    waiting = submit(platform, "waiting", "true", "-cpu", "1")
    text = platform.ok("explain", waiting)
    assert "waiting is Queued (position 1 of 1)" in text
    assert "holder" in text
    platform.ok("kill", holder)
    assert ended(platform, waiting)["phase"] == "Succeeded"


def test_starts_a_range_at_the_largest_size_that_fits_and_counts_only_that(platform):
    total = int(platform.json("status")["capacity"]["cpu"])
    holder = submit(platform, "most", "sleep 1000", "-cpu", str(total - 2))
    flags = ("--mode", "collective", "-p", "4", "--min", "1", "--max", "4", "-memory", "64Mi")
    folder = str(platform.package("range", main_py=""))
    entry = "sleep 1000"
    platform.ok("submit", "-jobname", "range", *flags, "-entry", entry, folder)
    with platform.client() as client:
        assert client.wait("range", "running", timeout_s=60)
        job = client.get("range")
        assert (job["granted"], job["cpu"], job["memory"]) == (2, "2", "128Mi")
        assert client.quota()["used"]["cpu"] == str(total)
        # It stays at that size when there is room for more, and asks for all of it another time.
        platform.ok("kill", "--wait", holder)
        assert client.get("range")["granted"] == 2
        platform.ok("kill", "--wait", "range")
        assert client.rerun("range")["cpu"] == "4"
        platform.ok("kill", "--wait", "range")


def test_describe_says_why_it_failed(platform):
    folder = platform.package("sad", main_py="open('/pfs/local/home/alice/nothing.gz')\n")
    platform.run(
        "submit",
        "-jobname",
        "sad",
        "--mode",
        "single",
        "-entry",
        "python main.py",
        "--wait",
        str(folder),
    )
    text = platform.ok("describe", "sad")
    assert "FileNotFoundError" in text
    assert "trainer-0" in text


def test_a_dry_run_leaves_nothing_behind(platform):
    folder = platform.package("dry", main_py="")
    out = platform.ok(
        "submit",
        "-jobname",
        "dry",
        "--mode",
        "collective",
        "-p",
        "2",
        "-entry",
        "true",
        "--dry-run=server",
        "-o",
        "json",
        str(folder),
    )
    assert json.loads(out)["effective"]["trainers"] == 2
    with platform.client() as client, pytest.raises(NotFound):
        client.get("dry")
