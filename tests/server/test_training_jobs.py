"""`/api/v1/trainingjobs`: the job service in the words of cluster objects."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.server.running import Caller, Running
from tests.unit.forms.test_pod_allowance import GOOD, _with
from tests.unit.forms.test_tenant_objects import TRAINING, _paddle_job

PATH = "/api/v1/trainingjobs/"


def _form(caller: Caller, name: str, **more: Any) -> dict[str, Any]:
    digest = caller.upload({"train.py": b""})
    form = {"name": name, "entry": "fake hold=1", "pservers": 1, "package_digest": digest}
    return form | more


def test_submits_lists_and_deletes_as_jobs_does(user: Caller) -> None:
    made = user.post(PATH, _form(user, "fit", parallelism=2))
    assert (made.status, made.json) == (200, {"code": 200, "msg": ""})
    user.wait("fit", "running")
    listed = user.get(PATH).json
    assert (listed["api_version"], listed["kind"]) == ("paddlepaddle.org/v1", "TrainingJobList")
    (item,) = listed["items"]
    assert item["metadata"]["name"] == "fit"
    assert item["spec"]["trainer"]["min_instance"] == 2
    assert item["spec"]["trainer"]["entrypoint"] == "fake hold=1"
    assert item["status"]["phase"] == "running"
    assert {row["training_resource_type"] for row in item["status"]["replica_statuses"]} == {
        *("TRAINER", "PSERVER")
    }
    killed = user.call("DELETE", PATH, {"jobname": "fit"})
    assert (killed.status, killed.json["code"]) == (200, 200)
    assert user.wait("fit")["phase"] == "Killed"
    assert user.get(PATH).json["items"][0]["status"]["phase"] == "failed"


def test_has_the_other_dialect_too(user: Caller) -> None:
    assert user.post("/api/v1/trainingjobs", _form(user, "fit")).json["msg"] == "OK"
    (wish,) = user.get("/api/v1/trainingjobs").json["msg"]
    assert wish["name"] == "fit"
    assert user.call("DELETE", "/api/v1/trainingjobs", {"jobname": "fit", "rm": True}).status == 200


def test_a_platform_without_a_cluster_takes_no_objects(user: Caller) -> None:
    refused = user.post(PATH, TRAINING)
    assert (refused.status, refused.json["field"]) == (400, "kind")
    assert "no cluster" in refused.json["msg"]


@pytest.fixture
def cluster(make_server) -> Running:
    server: Running = make_server("tests.server.pulling_engine:Pulling")
    return server.start()


def test_takes_objects_where_there_is_a_cluster(cluster: Running) -> None:
    admin = cluster.admin
    job = _paddle_job(_with(("spec", "imagePullSecrets"), []))
    for path, body in ((PATH, TRAINING), ("/api/v2/jobs", job)):
        made = admin.post(path, body, Idempotency_Key=f"objects-{time.time_ns()}")
        assert made.status in (200, 201), made.body
        name = body["metadata"]["name"]
        ended = admin.wait(name)
        assert (ended["phase"], ended["package"], ended["output"]) == ("Succeeded", "", "")
    spec = admin.get("/api/v2/jobs/wide").json["spec"]
    assert spec["roles"][0]["template"]["spec"]["volumes"] == GOOD["spec"]["volumes"]
    assert admin.post("/api/v2/jobs/wide/rerun").status == 201
    assert admin.wait("wide")["run"] == 2


def test_refuses_a_hostile_object_on_every_path(cluster: Running) -> None:
    hostile = _with(("spec", "volumes", 9), {"name": "n", "hostPath": {"path": "/"}})
    hostile["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    hostile["metadata"]["namespace"] = "kube-system"
    for path in (PATH, "/api/v1/jobs/", "/api/v2/jobs", "/api/v2/jobs?dry_run=1"):
        refused = cluster.admin.post(path, _paddle_job(hostile, namespace="kube-system"))
        assert refused.status == 400
        assert [fault["field"] for fault in refused.json["faults"]] == [
            "metadata.namespace",
            "spec.worker.template.metadata.namespace",
            "spec.worker.template.spec.containers[0].securityContext.privileged",
            "spec.worker.template.spec.volumes[2].hostPath",
        ]
    assert cluster.admin.get("/api/v2/jobs?phase=all").json["items"] == []
