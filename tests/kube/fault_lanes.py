"""Operators behind faulty API servers, side by side: each with its own proxy and namespace.

`run_lanes` gives every lane the same life: while the faults last, jobs are made, scaled, finished,
fail, and are deleted and made again under the same name. After they end everything must be as
asked within `CONVERGED_S`, and no pod may ever have existed that was not asked for. Side by side
because most of the time is waiting.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from paddlecloud.kube.client import Client, collection, member
from paddlecloud.kube.refusals import Refused
from tests.kube.fault_proxy import FaultProxy, Rule
from tests.kube.running import Cluster, OperatorProcess, PodHistory, until
from tests.kube.test_jobs import paddle_job, role
from tests.patience import PATIENCE_S

JOBS = ("batch.paddlepaddle.org/v1", "paddlejobs")
FAULTY_S = float(os.environ.get("PADDLECLOUD_FAULTY_S", "10"))  # more by hand: minutes
CONVERGED_S = 10.0  # after the faults have ended


def slowness() -> float:
    """By what factor promises of time are relaxed here: others may be using this machine."""
    return max(1.5, 2 * os.getloadavg()[0] / (os.cpu_count() or 1))


class Lane:
    """One namespace, its operator, and the API server as that operator sees it."""

    def __init__(self, cluster: Cluster, name: str, folder: Path) -> None:
        self.name = f"lane-{name}-{time.monotonic_ns() // 1000 % 10**9}"
        self.cluster = cluster
        self.client: Client = cluster.client()
        namespace = {"metadata": {"name": self.name}}
        self.client.create(collection("v1", "namespaces"), namespace)
        self.proxy = FaultProxy(cluster)
        self.history = PodHistory(cluster, self.name)
        config = self.proxy.write_kubeconfig(folder / f"{self.name}.kubeconfig")
        self.operator = OperatorProcess(
            config, folder / f"{self.name}.log", "--namespace", self.name
        )

    def close(self) -> None:
        self.operator.process.kill()
        self.operator.process.wait()
        self.history.stop()
        self.proxy.close()
        self.client.delete(f"{collection('v1', 'namespaces')}/{self.name}")
        self.client.forget_connection()

    # --- what a user does, past the proxy ------------------------------------------------------

    def submit(self, name: str, **spec: Any) -> None:
        self.client.create(collection(*JOBS, self.name), paddle_job(name, **spec))

    def scale(self, job: str, workers: int) -> None:
        change = {"spec": {"worker": {"replicas": workers}}}
        self.client.patch(member(*JOBS, self.name, job), change)

    def finish(self, job: str) -> None:
        done = {"metadata": {"annotations": {"pretend/complete-after": "0s"}}}
        for name in self.pods(job):
            if "-worker-" in name:
                with contextlib.suppress(Refused):  # it may have gone
                    self.client.patch(member("v1", "pods", self.name, name), done)

    def job(self, job: str) -> dict[str, Any]:
        return self.client.get(member(*JOBS, self.name, job))

    def status(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = self.job(job).get("status") or {}
        return found

    def pods(self, job: str) -> dict[str, dict[str, Any]]:
        selector = f"paddlepaddle.org/job={job}"
        found = self.client.get(collection("v1", "pods", self.name), labelSelector=selector)
        return {pod["metadata"]["name"]: pod for pod in found["items"] or ()}

    def until(self, true: Callable[[], Any], what: str, within_s: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + within_s
        while not true():
            if time.monotonic() > deadline:
                statuses = {one: self.status(one) for one in self.all_jobs()}
                raise AssertionError(f"{what}: not within {within_s:.0f} s: {statuses}")
            time.sleep(0.2)

    def all_jobs(self) -> list[str]:
        found = self.client.get(collection(*JOBS, self.name))["items"]
        return [one["metadata"]["name"] for one in found]

    def until_leading(self) -> None:
        def leads() -> bool:
            try:
                return "not yet" not in self.operator.ask("/readyz")
            except OSError:
                return False

        self.until(leads, "a leader")


def live(lane: Lane, rules: Sequence[Rule], within_s: float = CONVERGED_S) -> None:
    """The life of one lane."""
    lane.until_leading()
    lane.submit("grows", worker=role(2), ps=role(1))
    lane.until(lambda: lane.status("grows").get("ready") == "3/3", "a running job")
    began = time.monotonic()
    lane.proxy.rules = rules
    lane.submit("ends", worker=role(3, {"pretend/complete-after": "1s"}), cleanPodPolicy="Always")
    failing = role(2, {"pretend/fail-after": "100ms"})
    lane.submit("fails", worker=failing, backoffLimit=1, cleanPodPolicy="Never")
    lane.submit("shrinks", worker=role(4))
    lane.scale("grows", 4)
    lane.submit("again", worker=role(2))
    time.sleep(FAULTY_S / 2)
    lane.scale("shrinks", 1)
    lane.finish("grows")
    lane.client.delete(member(*JOBS, lane.name, "again"))
    lane.submit("again", worker=role(1))  # while the pods of the first are still there
    time.sleep(max(0.0, began + FAULTY_S - time.monotonic()))
    lane.proxy.heal()
    lane.until(lambda: _is_as_asked(lane), "everything as asked", within_s * slowness())
    took_s = time.monotonic() - began - FAULTY_S
    print(f"{lane.name}: {took_s:.1f} s after {dict(lane.proxy.faults)}, {dict(lane.proxy.calls)}")
    _check(lane)


def _is_as_asked(lane: Lane) -> bool:
    if lane.status("grows").get("ready") not in ("4/5", "5/5"):
        lane.finish("grows")  # those that came since
    phases = {job: lane.status(job).get("phase") for job in ("grows", "ends", "fails", "shrinks")}
    wanted = {"grows": "Completed", "ends": "Completed", "fails": "Failed", "shrinks": "Running"}
    return (
        phases == wanted
        and list(lane.pods("shrinks")) == ["shrinks-worker-0"]
        and lane.status("shrinks")["ready"] == "1/1"
        and not lane.pods("ends")
        and _owners(lane, "again") == {"again-worker-0": lane.job("again")["metadata"]["uid"]}
        and lane.status("again").get("ready") == "1/1"
    )


def _owners(lane: Lane, job: str) -> dict[str, str]:
    return {
        name: pod["metadata"]["ownerReferences"][0]["uid"] for name, pod in lane.pods(job).items()
    }


def _check(lane: Lane) -> None:
    rows = lane.status("fails")["failures"]
    told = sorted((row["role"], row["index"], row["attempt"]) for row in rows)
    assert told == sorted(set(told)), f"a failure is told twice: {told}"
    assert {attempt for _, _, attempt in told} == {1}, told
    assert lane.status("fails")["restarts"] == 1
    for job in ("grows", "ends", "shrinks"):
        assert "failures" not in lane.status(job), f"{job} failed"
    asked = {
        *(f"grows-worker-{i}" for i in range(4)),
        "grows-ps-0",
        *(f"ends-worker-{i}" for i in range(3)),
        *(f"fails-worker-{i}" for i in range(2)),
        *(f"shrinks-worker-{i}" for i in range(4)),
        *(f"again-worker-{i}" for i in range(2)),
    }
    assert lane.history.names <= asked, lane.history.names - asked
    assert lane.operator.process.poll() is None, "the operator ended"


def until_collected(cluster: Cluster) -> None:
    """Wait until the garbage collector of a fresh cluster knows our kind: it learns of new ones
    twice a minute, and pods of deleted jobs are its to remove."""
    client, namespace = cluster.client(), "default"
    owner = client.create(collection(*JOBS, namespace), paddle_job("collected", worker=role(1)))
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": "collected",
        "uid": owner["metadata"]["uid"],
    }
    body = {"metadata": {"name": "collected", "ownerReferences": [reference]}}
    maps = collection("v1", "configmaps", namespace)
    client.create(maps, body)
    client.delete(member(*JOBS, namespace, "collected"))

    def is_gone() -> bool:
        names = [one["metadata"]["name"] for one in client.get(maps)["items"]]
        return "collected" not in names

    until(is_gone, "a garbage collector at work")
    client.forget_connection()


def run_lanes(
    cluster: Cluster,
    folder: Path,
    lanes: Mapping[str, Sequence[Rule]],
    within_s: Mapping[str, float] | None = None,
) -> None:
    """All side by side; the troubles of all are told."""
    patience = within_s or {}
    until_collected(cluster)

    def one(name: str) -> str:
        lane = Lane(cluster, name, folder)
        try:
            live(lane, lanes[name], patience.get(name, CONVERGED_S))
            assert lane.proxy.faults, "nothing went wrong"
        except Exception as error:
            return f"{name}: {error or type(error).__name__}"
        finally:
            lane.close()
        return ""

    with ThreadPoolExecutor(len(lanes)) as pool:
        troubles = [found for found in pool.map(one, lanes) if found]
    assert not troubles, "\n".join(troubles)
