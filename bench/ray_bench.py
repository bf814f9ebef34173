"""What users wait for, beside Ray and kubectl: a submitted job that runs, and a list of jobs.

    ray_bench.py [--jobs 20] [--lists 15] [--no-kubectl]

The same job through both SDKs in turns, from the call until the client has seen it running, and
until its command has begun, which the command itself says. Then `paddlecloud get jobs`, `ray list
jobs` and `kubectl get pods` with as many rows, in turns, exec to exit. Ray runs as `ray start
--head` starts it, at the version of constraints-peers.txt; kubectl is built alone (`_kubectl.sh`)
and asks a real API server (`make cluster-programs`). About three minutes on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import _cluster
import _environments
from _children import Mark, end, free_port, wait_for_port
from _platform import CLI, Platform
from _report import CannotMeasure, Report, median, percentile, run

from paddlecloud.kube import kubeconfig
from paddlecloud.kube.client import Client, collection

HERE = Path(__file__).resolve().parent
PACKAGES = ("ray[default]",)
# The first act of the job is to say when it began.
ENTRY = "date +%s.%N; sleep 0.4"
SMALL = {"parallelism": 1, "pservers": 0, "mode": "single", "cpu": "100m", "memory": "32Mi"}
WARM_UP = 3
START_TIMEOUT_S = 120
COMMAND_TIMEOUT_S = 120
NODES = 10


class Times:
    """Milliseconds from the call, of one contender's jobs."""

    def __init__(self) -> None:
        self.answered: list[float] = []
        self.began: list[float] = []
        self.seen: list[float] = []

    def add(self, called_s: float, answered_s: float, began_s: float, seen_s: float) -> None:
        self.answered.append((answered_s - called_s) * 1e3)
        self.began.append((began_s - called_s) * 1e3)
        self.seen.append((seen_s - called_s) * 1e3)


def _began_s(printed: str) -> float:
    """When a job's command began, by what it printed; Ray prints lines of its own around it."""
    found = re.search(r"^\d{10}\.\d{9}$", printed, re.MULTILINE)
    if found is None:
        raise CannotMeasure(f"the job did not say when it began: {printed[-200:]}")
    return float(found.group())


# --- ours ---------------------------------------------------------------------------------------


def _submit_ours(client, digest: str, number: int, times: Times) -> None:
    called_s = time.time()
    job = client.submit(
        {"name": f"job-{number}", "entry": ENTRY, "package_digest": digest, **SMALL}
    )
    answered_s = time.time()
    running = client.wait(job["id"], "running", timeout_s=COMMAND_TIMEOUT_S)
    seen_s = time.time()
    if running is None or running["phase"] != "Running":
        raise CannotMeasure(f"{job['name']} was never seen running")
    ended = client.wait(job["id"], timeout_s=COMMAND_TIMEOUT_S)
    if ended is None or ended["phase"] != "Succeeded":
        raise CannotMeasure(f"{job['name']} ended {ended and ended['phase']}")
    times.add(called_s, answered_s, _began_s(client.logs(job["id"], "trainer-0")), seen_s)


# --- Ray ----------------------------------------------------------------------------------------


class Ray:
    """A head node of its own and one client that submits."""

    def __init__(self, python: Path, port: int, submitter: subprocess.Popen[str]) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.program = python.with_name("ray")
        self._submitter = submitter

    def submit(self, times: Times) -> None:
        assert self._submitter.stdin is not None
        print(ENTRY, file=self._submitter.stdin, flush=True)
        row = json.loads(self._answer())
        began_s = _began_s(row["output"])
        times.add(row["called_s"], row["answered_s"], began_s, row["seen_s"])

    def wait_until_ready(self) -> None:
        if self._answer().strip() != "ready":
            raise CannotMeasure("Ray's client did not start")

    def _answer(self) -> str:
        assert self._submitter.stdout is not None
        line = self._submitter.stdout.readline()
        if not line:
            raise CannotMeasure("Ray's client ended; what it said is above")
        return line


@contextmanager
def _ray(platform: Platform, folder: Path) -> Iterator[Ray]:
    """`ray start --head`, with ports of its own; ended by pid, as `ray stop` ends everybody's."""
    python = _environments.python("ray", PACKAGES)
    port = free_port()
    mark = Mark()
    env = platform.env | mark.env | {"RAY_USAGE_STATS_ENABLED": "0"}
    words = [
        *("start", "--head", "--block", "--disable-usage-stats", f"--temp-dir={folder}"),
        "--node-ip-address=127.0.0.1",
        *("--port=0", f"--dashboard-port={port}", f"--ray-client-server-port={free_port()}"),
        f"--dashboard-agent-listen-port={free_port()}",
    ]
    log = (folder / "ray.log").open("wb")
    head = subprocess.Popen(
        [str(python.with_name("ray")), *words], env=env, stdout=log, stderr=log, cwd=folder
    )
    try:
        if not wait_for_port(port, timeout_s=START_TIMEOUT_S):
            raise CannotMeasure(f"Ray did not start: {(folder / 'ray.log').read_text()[-400:]}")
        submitter = subprocess.Popen(
            [str(python), str(HERE / "peers" / "ray_jobs.py"), f"http://127.0.0.1:{port}"],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
        )
        ray = Ray(python, port, submitter)
        ray.wait_until_ready()
        yield ray
    finally:
        end(head.pid)
        head.wait()
        for pid in mark.pids():
            end(pid)
        log.close()


