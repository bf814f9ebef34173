"""The job service of the second generation, as a client of the old package calls it."""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.server.running import Answer, Caller, Running
from tests.server.signing import Signer, authorization
from tests.server.test_access_keys import signer

JOB = {"jobName": "我的 job_1", "jobType": "paddle", "startCMD": "python train.py"}
CONF = {"clusterName": "local", "k8sTrainersCount": 1, "k8sCpuCores": 1, "k8sMemory": "64Mi"}


@pytest.fixture
def old(user: Caller) -> Signer:
    """A client of the old package."""
    return signer(user)


def ok(answer: Answer) -> Any:
    assert (answer.status, answer.json["code"]) == (200, 0), answer.body
    return answer.json["data"]


def send(old: Signer, name: str, content: str = "print(1)\n", **more: Any) -> Answer:
    body = {"version": 1, "fileName": name, "type": "new", "content": content, **more}
    return old.legacy("POST", "/v1/file", body)


def submit(old: Signer, **more: Any) -> str:
    return str(ok(old.legacy("POST", "/v1/job", {**JOB, "clusterConf": CONF, **more}))["jobId"])


def status(old: Signer, job_id: str) -> str:
    return str(ok(old.legacy("GET", f"/v1/jobStatus?jobId={job_id}"))["jobStatus"])


