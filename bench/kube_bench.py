"""How fast operators turn jobs into running pods, on one real control plane and in one run.

    kube_bench.py [--jobs 100] [--many 1000] [--no-peers] [--no-many]

1,000 pretended nodes (`make cluster-programs` builds what is needed). The floor is as many raw
pods by eight threads. Then ours, then Kubeflow's training-operator and Volcano (`_kube_peers.sh`
builds them the first time), each as it comes and with the limits of its API client out of the way.
Then ours again with many jobs: whether it is linear, memory, how soon a change is acted upon, how
soon after its start, and what it costs when all have ended. About twelve minutes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import _cluster
import _kube_peers
from _children import cpu_s, end, pss_mb
from _kube_jobs import (
    CONTAINER,
    OURS,
    WORKERS,
    Census,
    each,
    finish,
    make_namespace,
    measure,
    remove_namespace,
)
from _report import CannotMeasure, Report, percentile, run

from paddlecloud.controller import manifests
from paddlecloud.kube import kubeconfig
from paddlecloud.kube.client import Client, collection

NODES = 1000
PATIENCE_S = 600.0
PEER_PATIENCE_S = 150.0
IDLE_S = 30.0
CHANGES, CHANGES_PER_S = 200, 10.0


class OperatorProcess:
    """Ours, as users start it."""

    def __init__(self, config: Path, log: Path) -> None:
        self._log = log
        self.started_s = time.perf_counter()
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "paddlecloud", "controller"),
                    *("--kubeconfig", str(config), "--metrics-port", "0"),
                ],
                stdout=output,
                stderr=output,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def figures(self) -> dict[str, float]:
        found = re.search(r"listening on ([\d.:]+)", self._log.read_text())
        if found is None:
            raise CannotMeasure(f"the operator: {self._log.read_text()[-300:]}")
        with urllib.request.urlopen(f"http://{found.group(1)}/metrics", timeout=30) as answer:
            rows = re.findall(r"^paddlecloud_operator_(\w+) (\S+)$", answer.read().decode(), re.M)
        return {name: float(value) for name, value in rows}

    def until(self, name: str, value: float) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                if self.figures()[name] == value:
                    return
            except (CannotMeasure, OSError):
                pass
            if time.monotonic() > deadline_s or self.process.poll() is not None:
                raise CannotMeasure(f"the operator: {name} is not {value:g}")
            time.sleep(0.2)


@contextmanager
def _operator(config: Path, log: Path) -> Iterator[OperatorProcess]:
    one = OperatorProcess(config, log)
    try:
        one.until("leads", 1)
        yield one
    finally:
        end(one.pid, grace_s=30)
        one.process.wait()


# --- as many jobs as the peers ----------------------------------------------------------------


def _floor(client: Client, report: Report, jobs: int) -> None:
    namespace = make_namespace(client, "floor")
    path = collection("v1", "pods", namespace)
    census = Census(client, path, lambda _: True, "status.phase=Running")
    spec = {"containers": [{"name": "c", **CONTAINER}], "restartPolicy": "Never"}
    began_s = time.perf_counter()
    each(
        range(jobs * WORKERS),
        client,
        lambda number: client.create(path, {"metadata": {"name": f"pod-{number}"}, "spec": spec}),
    )
    census.wait(lambda since: len(since) >= jobs * WORKERS, "raw pods", PATIENCE_S)
    report.add("raw_pods_running_s", max(census.since.values()) - began_s)
    census.stop()
    remove_namespace(client, namespace, PATIENCE_S)


def _ours(client: Client, report: Report, config: Path, folder: Path, jobs: int) -> float:
    with _operator(config, folder / "operator.log") as operator:
        namespace = make_namespace(client, "ours")
        before, used_s = operator.figures(), cpu_s([operator.pid])
        times = measure(client, OURS, namespace, jobs, PATIENCE_S, end=False)
        after, pods = operator.figures(), jobs * WORKERS
        report.add("pods_running_s", times.pods_s)
        # The bar is for 100 jobs.
        report.add("jobs_say_running_s", times.said_s, at_most=0.1 * jobs)
        report.add("operator_cpu_ms_per_pod", (cpu_s([operator.pid]) - used_s) / pods * 1000)
        calls = after["api_calls_total"] - before["api_calls_total"]
        report.add("api_calls_per_pod", calls / pods, at_most=4)
        report.add("completion_s", _complete(client, namespace, jobs))
        remove_namespace(client, namespace, PATIENCE_S)
    return times.said_s


def _complete(client: Client, namespace: str, jobs: int) -> float:
    pods = Census(client, collection("v1", "pods", namespace), lambda _: True)
    path = collection(OURS.api, OURS.plural, namespace)
    ended = Census(client, path, lambda body: OURS.phase(body.get("status") or {}) == OURS.done)
    began_s = time.perf_counter()
    finish(client, namespace, list(pods.since))
    took_s = ended.wait(lambda since: len(since) >= jobs, "ended jobs", PATIENCE_S) - began_s
    pods.stop()
    ended.stop()
    return took_s


def _peers(client: Client, report: Report, config: Path, folder: Path, jobs: int) -> None:
    programs, scheduler = _kube_peers.build(), _cluster.programs() / "volcano-scheduler"
    for peer in _kube_peers.peers(client, config, programs, scheduler, folder):
        try:
            with peer.run():
                namespace = make_namespace(client, peer.name.replace("_", "-"))
                times = measure(client, peer.contender, namespace, jobs, PEER_PATIENCE_S)
                report.add(f"{peer.name}_pods_running_s", times.pods_s)
                report.add(f"{peer.name}_jobs_say_running_s", times.said_s)
                report.add(f"{peer.name}_completion_s", times.completed_s)
                remove_namespace(client, namespace, PATIENCE_S)
        except CannotMeasure as error:  # a peer that does not get there is a result too
            report.note(f"{peer.name}_failed", str(error))


# --- many jobs --------------------------------------------------------------------------------


def _many(
    client: Client, report: Report, config: Path, folder: Path, many: int, expected_s: float
) -> None:
    namespace = make_namespace(client, "many")
    with _operator(config, folder / "many.log") as operator:
        before = operator.figures()
        times = measure(client, OURS, namespace, many, PATIENCE_S, end=False)
        after = operator.figures()
        report.add("many_jobs_say_running_s", times.said_s, at_most=0.1 * many)
        report.add("many_per_job_x", times.said_s / expected_s, at_most=1.5)
        calls = after["api_calls_total"] - before["api_calls_total"]
        report.add("many_api_calls_per_pod", calls / (many * WORKERS), at_most=4)
        operator.until("waiting", 0)
        _latency(client, report, namespace, many)
        report.add("operator_mb", pss_mb([operator.pid]), at_most=300)
    _start(client, report, config, folder, namespace, many)


def _grow(client: Client, namespace: str, job: str) -> float:
    """Ask for one worker more; when that was."""
    asked_s = time.perf_counter()
    path = f"{collection(OURS.api, OURS.plural, namespace)}/{job}"
    client.patch(path, {"spec": {"worker": {"replicas": WORKERS + 1}}})
    return asked_s


def _latency(client: Client, report: Report, namespace: str, many: int) -> None:
    """From asking for one worker more to its pod, one job after another."""
    census = Census(client, collection("v1", "pods", namespace), lambda _: True)
    changed = [f"job-{number}" for number in range(min(CHANGES, many // 2))]
    asked: dict[str, float] = {}
    for job in changed:
        asked[f"{job}-worker-{WORKERS}"] = _grow(client, namespace, job)
        time.sleep(1 / CHANGES_PER_S)
    census.wait(lambda since: asked.keys() <= since.keys(), "new workers", PATIENCE_S)
    waits = [census.since[name] - at_s for name, at_s in asked.items()]
    report.add("change_to_pod_p50_s", percentile(waits, 50))
    report.add("change_to_pod_p99_s", percentile(waits, 99), at_most=1)
    census.stop()


def _start(
    client: Client, report: Report, config: Path, folder: Path, namespace: str, many: int
) -> None:
    """A change made while no operator ran, and then all jobs ended."""
    census = Census(client, collection("v1", "pods", namespace), lambda _: True)
    job = f"job-{many - 1}"
    _grow(client, namespace, job)
    with _operator(config, folder / "second.log") as operator:
        name = f"{job}-worker-{WORKERS}"
        census.wait(lambda since: name in since, "the first action", PATIENCE_S)
        took_s = census.since[name] - operator.started_s
        report.add("start_to_first_action_s", took_s, at_most=5)
        census.stop()
        report.add("many_completion_s", _complete(client, namespace, many))
        operator.until("waiting", 0)
        time.sleep(5)
        used_s, calls = cpu_s([operator.pid]), operator.figures()["api_calls_total"]
        time.sleep(IDLE_S)
        report.add("idle_cpu_percent", (cpu_s([operator.pid]) - used_s) / IDLE_S * 100, below=1)
        report.add("idle_calls", operator.figures()["api_calls_total"] - calls, at_most=0)
        report.add("operator_with_ended_jobs_mb", pss_mb([operator.pid]), at_most=300)


# --- the run ----------------------------------------------------------------------------------


def measure_all(asked: argparse.Namespace, report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix="paddlecloud-bench-") as name:
        folder = Path(name)
        with _cluster.running(folder, NODES) as config:
            client = Client(kubeconfig.from_file(config), "bench")
            for body in manifests.definitions():
                client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
            report.note("jobs", asked.jobs)
            _floor(client, report, asked.jobs)
            said_s = _ours(client, report, config, folder, asked.jobs)
            if not asked.no_peers:
                _peers(client, report, config, folder, asked.jobs)
            if not asked.no_many:
                report.note("many", asked.many)
                expected_s = said_s * asked.many / asked.jobs
                _many(client, report, config, folder, asked.many, expected_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=100, help="as many as the peers get")
    parser.add_argument("--many", type=int, default=1000)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--no-many", action="store_true")
    run("kube", partial(measure_all, parser.parse_args()))


if __name__ == "__main__":
    main()
