"""What happens to a PaddleJob on a real API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kube.running import until

pytestmark = [pytest.mark.e2e, pytest.mark.needs("kube")]


def role(replicas: int, annotations: dict[str, str] | None = None, **keys: Any) -> dict[str, Any]:
    container = {"name": "paddle", "image": "demo:v1"}
    pod = {"metadata": {"annotations": annotations or {}}, "spec": {"containers": [container]}}
    return {"replicas": replicas, "template": pod, **keys}


def paddle_job(name: str = "job", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name},
        "spec": spec,
    }


def test_scales_with_kubectl(namespace, operator):
    namespace.apply(paddle_job(worker=role(2, requests=1, limits=4)))
    namespace.until_phase("Running")
    first = namespace.pods()["job-worker-0"]["metadata"]["uid"]
    namespace.kubectl("scale", "pdj/job", "--replicas=4")
    namespace.kubectl("wait", "pdj/job", "--for=jsonpath={.status.ready}=4/4", "--timeout=180s")
    until(
        lambda: namespace.get("configmap/job")["data"]["PADDLE_TRAINERS_NUM"] == "4",
        "the peers of four",
    )
    namespace.kubectl("scale", "pdj/job", "--replicas=1")
    namespace.kubectl("wait", "--for=delete", "pod/job-worker-1", "--timeout=180s")
    namespace.kubectl("wait", "pdj/job", "--for=jsonpath={.status.replicas}=1", "--timeout=180s")
    left = namespace.pods()
    assert list(left) == ["job-worker-0"]
    assert left["job-worker-0"]["metadata"]["uid"] == first
    namespace.kubectl("scale", "pdj/job", "--replicas=9")
    namespace.kubectl("wait", "pdj/job", "--for=jsonpath={.status.ready}=4/4", "--timeout=180s")
    assert len(namespace.pods()) == 4  # limits hold
    scale = json.loads(namespace.kubectl("get", "pdj/job", "--subresource=scale", "-o", "json"))
    selected = namespace.pods("-l", scale["status"]["selector"])
    assert len(selected) == scale["status"]["replicas"] == 4


def test_is_scaled_by_an_autoscaler(namespace, operator):
    namespace.apply(paddle_job(worker=role(1, requests=1, limits=4)))
    namespace.until_phase("Running")
    target = {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "name": "job"}
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "job"},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": 3,
            "maxReplicas": 4,
            "metrics": [{"type": "Resource", "resource": cpu}],
        },
    }
    namespace.apply(autoscaler)
    # It needs no figures to see that there are fewer than the least.
    namespace.kubectl("wait", "pdj/job", "--for=jsonpath={.status.ready}=3/3", "--timeout=180s")
    namespace.kubectl("wait", "hpa/job", "--for=condition=AbleToScale", "--timeout=180s")


def test_says_what_a_container_without_a_command_cannot_do(namespace, operator):
    namespace.apply(paddle_job(worker=role(1)))
    namespace.until_phase("Running")
    namespace.kubectl("wait", "pdj/job", "--for=condition=Runtime=False", "--timeout=10s")
    rows = {one["type"]: one for one in namespace.status()["conditions"]}
    assert rows["Runtime"]["reason"] == "NoCommand"
    assert "the container of worker has no command" in rows["Runtime"]["message"]


def test_leaves_nothing_behind_when_deleted(namespace, operator):
    workers = role(2)
    workers["template"]["spec"]["containers"][0]["command"] = ["python", "train.py"]
    namespace.apply(paddle_job(worker=workers, ps=role(1), intranet="Service"))
    namespace.until_phase("Running")
    assert "paddlecloud_runtime.py" in namespace.get("configmap/job.runtime")["data"]
    namespace.kubectl("delete", "pdj/job", "--timeout=180s")
    namespace.kubectl("wait", "--for=delete", "pods", "--all", "--timeout=180s")

    def is_empty() -> bool:
        services = namespace.get("services")["items"]
        maps = [
            one["metadata"]["name"]
            for one in namespace.get("configmaps")["items"]
            if one["metadata"]["name"] != "kube-root-ca.crt"
        ]
        return not services and not maps

    until(is_empty, "an empty namespace")


def test_starts_anew_under_the_same_name(namespace, operator):
    namespace.apply(paddle_job(worker=role(2)))
    namespace.until_phase("Running")
    old = {pod["metadata"]["uid"] for pod in namespace.pods().values()}
    namespace.kubectl("delete", "pdj/job", "--wait=false")
    namespace.kubectl("wait", "--for=delete", "pdj/job", "--timeout=180s")
    namespace.apply(paddle_job(worker=role(2)))
    namespace.until_phase("Running")
    job = namespace.get("pdj/job")
    pods = namespace.pods().values()
    assert not old & {pod["metadata"]["uid"] for pod in pods}
    owners = {pod["metadata"]["ownerReferences"][0]["uid"] for pod in pods}
    assert owners == {job["metadata"]["uid"]}


def test_restarts_what_failed_until_the_limit(namespace, operator):
    failing = role(2, {"pretend/fail-after": "200ms"})
    namespace.apply(paddle_job(worker=failing, backoffLimit=1, cleanPodPolicy="Always"))
    namespace.until_phase("Failed")
    status = namespace.status()
    assert status["restarts"] == 1
    assert {row["attempt"] for row in status["failures"]} == {1}
    assert "exit 1 in trainer-" in status["reason"]
    events = namespace.get("events")["items"]
    told = {one["reason"] for one in events if one["involvedObject"]["kind"] == "PaddleJob"}
    assert {"Restarting", "Failed"} <= told
    namespace.kubectl("wait", "--for=delete", "pods", "--all", "--timeout=180s")


def test_suspends_and_goes_on(namespace, operator):
    namespace.apply(paddle_job(worker=role(2)))
    namespace.until_phase("Running")
    namespace.kubectl("patch", "pdj/job", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    namespace.until_phase("Suspended")
    namespace.kubectl("wait", "--for=delete", "pods", "--all", "--timeout=180s")
    namespace.kubectl("patch", "pdj/job", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    namespace.until_phase("Running")


def test_understands_a_misspelt_policy_and_says_so(namespace, operator):
    namespace.apply(paddle_job(worker=role(1), cleanPolicy="Nevr", intranett="Host"))
    namespace.until_phase("Running")
    odd = next(one for one in namespace.status()["conditions"] if one["type"] == "OddSpec")
    assert "spec.cleanPolicy: is read as cleanPodPolicy" in odd["message"]
    assert "Nevr is read as Never" in odd["message"]
    assert "did you mean intranet?" in odd["message"]
    namespace.finish()
    namespace.until_phase("Completed")
    assert list(namespace.pods()) == ["job-worker-0"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"worker": role(2, requests=3, limits=2)}, "is more than limits"),
        ({}, "a job needs at least one role"),
        ({"worker": role(-1)}, "should be greater than or equal to 0"),
    ],
)
def test_is_refused_by_the_api_server_when_it_can_never_work(namespace, spec, words):
    complaint = namespace.kubectl("apply", "-f", "-", text=json.dumps(paddle_job(**spec)), ok=False)
    assert words in complaint


def test_tells_a_bad_spec_and_takes_the_better_one(namespace, operator):
    namespace.apply(paddle_job(worker={"replicas": 1}))
    namespace.kubectl("wait", "--for=condition=Valid=False", "pdj/job", "--timeout=180s")
    valid = next(one for one in namespace.status()["conditions"] if one["type"] == "Valid")
    assert valid["message"] == "spec.worker.template.spec.containers: needs at least one container"
    namespace.apply(paddle_job(worker=role(1)))
    namespace.until_phase("Running")


def test_goes_on_with_others_beside_a_template_the_api_server_refuses(namespace, operator):
    bad = role(1)
    bad["template"]["spec"]["containers"][0]["name"] = "Not A Name"
    namespace.apply(paddle_job("bad", worker=bad))
    namespace.apply(paddle_job("good", worker=role(1)))
    namespace.until_phase("Running", "good")
    until(lambda: "Invalid value" in namespace.status("bad").get("reason", ""), "the reason")


def test_gives_back_half_a_gang_that_the_quota_cut(namespace, operator):
    namespace.kubectl("create", "quota", "few", "--hard=pods=3")
    until(lambda: namespace.get("quota/few").get("status", {}).get("hard"), "the quota")
    namespace.apply(paddle_job("first", worker=role(2), cleanPodPolicy="Always"))
    namespace.until_phase("Running", "first")
    namespace.apply(paddle_job("second", worker=role(2)))
    until(lambda: "exceeded quota" in namespace.status("second").get("reason", ""), "the reason")

    def second() -> list[str]:
        return [name for name in namespace.pods() if name.startswith("second")]

    until(lambda: not second(), "no pod of half a gang")
    namespace.finish()
    namespace.until_phase("Completed", "first")
    namespace.until_phase("Running", "second")
    assert len(second()) == 2


def test_says_why_a_job_waits(namespace, operator):
    worker = role(1)
    worker["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1000"}}
    namespace.apply(paddle_job(worker=worker))
    words = "a trainer needs 1000 cpu, the largest node has 32"
    until(lambda: words in namespace.status().get("reason", ""), "the reason")
    assert namespace.status()["phase"] == "Pending"


def test_keeps_every_field_of_a_template(namespace, operator):
    worker = role(1)
    worker["template"]["spec"] |= {
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "shareProcessNamespace": True,
    }
    namespace.apply(paddle_job(worker=worker))
    namespace.until_phase("Running")
    spec = namespace.pods()["job-worker-0"]["spec"]
    assert spec["shareProcessNamespace"] is True
    assert {"key": "a", "operator": "Exists"} in spec["tolerations"]