def wait_until(old: Signer, job_id: str, *words: str) -> str:
    """As the old client's users did: asking again and again."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := status(old, job_id)) not in words:
        assert time.monotonic() < deadline, found
        time.sleep(0.02)
    return found


# --- submitting ----------------------------------------------------------------------------------


def test_files_then_a_job_then_its_status(user: Caller, old: Signer) -> None:
    ok(send(old, "train.py", "print('héllo')\n"))
    ok(send(old, "./conf/before_hook.sh", "true\n"))
    ok(send(old, "model.bin", "AAEC", encoding="base64"))
    answer = old.legacy("POST", "/v1/job", {**JOB, "jobConf": 'a = "b"\n', "clusterConf": CONF})
    data = ok(answer)
    assert answer.json["message"] == "success"
    name = user.get("/api/v2/whoami").json["name"]
    assert data == {"jobId": data["jobId"], "groupName": name, "userId": name}
    job = user.get(f"/api/v2/jobs/{data['jobId']}").json
    assert job["spec"]["env"]["a"] == "b"
    assert job["spec"]["annotations"]["job-name"] == JOB["jobName"]
    folder = job["package"]
    listed = user.get(f"/api/v2/pfs/entries?recursive=1&path={folder}").json["entries"]
    files = {each["name"]: each["size"] for each in listed if each["type"] == "file"}
    assert files["env_run/train.py"] == len("print('héllo')\n".encode())
    assert files["env_run/model.bin"] == 3
    assert "env_run/before_hook.sh" in files
    assert "start.sh" in files
    assert status(old, data["jobId"]) in ("submit", "queue", "schedule", "running", "success")


def test_files_are_used_once(user: Caller, old: Signer) -> None:
    ok(send(old, "one.py"))
    submit(old)
    second = user.get(f"/api/v2/jobs/{submit(old)}").json["package"]
    listed = user.get(f"/api/v2/pfs/entries?recursive=1&path={second}").json["entries"]
    assert not [each["name"] for each in listed if each["name"].endswith("one.py")]


def test_files_belong_to_the_key_they_were_sent_with(user: Caller, old: Signer) -> None:
    ok(send(old, "mine.py"))
    folder = user.get(f"/api/v2/jobs/{submit(signer(user))}").json["package"]
    listed = user.get(f"/api/v2/pfs/entries?recursive=1&path={folder}").json["entries"]
    assert not [each["name"] for each in listed if each["name"].endswith("mine.py")]


def test_files_nobody_came_for_are_forgotten(make_server: Callable[..., Running]) -> None:
    server = make_server(PADDLECLOUD_DATABASE_URL="").start()
    old = signer(server.admin)
    ok(send(old, "forgotten.py"))
    with closing(sqlite3.connect(server.state / "server.db")) as rows, rows:
        rows.execute("UPDATE job_service_pendingfile SET sent_at = sent_at - 3001")
    ok(send(old, "fresh.py"))
    with closing(sqlite3.connect(server.state / "server.db")) as rows:
        names = rows.execute("SELECT name FROM job_service_pendingfile").fetchall()
    assert names == [("fresh.py",)]


def test_a_refused_job_leaves_the_files_waiting(user: Caller, old: Signer) -> None:
    ok(send(old, "kept.py"))
    assert old.legacy("POST", "/v1/job", {**JOB, "jobType": "x"}).status == 400
    folder = user.get(f"/api/v2/jobs/{submit(old)}").json["package"]
    listed = user.get(f"/api/v2/pfs/entries?recursive=1&path={folder}").json["entries"]
    assert [each["name"] for each in listed if each["name"].endswith("kept.py")]


@pytest.mark.parametrize(
    ("body", "field", "status"),
    [
        ({"content": "x"}, "fileName", 400),
        ({"fileName": "..", "content": "x"}, "fileName", 400),
        ({"fileName": "a/", "content": "x"}, "fileName", 400),
        ({"fileName": "a\nb", "content": "x"}, "fileName", 400),
        ({"fileName": "x" * 256, "content": "x"}, "fileName", 400),
        ({"fileName": "a.py"}, "content", 400),
        ({"fileName": "a.py", "content": 7}, "content", 400),
        ({"fileName": "a.py", "content": "!", "encoding": "base64"}, "content", 400),
        ({"fileName": "a.py", "content": "", "encoding": "gzip"}, "encoding", 400),
        ({"fileName": "a.py", "content": "", "version": 2}, "version", 400),
        ({"fileName": "a.py", "content": "", "type": "append"}, "type", 400),
        ({"fileName": "a.py", "content": "", "name": "b"}, "name", 400),
        ({"fileName": "a.py", "content": "x" * (1 << 20) + "x"}, "content", 413),
    ],
)
def test_refuses_a_file_by_what_is_wrong_with_it(
    old: Signer, body: Any, field: str, status: int
) -> None:
    answer = old.legacy("POST", "/v1/file", body)
    assert (answer.status, answer.json["code"], answer.json["field"]) == (status, status, field)
    assert answer.json["message"]


def test_takes_fifty_files_and_no_more(old: Signer) -> None:
    for number in range(50):
        ok(send(old, f"f{number}.py", "x" * ((1 << 20) if number == 0 else 1)))
    answer = send(old, "one-more.py")
    assert (answer.status, answer.json["field"]) == (413, "fileName")
    assert "50 files" in answer.json["message"]
    ok(send(old, "f7.py", "again"))  # the same name replaces
    submit(old)
    ok(send(old, "one-more.py"))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"startCMD": "x"}, "jobName"),
        ({"jobName": "x"}, "startCMD"),
        ({**JOB, "jobAuth": "everybody"}, "jobAuth"),
        ({**JOB, "clusterName": "mars"}, "clusterName"),
        ({**JOB, "clusterConf": {"k8sMemory": "10GB"}}, "clusterConf.k8sMemory"),
        ({**JOB, "clusterConf": {"k8sTrainersCount": "many"}}, "clusterConf.k8sTrainersCount"),
        ({**JOB, "clusterConf": {"k8sMemory": "99999Gi"}}, "clusterConf.k8sMemory"),
        ({**JOB, "jobVersion": "paddle-fluid-custom"}, "jobVersion"),
        ({**JOB, "jobnam": "x"}, "jobnam"),
        ({**JOB, "clusterConf": 7}, "clusterConf"),
    ],
)
def test_refuses_a_job_by_the_key_that_is_wrong(
    user: Caller, old: Signer, body: Any, field: str
) -> None:
    answer = old.legacy("POST", "/v1/job", body)
    assert answer.status in (400, 422), answer.body
    assert (answer.json["code"], answer.json["data"]) == (answer.status, None)
    assert field in [fault["field"] for fault in answer.json["faults"]] or (
        answer.json["field"] == field
    ), answer.body
    assert user.get("/api/v2/jobs?phase=all").json["items"] == []


@pytest.mark.parametrize("data", [b"[" * 100_000, b"{", b"[]", b"\xff", b""])
def test_survives_any_body(old: Signer, data: bytes) -> None:
    for method, path in (("POST", "/v1/job"), ("POST", "/v1/file"), ("PUT", "/v1/job")):
        headers = old.headers(data)
        headers["Authorization"] = authorization(old.ak, old.sk, method, path, headers)
        answer = old.send(method, path, headers, data)
        assert (answer.status, answer.json["field"]) == (400, "body")


def test_a_version_without_a_runtime_is_run_by_the_default_one(user: Caller, old: Signer) -> None:
    job_id = submit(old, jobVersion="paddle-fluid-v0.13")
    assert user.get(f"/api/v2/jobs/{job_id}").json["spec"]["runtime"] == ""
    data = ok(old.legacy("GET", f"/v1/job?jobId={job_id}"))
    assert data["jobVersion"] == "paddle-fluid-v0.13"


# --- again and again -----------------------------------------------------------------------------


def _exactly(
    old: Signer, method: str, path: str, body: Any, **headers: str
) -> Callable[[], Answer]:
    """A request that can be sent again byte for byte."""
    data = json.dumps(body).encode()
    sent = old.headers(data) | headers
    sent["Authorization"] = authorization(old.ak, old.sk, method, path, sent)
    return lambda: old.send(method, path, sent, data)


def test_the_same_submit_again_gets_the_first_answer(user: Caller, old: Signer) -> None:
    again = _exactly(old, "POST", "/v1/job", {**JOB, "clusterConf": CONF})
    first, second = again(), again()
    assert ok(first) == ok(second)
    assert len(user.get("/api/v2/jobs?phase=all").json["items"]) == 1


def test_a_submit_is_remembered_longer_than_its_job(old: Signer) -> None:
    again = _exactly(old, "POST", "/v1/job", {**JOB, "clusterConf": CONF})
    first = ok(again())
    ok(old.legacy("DELETE", "/v1/job", {"jobIds": [first["jobId"]]}))
    assert ok(again()) == first


def test_the_same_order_again_gets_the_first_answer(user: Caller, old: Signer) -> None:
    job_id = submit(old)
    ok(old.legacy("PUT", "/v1/job", {"jobIds": [job_id], "opType": "Kill"}))
    user.wait(job_id)
    again = _exactly(old, "PUT", "/v1/job", {"jobIds": [job_id], "opType": "Rerun"})
    assert again().body == again().body
    assert user.get(f"/api/v2/jobs/{job_id}").json["run"] == 2


def test_a_copy_with_another_body_under_the_same_id_is_refused(user: Caller, old: Signer) -> None:
    one, two = (json.dumps({**JOB, "jobName": name}).encode() for name in ("aaa", "bbb"))
    headers = old.headers(one)
    headers["Authorization"] = authorization(old.ak, old.sk, "POST", "/v1/job", headers)
    ok(old.send("POST", "/v1/job", headers, one))
    answer = old.send("POST", "/v1/job", headers, two)
    assert (answer.status, answer.json["code"]) == (409, 409)
    assert answer.json["message"] == "the request-id was used for another request"
    assert len(user.get("/api/v2/jobs?phase=all").json["items"]) == 1


# --- looking and ordering ------------------------------------------------------------------------


def test_lists_pages_newest_first(old: Signer) -> None:
    ids = [submit(old, jobName=f"job {number}") for number in range(3)]
    first = ok(old.legacy("GET", "/v1/job?type=normal&page=1&maxKeys=2"))["jobs"]
    second = ok(old.legacy("GET", "/v1/job?type=normal&page=2&maxKeys=2"))["jobs"]
    assert [job["jobId"] for job in first + second] == ids[::-1]
    assert first[0]["jobName"] == "job 2"
    assert {"jobStatus", "clusterName", "userId", "createTime", "demoFlag"} <= set(first[0])


@pytest.mark.parametrize(
    ("query", "field"),
    [("type=mine", "type"), ("page=0", "page"), ("maxKeys=x", "maxKeys"), ("jobId=", "jobId")],
)
def test_refuses_a_bad_question_by_its_parameter(old: Signer, query: str, field: str) -> None:
    answer = old.legacy("GET", f"/v1/job?{query}")
    assert (answer.status, answer.json["code"], answer.json["field"]) == (400, 400, field)


def test_one_job_with_all_about_it(user: Caller, old: Signer) -> None:
    conf = "MY = 1\nfs_ugi = user,password\nmy_password = hidden\n"
    job_id = submit(old, jobConf=conf, jobAuth="group", jobTags="t")
    user.wait(job_id, "running")
    data = ok(old.legacy("GET", f"/v1/job?jobId={job_id}"))
    assert (data["jobId"], data["jobName"]) == (job_id, JOB["jobName"])
    assert (data["startCMD"], data["jobAuth"], data["jobTags"]) == ("python train.py", "group", "t")
    assert 'MY = "1"' in data["jobConf"]
    assert "hidden" not in data["jobConf"]
    assert "password" not in data["jobConf"].replace("my_password", "")
    (trainer,) = data["trainerList"]
    assert trainer["resourceName"] == f"{job_id}-trainer-0"
    assert trainer["logUrl"].endswith(f"/api/v2/jobs/{job_id}/logs?replica=trainer-0")


def test_kill_rerun_and_delete(user: Caller, old: Signer) -> None:
    job_id = submit(old, startCMD="x", clusterConf={**CONF})
    order = {"jobIds": [job_id], "opType": "Kill"}
    assert ok(old.legacy("PUT", "/v1/job", order)) == {"jobIds": [job_id]}
    assert wait_until(old, job_id, "killed", "success") in ("killed", "success")
    ok(old.legacy("PUT", "/v1/job", {"jobIds": [job_id], "opType": "Rerun"}))
    assert user.get(f"/api/v2/jobs/{job_id}").json["run"] == 2
    ok(old.legacy("DELETE", "/v1/job", {"jobIds": [job_id]}))
    gone = old.legacy("GET", f"/v1/jobStatus?jobId={job_id}")
    assert (gone.status, gone.json["code"], gone.json["data"]) == (404, 404, None)


def test_orders_do_what_they_can_and_name_the_rest(old: Signer) -> None:
    job_id, missing = submit(old), "job-0123456789abcdef"
    answer = old.legacy("PUT", "/v1/job", {"jobIds": [missing, job_id], "opType": "Kill"})
    assert answer.status == 200
    assert answer.json["code"] != 0
    assert answer.json["data"]["jobIds"] == [job_id]
    assert answer.json["data"]["failed"][0]["jobId"] == missing
    assert missing in answer.json["message"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"jobIds": ["x"], "opType": "Stop"}, "opType"),
        ({"jobIds": [], "opType": "Kill"}, "jobIds"),
        ({"jobIds": "x", "opType": "Kill"}, "jobIds"),
        ({"jobIds": [1], "opType": "Kill"}, "jobIds"),
        ({"jobIds": ["x"], "opType": "Kill", "why": "y"}, "why"),
    ],
)
def test_refuses_a_bad_order_by_its_key(old: Signer, body: Any, field: str) -> None:
    answer = old.legacy("PUT", "/v1/job", body)
    assert (answer.status, answer.json["field"]) == (400, field)


def test_anothers_job_is_not_there(server: Running, old: Signer) -> None:
    theirs = server.admin.submit(f"theirs{uuid.uuid4().hex[:8]}")["id"]
    for method, path, body in (
        ("GET", f"/v1/job?jobId={theirs}", None),
        ("GET", f"/v1/jobStatus?jobId={theirs}", None),
        ("PUT", "/v1/job", {"jobIds": [theirs], "opType": "Kill"}),
        ("DELETE", "/v1/job", {"jobIds": [theirs]}),
    ):
        assert old.legacy(method, path, body).status == 404


def test_groups_and_quota_say_msg(user: Caller, old: Signer) -> None:
    answer = old.legacy("GET", "/v1/users_auth")
    assert (answer.json["code"], answer.json["msg"]) == (0, "success")
    assert "message" not in answer.json
    (group,) = answer.json["data"]
    assert group["name"] == user.get("/api/v2/whoami").json["name"]
    (physical,) = group["phy"]
    assert physical["cluster"]["name"] == "local"
    assert "host_name" in physical["cluster"]
    quota = old.legacy("GET", "/v1/quota?cluster_name=local")
    assert quota.json["data"]["cluster_name"] == "local"
    assert {"limits", "used", "total", "free"} <= set(quota.json["data"])
    assert [each["name"] for each in quota.json["data"]["groups"]] == [group["name"]]
    unknown = old.legacy("GET", "/v1/quota?cluster_name=mars")
    assert (unknown.status, unknown.json["field"]) == (400, "cluster_name")
    assert "message" not in unknown.json
    assert unknown.json["msg"]


def test_says_how_far_a_kill_has_come(user: Caller, old: Signer) -> None:
    job = user.submit("lingers", "fake hold=1 linger=60")
    user.wait(job["id"], "running")
    assert user.get(f"/api/v2/jobs/{job['id']}").json["kill"] is None
    ok(old.legacy("PUT", "/v1/job", {"jobIds": [job["id"]], "opType": "Kill"}))
    seen = user.get(f"/api/v2/jobs/{job['id']}").json
    while seen["kill"] == "asked":
        after = f"for=changed&after={seen['revision']}"
        seen = user.get(f"/api/v2/jobs/{job['id']}/wait?{after}&timeout_s=20").json
    assert (seen["phase"], seen["kill"]) == ("Running", "stopping")
    assert status(old, job["id"]) == "killing"
    assert ok(old.legacy("GET", f"/v1/job?jobId={job['id']}"))["jobStatus"] == "killing"
    listed = ok(old.legacy("GET", "/v1/job?type=normal"))["jobs"]
    assert [each["jobStatus"] for each in listed] == ["killing"]
    (row,) = user.get("/api/v2/jobs").json["items"]
    assert row["kill"] == "stopping"
