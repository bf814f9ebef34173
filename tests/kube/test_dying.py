"""Killed at every single write of a job's life, the operator's successor finishes its work.

The server knows the same after the Nth write as before the N+1st, so dying after each write, and
before the first, are all the moments there are. Several lives go on side by side, since most of
the time is waiting: the successor has to wait until the lease of the dead one is over.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from paddlecloud.kube.client import Client, collection, member
from tests.kube.dying_operator import DIED, leading_operator
from tests.kube.fault_lanes import slowness
from tests.kube.running import ROOT, Cluster, PodHistory, until
from tests.kube.test_jobs import paddle_job, role
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.needs("kube")]

JOBS = ("batch.paddlepaddle.org/v1", "paddlejobs")
PODS = {f"job-worker-{i}" for i in range(6)} | {"job-ps-0", "job-ps-1"}
# Eight creations and eight deletions of pods, the ConfigMaps, and what the status says of it all.
LEAST_WRITES = 20
AT_ONCE = 3
CONVERGED_S = 10.0  # of the restart, the lease of five seconds included


def test_a_job_of_eight_pods_survives_a_kill_at_every_write(cluster):
    assert _survives(cluster, 1, "before")
    number = 1
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while all(
            pool.map(lambda n: _survives(cluster, n, "after"), range(number, number + AT_ONCE))
        ):
            number += AT_ONCE
    assert number > LEAST_WRITES


def _job() -> dict[str, Any]:
    workers = role(6, {"pretend/complete-after": "100ms"})
    # So that the runtime is among what is written.
    workers["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", "true"]
    return paddle_job(worker=workers, ps=role(2), cleanPodPolicy="Always")


def _survives(cluster: Cluster, number: int, when: str) -> bool:
    """One life: die at write `number`, let another go on. False when there was no such write."""
    client, namespace = cluster.client(), f"dying-{when}-{number}"
    client.create(collection("v1", "namespaces"), {"metadata": {"name": namespace}})
    history = PodHistory(cluster, namespace)
    program = [sys.executable, "-m", "tests.kube.dying_operator"]
    words = [str(cluster.kubeconfig), namespace, str(number), when]
    dying = subprocess.Popen([*program, *words], stdin=subprocess.PIPE, cwd=ROOT)
    try:
        client.create(collection(*JOBS, namespace), _job())
        until(lambda: dying.poll() is not None or _is_over(client, namespace), "an end")
        has_died = dying.poll() is not None
        if has_died:
            assert dying.returncode == DIED
            began = time.monotonic()
            with _successor(cluster, namespace):
                until(lambda: _is_over(client, namespace), "an end of the second life")
            took_s = time.monotonic() - began
            print(f"{namespace}: over {took_s:.1f} s after the restart")
            assert took_s < CONVERGED_S * slowness()
        assert history.names == PODS
        assert history.most <= len(PODS)
        status = _status(client, namespace)
        assert status["worker"]["succeeded"] == 6
        assert "failures" not in status
        return has_died
    finally:
        assert dying.stdin is not None
        dying.stdin.close()
        dying.wait(PATIENCE_S)
        history.stop()
        client.delete(f"{collection('v1', 'namespaces')}/{namespace}")
        client.forget_connection()


@contextmanager
def _successor(cluster: Cluster, namespace: str) -> Iterator[None]:
    operator = leading_operator(cluster.client(), cluster.client(), namespace, "the successor")
    thread = threading.Thread(target=operator.run)
    thread.start()
    try:
        yield
    finally:
        operator.stop()
        thread.join(PATIENCE_S)


def _status(client: Client, namespace: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(member(*JOBS, namespace, "job")).get("status", {})
    return found


def _is_over(client: Client, namespace: str) -> bool:
    pods = client.get(collection("v1", "pods", namespace))["items"]
    return not pods and _status(client, namespace).get("phase") == "Completed"
