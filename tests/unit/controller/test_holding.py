from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.controller import holding
from paddlecloud.controller.remembering import written_time
from paddlecloud.kube.words import ARCHIVE_ANNOTATION, LOG_FINALIZER
from tests.unit.controller.pretended import START, Namespace, role


def held(
    phase: str = "Running", *, ended_s: float | None = None, deleted_s: float | None = None
) -> dict[str, Any]:
    pod: dict[str, Any] = {
        "metadata": {
            "name": "p",
            "finalizers": ["a/b", LOG_FINALIZER],
            "creationTimestamp": written_time(START),
        },
        "spec": {"nodeName": "node"},
        "status": {"phase": phase},
    }
    if ended_s is not None:
        state = {"terminated": {"finishedAt": written_time(START + ended_s)}}
        pod["status"]["containerStatuses"] = [{"state": state}]
    if deleted_s is not None:
        pod["metadata"]["deletionTimestamp"] = written_time(START + deleted_s)
    return pod


@pytest.mark.parametrize(
    ("pod", "left_s"),
    [
        (held(), None),
        (held("Succeeded", ended_s=50), 10),
        (held("Failed", ended_s=50, deleted_s=90), 10),
        (held(deleted_s=70), 30),
    ],
)
def test_waits_from_the_end_or_else_from_the_deletion(pod, left_s):
    found = holding.due([pod], 60, START + 100)
    assert (found.lost, found.empty, found.wake_after_s) == ((), (), left_s)


@pytest.mark.parametrize("pod", [held("Succeeded", ended_s=40), held("Failed"), held(deleted_s=40)])
def test_lets_go_when_nobody_came(pod):
    assert holding.due([pod], 60, START + 100).lost == (pod,)
    assert holding.without(pod) == ["a/b"]


def test_does_not_wait_for_a_log_that_cannot_be():
    pod = held(deleted_s=100)
    del pod["spec"]["nodeName"]
    found = holding.due([pod], 60, START + 100)
    assert (found.lost, found.empty) == ((), (pod,))


def test_leaves_pods_alone_that_are_not_held():
    pod = held("Failed", ended_s=0)
    pod["metadata"]["finalizers"] = ["a/b"]
    assert holding.due([pod], 60, START + 100) == holding.Held()


@pytest.mark.parametrize(("word", "finalizers"), [("true", [LOG_FINALIZER]), ("false", None)])
def test_holds_the_pods_of_jobs_that_ask_for_it(word, finalizers):
    world = Namespace(worker=role(1))
    world.body["metadata"]["annotations"] = {ARCHIVE_ANNOTATION: word}
    world.settle()
    assert world.pods()["job-worker-0"]["metadata"].get("finalizers") == finalizers


@pytest.mark.parametrize("code", [0, 1])
def test_deletes_an_ended_pod_only_when_its_log_is_stored(code):
    """Its node would throw the log away, although the object is held."""
    world = Namespace(worker=role(1), cleanPodPolicy="Always", backoffLimit=1)
    world.body["metadata"]["annotations"] = {ARCHIVE_ANNOTATION: "true"}
    world.settle()
    world.run()
    world.settle()
    first = world.pods()["job-worker-0"]["metadata"]["uid"]
    world.end("job-worker-0", code)
    world.now += 30
    world.settle()
    assert world.pods()["job-worker-0"]["metadata"]["uid"] == first
    world.stored["pods", "job-worker-0"]["metadata"]["finalizers"] = []
    world.settle()
    left = {pod["metadata"]["uid"] for pod in world.pods().values()}
    assert (first in left, len(left)) == (False, code)  # the one that failed has a successor