# --- the lists ----------------------------------------------------------------------------------


def _pods(client: Client, rows: int) -> None:
    """As many pods as there are jobs, running."""
    client.create("/api/v1/namespaces", {"metadata": {"name": "bench"}})
    path = collection("v1", "pods", "bench")
    for number in range(rows):
        container = {"name": "c", "image": "none"}
        body = {"metadata": {"name": f"job-{number}"}, "spec": {"containers": [container]}}
        client.create(path, body)


def _timed_ms(words: list[str], env: dict[str, str], rows: int, what: str) -> float:
    began_s = time.perf_counter()
    try:
        done = subprocess.run(
            words,
            env=env,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise CannotMeasure(str(error)) from error
    took_ms = (time.perf_counter() - began_s) * 1e3
    if done.returncode:
        raise CannotMeasure(f"{' '.join(words)}: {done.stderr.strip()[-400:]}")
    if done.stdout.count(what) < rows:
        raise CannotMeasure(f"{' '.join(words)} does not list {rows} rows: {done.stdout[-400:]}")
    return took_ms


def _lists(report: Report, commands: dict[str, Callable[[], float]], rounds: int) -> None:
    took_ms: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, timed_ms in commands.items():
            one_ms = timed_ms()
            if number:  # the first round only fills caches
                took_ms[name].append(one_ms)
    for name, all_ms in took_ms.items():
        report.add(f"{name}_p50_ms", median(all_ms))
    ours_ms = median(took_ms["paddlecloud_get_jobs"])
    for name in commands:
        if name != "paddlecloud_get_jobs":
            report.add(f"{name}_x", median(took_ms[name]) / ours_ms, at_least=1.0)


def _kubectl() -> str:
    built = subprocess.run([HERE / "_kubectl.sh"], capture_output=True, text=True)
    if built.returncode:
        raise CannotMeasure(f"kubectl could not be built: {built.stderr.strip()[-400:]}")
    return built.stdout.splitlines()[-1]


# --- the run ------------------------------------------------------------------------------------


def _submits(report: Report, platform: Platform, ray: Ray, jobs: int) -> None:
    ours, theirs = Times(), Times()
    with platform.client() as client:
        digest = client.upload_folder(str(platform.package))
        for number in range(jobs + WARM_UP):
            is_counted = number >= WARM_UP
            _submit_ours(client, digest, number, ours if is_counted else Times())
            ray.submit(theirs if is_counted else Times())
    for name, times in (("paddlecloud", ours), ("ray", theirs)):
        report.add(f"{name}_submit_answered_p50_ms", median(times.answered))
        report.add(f"{name}_submit_to_command_began_p50_ms", median(times.began))
        report.add(f"{name}_submit_to_seen_running_p50_ms", median(times.seen))
        report.add(f"{name}_submit_to_seen_running_p95_ms", percentile(times.seen, 95))
    report.add("ray_submit_to_seen_running_x", median(theirs.seen) / median(ours.seen), at_least=5)


def measure(asked: argparse.Namespace, report: Report) -> None:
    rows = asked.jobs + WARM_UP
    with ExitStack() as stack:
        platform = stack.enter_context(Platform())
        # Sockets are made in it, whose paths must be short.
        name = stack.enter_context(tempfile.TemporaryDirectory(prefix="ray-"))
        platform.up()
        ray = stack.enter_context(_ray(platform, Path(name)))
        _submits(report, platform, ray, asked.jobs)
        timed = partial(_timed_ms, env=platform.env, rows=rows)
        commands: dict[str, Callable[[], float]] = {
            "paddlecloud_get_jobs": partial(timed, [str(CLI), "get", "jobs", "-a"], what="job-"),
            "ray_list_jobs": partial(
                timed,
                [str(ray.program), "list", "jobs", "--address", ray.address],
                what="raysubmit_",
            ),
            "ray_job_list": partial(
                timed,
                [str(ray.program), "job", "list", "--address", ray.address],
                what="raysubmit_",
            ),
        }
        if not asked.no_kubectl:
            config = stack.enter_context(_cluster.running(platform.home, NODES))
            _pods(Client(kubeconfig.from_file(config), "bench"), rows)
            listing = ["--kubeconfig", str(config), "-n", "bench", "get", "pods"]
            commands["kubectl_get_pods"] = partial(timed, [_kubectl(), *listing], what="job-")
        _lists(report, commands, asked.lists)
        report.note("jobs", asked.jobs)
        report.note("rows", rows)
        report.note("lists", asked.lists)
        report.note("ray", _environments.pinned("ray"))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=20, help="submitted to each, in turns")
    parser.add_argument("--lists", type=int, default=15, help="rounds of listing")
    parser.add_argument("--no-kubectl", action="store_true")
    run("ray", partial(measure, parser.parse_args()))


if __name__ == "__main__":
    main()
