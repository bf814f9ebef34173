"""How fast the operator turns jobs into running pods, beside raw pods by plain threads.

A real control plane with 1,000 pretended nodes (`make cluster-programs` builds it). The floor is
the same number of pods made by eight threads and nobody's operator. JOBS=1000 in the environment
measures more. Memory and API calls are the operator's own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from _children import cpu_s, end, pss_mb
from _report import CannotMeasure, Report, run

from paddlecloud.controller import manifests
from paddlecloud.kube import kubeconfig
from paddlecloud.kube.client import Client, collection

ROOT = Path(__file__).resolve().parent.parent
CLUSTER = ROOT / "tools" / "cluster"
NODES, WORKERS = 1000, 4
JOBS = int(os.environ.get("JOBS", "100"))
PATIENCE_S = 600.0
IDLE_S = 10.0
GROUP = "batch.paddlepaddle.org/v1"
CONTAINER = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}


def _each(items: Iterable[Any], client: Client, act: Callable[[Any], object]) -> None:
    """By eight threads."""
    left, lock = iter(items), threading.Lock()

    def work() -> None:
        while True:
            with lock:
                item = next(left, None)
            if item is None:
                client.forget_connection()
                return
            act(item)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _until(count: Callable[[], int], wanted: int, what: str) -> float:
    deadline_s = time.monotonic() + PATIENCE_S
    while (found := count()) < wanted:
        if time.monotonic() > deadline_s:
            raise CannotMeasure(f"{what}: {found} of {wanted}")
        time.sleep(0.2)
    return time.perf_counter()


def _running_pods(client: Client, namespace: str) -> int:
    query = {"resourceVersion": "0", "fieldSelector": "status.phase=Running"}
    return len(client.get(collection("v1", "pods", namespace), **query)["items"] or ())


def _in_phase(client: Client, namespace: str, phase: str) -> int:
    found = client.get(collection(GROUP, "paddlejobs", namespace), resourceVersion="0")["items"]
    return sum((body.get("status") or {}).get("phase") == phase for body in found)


def _namespace(client: Client, name: str) -> str:
    client.create(collection("v1", "namespaces"), {"metadata": {"name": name}})
    time.sleep(1)  # its account comes a little later
    return name


def _floor_s(client: Client) -> float:
    namespace = _namespace(client, "floor")
    spec = {"containers": [CONTAINER], "restartPolicy": "Never"}
    began_s = time.perf_counter()
    _each(
        range(JOBS * WORKERS),
        client,
        lambda number: client.create(
            collection("v1", "pods", namespace),
            {"metadata": {"name": f"pod-{number}"}, "spec": spec},
        ),
    )
    wanted = JOBS * WORKERS
    ended_s = _until(lambda: _running_pods(client, namespace), wanted, "raw pods")
    client.delete(f"{collection('v1', 'namespaces')}/{namespace}")
    _until(
        lambda: -len(client.get(collection("v1", "pods", namespace))["items"]), 0, "raw pods gone"
    )
    return ended_s - began_s


def _figures(address: str) -> dict[str, float]:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        rows = re.findall(r"^paddlecloud_operator_(\w+) (\S+)$", answer.read().decode(), re.M)
    return {name: float(value) for name, value in rows}


def _measure_jobs(client: Client, report: Report, operator: int, address: str) -> None:
    namespace = _namespace(client, "jobs")
    before, pods = _figures(address), JOBS * WORKERS

    def submit(number: int) -> None:
        body = {
            "apiVersion": GROUP,
            "kind": "PaddleJob",
            "metadata": {"name": f"job-{number}"},
            "spec": {
                "cleanPodPolicy": "Never",
                "worker": {"replicas": WORKERS, "template": {"spec": {"containers": [CONTAINER]}}},
            },
        }
        client.create(collection(GROUP, "paddlejobs", namespace), body)

    began_s = time.perf_counter()
    _each(range(JOBS), client, submit)
    pods_s = _until(lambda: _running_pods(client, namespace), pods, "pods") - began_s
    said_s = _until(lambda: _in_phase(client, namespace, "Running"), JOBS, "jobs") - began_s
    after = _figures(address)
    report.add("pods_running_s", pods_s)
    # The bar is for 100 jobs; more are to be linear.
    report.add("jobs_say_running_s", said_s, at_most=0.1 * JOBS)
    calls = after["api_calls_total"] - before["api_calls_total"]
    report.add("api_calls_per_pod", calls / pods, at_most=4)
    names = [f"job-{job}-worker-{index}" for job in range(JOBS) for index in range(WORKERS)]
    began_s = time.perf_counter()
    done = {"metadata": {"annotations": {"pretend/complete-after": "0s"}}}
    path = collection("v1", "pods", namespace)
    _each(names, client, lambda name: client.patch(f"{path}/{name}", done))
    ended_s = _until(lambda: _in_phase(client, namespace, "Completed"), JOBS, "ended jobs")
    report.add("completion_s", ended_s - began_s)
    report.add("operator_mb", pss_mb([operator]), at_most=300)
    time.sleep(3)
    used_s, calls = cpu_s([operator]), _figures(address)["api_calls_total"]
    time.sleep(IDLE_S)
    report.add("idle_cpu_percent", (cpu_s([operator]) - used_s) / IDLE_S * 100, below=1)
    report.add("idle_calls_per_s", (_figures(address)["api_calls_total"] - calls) / IDLE_S)


def measure(report: Report) -> None:
    found = subprocess.run([CLUSTER / "build.sh", "--where"], capture_output=True, text=True)
    programs = Path(found.stdout.strip())
    if not (programs / ".complete").exists():
        raise CannotMeasure("the cluster's programs are not built; run: make cluster-programs")
    tool = [sys.executable, str(CLUSTER / "run.py")]
    with tempfile.TemporaryDirectory(prefix="paddlecloud-bench-") as folder:
        state = f"{folder}/cluster"
        try:
            words = ["--state", state, "--programs", str(programs), "--nodes", str(NODES)]
            started = subprocess.run([*tool, "start", *words], capture_output=True, text=True)
            if started.returncode:
                raise CannotMeasure(started.stderr.strip())
            _measure_on(Path(started.stdout.strip()), Path(folder), report)
        finally:
            subprocess.run([*tool, "stop", "--state", state], check=True)


def _measure_on(config: Path, folder: Path, report: Report) -> None:
    client = Client(kubeconfig.from_file(config), "bench")
    for body in manifests.definitions():
        client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
    report.note("jobs", JOBS)
    report.add("raw_pods_running_s", _floor_s(client))
    log = folder / "operator.log"
    with log.open("wb") as output:
        operator = subprocess.Popen(
            [
                *(sys.executable, "-m", "paddlecloud", "controller"),
                *("--kubeconfig", str(config), "--metrics-port", "0"),
            ],
            stdout=output,
            stderr=output,
        )
    try:
        _until(lambda: log.read_text().count("listening on "), 1, "the operator")
        found = re.search(r"listening on ([\d.:]+)", log.read_text())
        assert found is not None
        _measure_jobs(client, report, operator.pid, found.group(1))
    finally:
        end(operator.pid)
        operator.wait()


if __name__ == "__main__":
    run("kube", measure)
