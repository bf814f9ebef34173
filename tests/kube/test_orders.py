"""Orders given on a job's object, and pods that wait for their logs, on a real API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from paddlecloud.kube.words import (
    ARCHIVE_ANNOTATION,
    ATTEMPT_LABEL,
    CANCEL_ANNOTATION,
    LOG_FINALIZER,
    MOVES_ANNOTATION,
)
from tests.kube import running
from tests.kube.running import Namespace, until
from tests.kube.test_jobs import paddle_job, role
from tests.kube.test_trainingjob import training_job, until_phase

pytestmark = [pytest.mark.e2e, pytest.mark.needs("kube")]


def order(namespace: Namespace, job: str, name: str, text: str) -> None:
    namespace.kubectl("annotate", "--overwrite", job, f"{name}={text}")


def told(namespace: Namespace, reason: str) -> list[dict[str, Any]]:
    return [one for one in namespace.get("events")["items"] if one["reason"] == reason]


def test_a_moved_worker_comes_back_elsewhere_once(namespace, operator):
    namespace.apply(paddle_job(worker=role(2), ps=role(1)))
    namespace.until_phase("Running")
    before = namespace.pods()
    node = before["job-worker-1"]["spec"]["nodeName"]
    move = {"role": "worker", "index": 1, "attempt": 1, "host": node, "at": 0}
    order(namespace, "pdj/job", MOVES_ANNOTATION, json.dumps([move]))
    selector = f"--selector={ATTEMPT_LABEL}=2"
    until(lambda: namespace.pods(selector), "the next attempt")
    namespace.kubectl("wait", "pods", selector, "--for=condition=Ready", "--timeout=180s")
    namespace.until_phase("Running")
    moved = namespace.pods()
    assert moved["job-worker-1"]["spec"]["nodeName"] != node
    assert moved["job-worker-0"]["metadata"]["uid"] == before["job-worker-0"]["metadata"]["uid"]
    assert namespace.status()["restarts"] == 0

    # The same order again, and one that comes after it: the first has moved nothing by then.
    order(namespace, "pdj/job", MOVES_ANNOTATION, json.dumps([move, move]))
    order(namespace, "pdj/job", CANCEL_ANNOTATION, "lee: enough")
    namespace.until_phase("Terminated")
    uids = {name: pod["metadata"]["uid"] for name, pod in namespace.pods().items()}
    assert uids == {name: pod["metadata"]["uid"] for name, pod in moved.items()}
    assert len(told(namespace, "Moved")) == 1


def test_kill_keeps_the_object_and_says_who_and_why(namespace, operator):
    namespace.apply(training_job(pserver={"min-instance": 1}))
    until_phase(namespace, "running")
    order(namespace, "tj/job", CANCEL_ANNOTATION, "lee: wrong data")
    until_phase(namespace, "killed")
    namespace.kubectl("wait", "tj/job", "--for=condition=Killed", "--timeout=10s")
    assert namespace.get("tj/job")["status"]["reason"] == "killed: lee: wrong data"
    assert [one["message"] for one in told(namespace, "Killed")] == ["killed: lee: wrong data"]
    phases = {pod["status"]["phase"] for pod in namespace.pods().values()}
    assert phases == {"Failed"}  # ended in place: their logs can be read


def test_holds_pods_for_their_logs_but_not_for_ever(cluster, namespace, tmp_path):
    words = ("--namespace", namespace.name, "--log-wait", "2")
    with running.operator(cluster, tmp_path / "operator.log", *words):
        job = paddle_job(worker=role(2), cleanPodPolicy="Always")
        job["metadata"]["annotations"] = {ARCHIVE_ANNOTATION: "true"}
        namespace.apply(job)
        namespace.until_phase("Running")
        held = [pod["metadata"]["finalizers"] for pod in namespace.pods().values()]
        assert held == [[LOG_FINALIZER]] * 2
        # One is archived, the other is not.
        namespace.kubectl(
            "patch", "pod/job-worker-0", "--type=merge", '-p={"metadata":{"finalizers":null}}'
        )
        namespace.finish()
        namespace.until_phase("Completed")
        namespace.kubectl("wait", "--for=delete", "pods", "--all", "--timeout=180s")
        lost = told(namespace, "LogLost")
        assert [one["type"] for one in lost] == ["Warning"]
        assert "job-worker-1 within 2 s" in lost[0]["message"]
        assert lost[0]["involvedObject"]["kind"] == "PaddleJob"


def test_lets_pods_go_although_their_job_is_gone(cluster, namespace, tmp_path):
    words = ("--namespace", namespace.name, "--log-wait", "1")
    with running.operator(cluster, tmp_path / "operator.log", *words):
        job = paddle_job(worker=role(1))
        job["metadata"]["annotations"] = {ARCHIVE_ANNOTATION: "true"}
        namespace.apply(job)
        namespace.until_phase("Running")
        namespace.kubectl("delete", "pdj/job", "--timeout=180s")
        namespace.kubectl("wait", "--for=delete", "pods", "--all", "--timeout=180s")
        assert [one["involvedObject"]["kind"] for one in told(namespace, "LogLost")] == ["Pod"]
