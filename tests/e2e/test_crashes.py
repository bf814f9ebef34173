"""kill -9 of the platform at bad moments: nothing accepted is lost, nothing runs twice."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import threading
from pathlib import Path

import pytest

from paddlecloud.core.errors import ServerUnreachable, Unavailable
from tests.e2e.platform import Platform, processes_with

pytestmark = pytest.mark.slow

JOBS = 20
# Half end while nobody looks, each with its own code; half wait for a file.
WAITER = """
import os, sys, time
home = os.path.dirname(os.getcwd())
n = int(sys.argv[1])
print('ready', flush=True)
while not os.path.exists(os.path.join(home, 'go-%d' % n)):
    time.sleep(0.05)
sys.exit(n)
"""


def started_jobs(platform: Platform, count: int) -> list[dict]:
    folder = platform.package("waiter", main_py=WAITER)
    with platform.client() as client:
        jobs = []
        for n in range(count):
            form = {
                "name": f"waiter-{n}",
                "mode": "single",
                "cpu": "100m",
                "memory": "32Mi",
                "entry": f"python main.py {n}",
            }
            jobs.append(client.submit(form, package=str(folder)))
        for job in jobs:
            for record in client.follow_logs(job["id"]):
                if "ready" in record.get("data", ""):
                    break
    return jobs


def let_go(platform: Platform, n: int) -> None:
    (platform.state / "pfs" / "home" / "alice" / "jobs" / f"go-{n}").write_text("")


def test_kill_9_with_20_jobs_running_loses_none(breakable):
    jobs = started_jobs(breakable, JOBS)
    before = {job["id"]: set(processes_with(job["id"])) for job in jobs}
    assert all(before.values())
    breakable.kill_9()
    alive = {job["id"]: set(processes_with(job["id"])) for job in jobs}
    assert alive == before
    ends = [threading.Thread(target=let_go, args=(breakable, n)) for n in range(0, JOBS, 2)]
    for end in ends:
        end.start()
    for end in ends:
        end.join()
    breakable.up()
    with breakable.client() as client:
        for n, job in enumerate(jobs):
            if n % 2 == 0:
                done = client.wait(job["id"], timeout_s=60)
                assert done is not None
                code = (done["failure"] or {"code": 0})["code"]
                assert code == n, f"waiter-{n} ended with {code}"
        for n, job in enumerate(jobs):
            if n % 2:
                assert client.get(job["id"])["phase"] == "Running"
                assert set(processes_with(job["id"])) == before[job["id"]]
                let_go(breakable, n)
        for n, job in enumerate(jobs):
            if n % 2:
                done = client.wait(job["id"], timeout_s=60)
                assert done["failure"]["code"] == n


def test_an_accepted_submit_survives_kill_9_once_per_key(breakable):
    folder = breakable.package("quick", main_py="print('ran')\n")
    accepted: list[str] = []
    stop = threading.Event()

    def submit_for_ever() -> None:
        """Each key is tried until it is accepted: the answer may be lost, the job may not."""
        n = 0
        while not stop.is_set():
            n += 1
            form = {"name": f"quick-{n}", "mode": "single", "memory": "32Mi", "entry": "true"}
            while True:
                try:
                    with breakable.client() as client:
                        job = client.submit(form, package=str(folder), key=f"key-{n}")
                    break
                except (ServerUnreachable, Unavailable):
                    stop.wait(0.05)
            accepted.append(job["id"])

    submitter = threading.Thread(target=submit_for_ever)
    for _ in range(3):
        target = len(accepted) + 5
        if not submitter.is_alive():
            submitter.start()
        while len(accepted) < target:
            stop.wait(0.01)
        breakable.kill_9()
        breakable.up()
    stop.set()
    submitter.join(120)
    with breakable.client() as client:
        jobs = list(client.list_jobs("all"))
        ids = [job["id"] for job in jobs]
        assert sorted(accepted) == sorted(ids)
        names = [job["name"] for job in jobs]
        assert len(names) == len(set(names)), "a key made two jobs"
        for job_id in accepted:
            done = client.wait(job_id, timeout_s=60)
            assert done is not None
            assert done["phase"] == "Succeeded"


def test_after_a_reboot_no_job_is_running(breakable):
    jobs = started_jobs(breakable, 2)
    breakable.kill_9()
    # A reboot ends every process, and what was recorded names another boot.
    for pid in itertools.chain(*(processes_with(job["id"]) for job in jobs)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    records = [
        path
        for path in (breakable.state / "jobs").rglob("*")
        if path.is_file() and boot_id in path.read_text(errors="replace")
    ]
    assert len(records) == len(jobs)
    for record in records:
        record.write_text(record.read_text().replace(boot_id, "0" * len(boot_id)))
    breakable.up()
    with breakable.client() as client:
        for job in jobs:
            done = client.wait(job["id"], timeout_s=30)
            assert done is not None
            assert done["phase"] == "Failed"
            assert "was lost" in done["reason"]
