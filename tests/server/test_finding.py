"""Jobs that somebody made on the cluster itself: seen, killed and run again like all others."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from paddlecloud.core.jobspec import JobSpec, to_json
from paddlecloud.testing.builders import make_spec
from tests.server.running import Caller, Running

FINDING = "tests.server.finding_engine:Finding"
TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "x"}]}}


def _foreign(number: int, name: str, *, account: str = "root", **more: Any) -> dict[str, Any]:
    template = more.pop("template", TEMPLATE)
    spec: JobSpec = replace(make_spec(name), entry=more.pop("entry", "fake hold=1"), **more)
    spec = replace(spec, roles=(replace(spec.trainers, template=template),))
    return {"job_id": f"job-{number:016x}", "account": account, "spec": to_json(spec)}


def _start(make_server: Any, *rows: dict[str, Any]) -> Running:
    server: Running = make_server(FINDING)
    server.state.mkdir(parents=True)
    (server.state / "foreign.json").write_text(json.dumps(rows))
    return server.start()


def _until_found(caller: Caller, count: int) -> None:
    seen = -1
    for _ in range(100):
        page = caller.get("/api/v2/jobs?phase=all").json
        if len(page["items"]) >= count:
            return
        seen = page["revision"]
        caller.get(f"/api/v2/changes?after={seen}&timeout_s=5")
    raise AssertionError(f"{count} jobs were not found; revision {seen}")


def test_a_job_made_with_kubectl_is_a_job_of_the_namespaces_account(make_server) -> None:
    server = _start(
        make_server, _foreign(1, "wide"), _foreign(2, "wide"), _foreign(3, "x", account="nobody")
    )
    admin = server.admin
    _until_found(admin, 2)
    assert admin.wait("job-0000000000000001", "running")["phase"] == "Running"
    admin.wait("job-0000000000000002", "running")
    listed = admin.get("/api/v2/jobs").json["items"]
    assert {(job["id"], job["name"]) for job in listed} == {
        ("job-0000000000000001", "wide"),
        ("job-0000000000000002", "wide-00000000"),
    }
    job = admin.get("/api/v2/jobs/wide").json
    assert (job["account"], job["group"], job["package"]) == ("root", "root", "")
    assert job["submitted_at"] == "2023-11-14T22:13:20.000Z"
    assert job["spec"]["annotations"] == {"made-with": "kubectl"}
    events = admin.get("/api/v2/jobs/wide/events").json["items"]
    assert events[0]["message"] == "made with kubectl, as wide"
    # It is there already: the server never makes another, not even after a restart.
    server.stop()
    server.start()
    admin = server.admin
    assert admin.get("/api/v2/jobs/job-0000000000000001").json["phase"] == "Running"
    made = (server.state / "fake-engine.jsonl").read_text().splitlines()
    assert len(made) == 2 * 3
    assert admin.post("/api/v2/jobs/job-0000000000000001/cancel").status == 202
    assert admin.wait("job-0000000000000001")["phase"] == "Killed"
    again = admin.post("/api/v2/jobs/job-0000000000000001/rerun")
    assert again.status == 201, again.body
    assert admin.wait("job-0000000000000001", "running")["run"] == 2


def test_a_rerun_is_held_to_what_a_tenant_may_say(make_server) -> None:
    mount = {"name": "paddlecloud-home", "mountPath": "/all"}
    template = {"spec": {"containers": [{"name": "c", "image": "x", "volumeMounts": [mount]}]}}
    row = _foreign(1, "curious", entry="fake", template=template)
    admin = _start(make_server, row).admin
    _until_found(admin, 1)
    assert admin.wait("job-0000000000000001")["phase"] == "Succeeded"
    refused = admin.post("/api/v2/jobs/curious/rerun")
    assert refused.status == 409
    assert "trainer.spec.containers[0].volumeMounts[0]" in refused.json["message"]


def test_nobody_can_pretend_that_a_job_was_found(make_server) -> None:
    admin = _start(make_server).admin
    body = {"name": "x", "entry": "fake", "annotations": {"made-with": "kubectl"}}
    body["package_digest"] = admin.upload({"a": b""})
    refused = admin.post("/api/v2/jobs", body)
    assert (refused.status, refused.json["field"]) == (400, "annotations")
