"""A job that is deleted while its pods are being made, at every write of the operator: nothing is
left of it, and one of the same name that comes at once never takes its pods for its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from paddlecloud.controller.operator import Operator, Settings
from paddlecloud.kube import kubeconfig
from paddlecloud.kube.client import Client, collection, member
from paddlecloud.kube.informers import Informer, Watched
from tests.kube.fault_lanes import until_collected
from tests.kube.running import Cluster, until
from tests.kube.test_jobs import paddle_job, role
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.needs("kube")]

JOBS = ("batch.paddlepaddle.org/v1", "paddlejobs")
SIZE = 4
LEAST_WRITES = 8  # four pods, two ConfigMaps, and what the status says of it all
AT_ONCE = 3


class InterruptedClient(Client):
    """Has something happen after its Nth write, before the answer is heard of."""

    def __init__(self, access: kubeconfig.Access, number: int, happens: Callable[[], None]) -> None:
        super().__init__(access)
        self._left = number
        self._happens = happens
        self._lock = threading.Lock()
        self.has_happened = threading.Event()

    def call(self, method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        if method == "GET":
            return super().call(method, path, body, **more)
        with self._lock:  # one write after the other, so that the Nth is one write
            try:
                return super().call(method, path, body, **more)
            finally:
                self._left -= 1
                if self._left == 0:
                    self._happens()
                    self.has_happened.set()


class Owners:
    """Watches the pods of a namespace and remembers of whom each was, by its own uid."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.seen: dict[str, set[str]] = {}
        what = Watched(collection("v1", "pods", namespace))
        self._informer = Informer(cluster.client(), what, self._changed)
        self._informer.start()
        assert self._informer.listed.wait(PATIENCE_S)

    def _changed(self, body: dict[str, Any]) -> None:
        owners = {one["uid"] for one in body["metadata"]["ownerReferences"]}
        self.seen.setdefault(body["metadata"]["uid"], set()).update(owners)

    def stop(self) -> None:
        self._informer.stop()
        self._informer.join(PATIENCE_S)


def _job() -> dict[str, Any]:
    workers = role(SIZE)
    workers["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", "true"]
    return paddle_job(worker=workers)


class Life:
    """One namespace in which the job goes at one write."""

    def __init__(self, cluster: Cluster, number: int, comes_back: bool) -> None:
        self.client, self.cluster = cluster.client(), cluster
        self.name = f"deleting-{'again' if comes_back else 'gone'}-{number}"
        self._number, self._comes_back = number, comes_back
        self._other = cluster.client()  # of whoever deletes

    def _delete(self) -> None:
        self._other.delete(member(*JOBS, self.name, "job"))
        if self._comes_back:
            self._other.create(collection(*JOBS, self.name), _job())

    @contextmanager
    def _operator(self) -> Iterator[InterruptedClient]:
        access = kubeconfig.from_file(self.cluster.kubeconfig)
        client = InterruptedClient(access, self._number, self._delete)
        operator = Operator(client, Settings(namespace=self.name, workers=4))
        thread = threading.Thread(target=operator.run)
        thread.start()
        try:
            yield client
        finally:
            operator.stop()
            thread.join(PATIENCE_S)

    def live(self) -> bool:
        """False when there was no such write."""
        self.client.create(collection("v1", "namespaces"), {"metadata": {"name": self.name}})
        owners = Owners(self.cluster, self.name)
        try:
            with self._operator() as operator:
                first = self.client.create(collection(*JOBS, self.name), _job())
                until(lambda: operator.has_happened.is_set() or self._runs(), "the write")
                if not operator.has_happened.is_set():
                    return False
                if self._comes_back:
                    until(self._runs, "the second to run")
                    self._check(owners, first["metadata"]["uid"])
                else:
                    until(self._is_empty, "an empty namespace")
            return True
        finally:
            owners.stop()
            self.client.delete(f"{collection('v1', 'namespaces')}/{self.name}")
            self.client.forget_connection()
            self._other.forget_connection()

    def _check(self, owners: Owners, first: str) -> None:
        job = self.client.get(member(*JOBS, self.name, "job"))
        second = job["metadata"]["uid"]
        assert second != first
        pods = self.client.get(collection("v1", "pods", self.name))["items"]
        assert sorted(pod["metadata"]["name"] for pod in pods) == [
            f"job-worker-{index}" for index in range(SIZE)
        ]
        assert {owner for pod in pods for owner in owners.seen[pod["metadata"]["uid"]]} == {second}
        assert all(len(found) == 1 for found in owners.seen.values()), "a pod changed hands"
        refs = {one["uid"] for one in job["status"]["worker"]["refs"]}
        assert refs == {pod["metadata"]["uid"] for pod in pods}
        assert "failures" not in job["status"]

    def _runs(self) -> bool:
        found = self.client.get(collection(*JOBS, self.name))["items"]
        return any((one.get("status") or {}).get("ready") == f"{SIZE}/{SIZE}" for one in found)

    def _is_empty(self) -> bool:
        pods = self.client.get(collection("v1", "pods", self.name))["items"]
        maps = self.client.get(collection("v1", "configmaps", self.name))["items"]
        return not pods and {one["metadata"]["name"] for one in maps} <= {"kube-root-ca.crt"}


@pytest.mark.parametrize("comes_back", [True, False], ids=["and-made-again", "for-good"])
def test_a_job_is_deleted_at_every_write(cluster, comes_back):
    until_collected(cluster)
    number = 1
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while all(
            pool.map(lambda n: Life(cluster, n, comes_back).live(), range(number, number + AT_ONCE))
        ):
            number += AT_ONCE
    assert number + AT_ONCE > LEAST_WRITES
