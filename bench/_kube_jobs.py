"""Jobs of several operators on one cluster, made and measured alike.

A `Contender` says how a job of four workers is written and how its object says where it stands.
`Census` counts by one watch, so that looking costs the API server the same whoever is measured.
Used by `kube_bench.py`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from _report import CannotMeasure

from paddlecloud.kube.client import Client, collection
from paddlecloud.kube.informers import Informer, Watched, key_of
from paddlecloud.kube.refusals import Refused

Json = dict[str, Any]
WORKERS = 4
THREADS = 8
CONTAINER = {"image": "x", "resources": {"requests": {"cpu": "1"}}}


def _template(name: str) -> Json:
    return {"spec": {"containers": [{"name": name, **CONTAINER}]}}


@dataclass(frozen=True)
class Contender:
    api: str
    plural: str
    kind: str
    spec: Json
    phase: Callable[[Json], str]  # of its status
    done: str  # the word for a job that ended well

    def body(self, name: str) -> Json:
        metadata = {"name": name}
        return {"apiVersion": self.api, "kind": self.kind, "metadata": metadata, "spec": self.spec}


def _by_condition(status: Json) -> str:
    so = [one["type"] for one in status.get("conditions") or () if one["status"] == "True"]
    return next((word for word in ("Succeeded", "Running") if word in so), "")


OURS = Contender(
    "batch.paddlepaddle.org/v1",
    "paddlejobs",
    "PaddleJob",
    {"cleanPodPolicy": "Never", "worker": {"replicas": WORKERS, "template": _template("paddle")}},
    lambda status: str(status.get("phase")),
    "Completed",
)
_PYTORCH = {"restartPolicy": "Never", "template": _template("pytorch")}
TRAINING_OPERATOR = Contender(
    "kubeflow.org/v1",
    "pytorchjobs",
    "PyTorchJob",
    {
        "runPolicy": {"cleanPodPolicy": "None"},
        "pytorchReplicaSpecs": {
            "Master": {"replicas": 1, **_PYTORCH},
            "Worker": {"replicas": WORKERS - 1, **_PYTORCH},
        },
    },
    _by_condition,
    "Succeeded",
)
VOLCANO = Contender(
    "batch.volcano.sh/v1alpha1",
    "jobs",
    "Job",
    {
        "minAvailable": WORKERS,
        "schedulerName": "volcano",
        "queue": "default",
        "policies": [{"event": "TaskCompleted", "action": "CompleteJob"}],
        "tasks": [{"name": "w", "replicas": WORKERS, "template": _template("w")}],
    },
    lambda status: str((status.get("state") or {}).get("phase")),
    "Completed",
)


def each(items: Iterable[Any], client: Client, act: Callable[[Any], object]) -> None:
    """By eight threads."""
    left, lock = iter(items), threading.Lock()
    troubles: list[Exception] = []

    def work() -> None:
        while not troubles:
            with lock:
                item = next(left, None)
            if item is None:
                break
            try:
                act(item)
            except Exception as error:
                troubles.append(error)
        client.forget_connection()

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if troubles:
        raise troubles[0]


class Census:
    """Counts the objects of a collection that are as wanted, and when each first was."""

    def __init__(
        self, client: Client, path: str, is_good: Callable[[Json], bool], fields: str = ""
    ) -> None:
        self._is_good = is_good
        self._changed = threading.Condition()
        self.since: dict[str, float] = {}  # by name
        self._informer = Informer(client, Watched(path, field_selector=fields), self._look)
        self._informer.start()
        if not self._informer.listed.wait(60):
            raise CannotMeasure(f"{path} cannot be listed")

    def _look(self, body: Json) -> None:
        now, name = time.perf_counter(), body["metadata"]["name"]
        is_good = self._informer.find(key_of(body)) is not None and self._is_good(body)
        with self._changed:
            if is_good and name not in self.since:
                self.since[name] = now
            elif not is_good:
                self.since.pop(name, None)
            self._changed.notify_all()

    def wait(self, true: Callable[[dict[str, float]], bool], what: str, patience_s: float) -> float:
        """Until the names are as asked; when that was."""
        with self._changed:
            if not self._changed.wait_for(lambda: true(self.since), patience_s):
                raise CannotMeasure(f"{what}: {len(self.since)} after {patience_s:.0f} s")
            return time.perf_counter()

    def stop(self) -> None:
        self._informer.stop()
        self._informer.join(10)


def make_namespace(client: Client, name: str) -> str:
    client.create(collection("v1", "namespaces"), {"metadata": {"name": name}})
    account = f"{collection('v1', 'serviceaccounts', name)}/default"
    deadline_s = time.monotonic() + 60
    while True:  # no pod may be made before its account is there
        try:
            client.get(account)
            return name
        except Refused:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.05)


def remove_namespace(client: Client, name: str, patience_s: float) -> None:
    """With all that is in it: the next one to be measured finds the cluster empty."""
    client.delete(f"{collection('v1', 'namespaces')}/{name}")
    deadline_s = time.monotonic() + patience_s
    while client.get(collection("v1", "pods", name), limit="1")["items"]:
        if time.monotonic() > deadline_s:
            raise CannotMeasure(f"the pods of {name} do not go")
        time.sleep(0.5)


def submit(client: Client, who: Contender, namespace: str, numbers: Iterable[int]) -> None:
    path = collection(who.api, who.plural, namespace)
    each(numbers, client, lambda number: client.create(path, who.body(f"job-{number}")))


def finish(client: Client, namespace: str, pods: Iterable[str]) -> None:
    """Let these pods end well."""
    done = {"metadata": {"annotations": {"pretend/complete-after": "0s"}}}
    path = collection("v1", "pods", namespace)
    each(list(pods), client, lambda name: client.patch(f"{path}/{name}", done))


@dataclass(frozen=True)
class Times:
    pods_s: float  # until every pod runs
    said_s: float  # until every object says so
    completed_s: float  # from telling the pods to end until every object says so


def measure(
    client: Client,
    who: Contender,
    namespace: str,
    jobs: int,
    patience_s: float,
    *,
    end: bool = True,
) -> Times:
    """Make so many jobs in a namespace, and let them end."""
    is_running = "status.phase=Running"
    pods = Census(client, collection("v1", "pods", namespace), lambda _: True, is_running)
    phases: dict[str, Census] = {}
    path = collection(who.api, who.plural, namespace)
    for word in ("Running", who.done):
        phases[word] = Census(
            client, path, lambda body, word=word: who.phase(body.get("status") or {}) == word
        )

    def are(count: int) -> Callable[[dict[str, float]], bool]:
        return lambda since: len(since) >= count

    try:
        began_s = time.perf_counter()
        submit(client, who, namespace, range(jobs))
        said_s = phases["Running"].wait(are(jobs), "jobs that run", patience_s) - began_s
        pods.wait(are(jobs * WORKERS), "pods that run", patience_s)
        pods_s = max(pods.since.values()) - began_s
        if not end:
            return Times(pods_s, said_s, 0.0)
        began_s = time.perf_counter()
        finish(client, namespace, list(pods.since))
        completed_s = phases[who.done].wait(are(jobs), "ended jobs", patience_s) - began_s
        return Times(pods_s, said_s, completed_s)
    finally:
        for census in (pods, *phases.values()):
            census.stop()
