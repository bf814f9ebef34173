"""Jobs over /api/v2: what is accepted, what is listed, what orders do."""

from __future__ import annotations

import pytest

from tests.server.running import Caller, Running


def test_runs_a_job_from_submit_to_its_end(user: Caller) -> None:
    job = user.submit("one", "fake seconds=0.05 lines=2", mode="ps", parallelism=2, pservers=1)
    assert job["phase"] == "Submitted"
    assert job["roles"]["trainer"]["wanted"] == 2
    assert job["roles"]["pserver"]["wanted"] == 1
    ended = user.wait("one")
    assert (ended["phase"], ended["id"], ended["granted"]) == ("Succeeded", job["id"], 2)
    assert ended["started_at"] >= job["submitted_at"]
    assert ended["revision"] > job["revision"]
    assert ended["roles"]["trainer"] == {"wanted": 2, "running": 0, "succeeded": 2, "failed": 0}


def test_tells_how_a_job_failed(user: Caller) -> None:
    user.submit("bad", "fake exit=3")
    ended = user.wait("bad")
    assert ended["phase"] == "Failed"
    failure = ended["failure"]
    assert (failure["replica"], failure["cause"], failure["code"]) == ("trainer-0", "exited", 3)
    (replica,) = user.get("/api/v2/jobs/bad/replicas").json["items"]
    assert replica["name"] == "bad-trainer-0"
    assert replica["exit"]["code"] == 3
    reasons = [event["reason"] for event in user.get("/api/v2/jobs/bad/events").json["items"]]
    assert reasons == ["Submitted", "Started", "Failed"]


def test_fills_the_working_directory_from_the_package(user: Caller, server: Running) -> None:
    digest = user.upload({"train.py": b"1", "lib/deep/x.py": b"22"})
    job = user.submit("files", package_digest=digest)
    home = server.state / "pfs" / "home" / job["account"]
    folder = home / "jobs" / "files"
    assert job["package"] == f"/pfs/local/home/{job['account']}/jobs/files"
    assert (folder / "train.py").read_bytes() == b"1"
    assert (folder / "lib" / "deep" / "x.py").read_bytes() == b"22"
    assert (folder / "output").is_dir()
    assert home.stat().st_mode & 0o777 == 0o700


def test_never_loses_the_output_of_an_earlier_job(user: Caller, server: Running) -> None:
    first = user.submit("again")
    user.wait("again")
    home = server.state / "pfs" / "home" / first["account"]
    (home / "jobs" / "again" / "output" / "model").write_text("precious")
    second = user.submit("again")
    aside = f"/pfs/local/home/{first['account']}/jobs/.ended/again-{first['id']}"
    assert user.get(f"/api/v2/jobs/{first['id']}").json["package"] == aside
    assert user.get(f"/api/v2/jobs/{first['id']}/runs").json["items"][0]["package"] == aside
    kept = home / "jobs" / ".ended" / f"again-{first['id']}" / "output" / "model"
    assert kept.read_text() == "precious"
    assert second["package"].endswith("/jobs/again")
    assert not (home / "jobs" / "again" / "output" / "model").exists()
    user.wait("again")
    wishes = user.get("/api/v1/jobs").json["msg"]
    assert [wish["job_package"] for wish in wishes] == [second["package"], aside]


def test_keeps_what_was_uploaded_before_the_first_job(user: Caller, server: Running) -> None:
    name = user.get("/api/v2/whoami").json["name"]
    folder = server.state / "pfs" / "home" / name / "jobs" / "early"
    folder.mkdir(parents=True)
    (folder / "data.txt").write_text("mine")
    user.submit("early")
    assert (folder / "data.txt").read_text() == "mine"
    assert (folder / "train.py").exists()


def test_uses_a_pfs_path_in_place(user: Caller, server: Running) -> None:
    name = user.get("/api/v2/whoami").json["name"]
    folder = server.state / "pfs" / "home" / name / "my" / "code"
    folder.mkdir(parents=True)
    path = f"/pfs/local/home/{name}/my/code"
    answer = user.post(
        "/api/v2/jobs", {"name": "place", "entry": "fake", "job_package": path, "mode": "single"}
    )
    assert answer.status == 201, answer.body
    assert answer.json["package"] == path
    assert (folder / "output").is_dir()


@pytest.mark.parametrize(
    "path",
    ["/pfs/local/home/root", "/pfs/local/home/root/../{me}", "/pfs/elsewhere/home/{me}", "/etc"],
)
def test_refuses_a_package_that_is_not_the_callers(user: Caller, path: str) -> None:
    name = user.get("/api/v2/whoami").json["name"]
    body = {"name": "theirs", "entry": "fake", "job_package": path.format(me=name)}
    assert user.post("/api/v2/jobs", body).status in (400, 403)
    assert user.get("/api/v2/jobs?phase=all").json["items"] == []


def test_refuses_a_second_live_job_of_the_same_name(user: Caller) -> None:
    user.submit("same", "fake hold=1")
    digest = user.upload({"a": b""})
    body = {"name": "same", "entry": "fake", "package_digest": digest}
    answer = user.post("/api/v2/jobs", body)
    assert (answer.status, answer.json["code"]) == (409, "conflict")
    assert "paddlecloud kill same" in answer.json["hint"]
    assert answer.json["field"] == "name"
    user.post("/api/v2/jobs/same/cancel")
    assert user.wait("same")["phase"] == "Killed"
    assert user.post("/api/v2/jobs", body).status == 201


def test_two_accounts_may_use_the_same_name(user: Caller, server: Running) -> None:
    other = server.account("same-name")
    mine, theirs = user.submit("shared", "fake hold=1"), other.submit("shared", "fake hold=1")
    assert mine["id"] != theirs["id"]
    assert user.get("/api/v2/jobs/shared").json["id"] == mine["id"]


def test_reports_every_fault_of_a_body_at_once(user: Caller) -> None:
    body = {"name": "a_b", "memory": "10GB", "parallelism": "two", "wat": 1, "entry": "x"}
    answer = user.post("/api/v2/jobs", body)
    assert answer.status == 400
    assert {fault["field"] for fault in answer.json["faults"]} == {
        *("name", "memory", "parallelism", "wat")
    }


def test_refuses_what_can_never_fit_with_the_field(user: Caller) -> None:
    digest = user.upload({"a": b""})
    body = {"name": "huge", "entry": "fake", "gpu": 1000, "package_digest": digest}
    answer = user.post("/api/v2/jobs", body)
    assert (answer.status, answer.json["code"], answer.json["field"]) == (422, "cannot_fit", "gpu")
    assert [fault["field"] for fault in answer.json["faults"]] == ["gpu"]


@pytest.mark.parametrize(
    "entry",
    [{"entry": "paddle train"}, {"entry": "paddle  train --config=a.py"}, {"topology": "train.py"}],
)
def test_asks_for_an_entry_where_there_is_no_paddle_train(
    user: Caller, entry: dict[str, str]
) -> None:
    digest = user.upload({"a": b""})
    answer = user.post("/api/v2/jobs", {"name": "old", "package_digest": digest, **entry})
    assert (answer.status, answer.json["field"]) == (400, "entry")
    assert "-entry" in answer.json["hint"]


def test_refuses_an_unknown_runtime_and_names_those_there_are(user: Caller) -> None:
    digest = user.upload({"a": b""})
    body = {"name": "r", "entry": "fake", "runtime": "nope", "package_digest": digest}
    answer = user.post("/api/v2/jobs", body)
    assert (answer.status, answer.json["field"]) == (400, "runtime")
    assert "platform" in answer.json["hint"]


def test_refuses_what_the_callers_quota_can_never_hold(user: Caller, server: Running) -> None:
    server.admin.call("PUT", f"/api/v2/accounts/{_me(user)}/quota", {"cpu": 2})
    body = {"name": "greedy", "entry": "fake", "parallelism": 3, "pservers": 0}
    body["package_digest"] = user.upload({"a": b""})
    answer = user.post("/api/v2/jobs", body)
    assert (answer.status, answer.json["field"]) == (422, "cpu")
    assert "your quota is 2" in answer.json["message"]
    assert user.post("/api/v2/jobs", body | {"parallelism": 2}).status == 201


def test_a_dry_run_changes_nothing(user: Caller) -> None:
    digest = user.upload({"a": b""})
    body = {"name": "dry", "entry": "fake", "parallelism": 3, "package_digest": digest}
    answer = user.post("/api/v2/jobs?dry_run=1", body)
    assert answer.status == 200, answer.body
    assert answer.json["effective"]["trainers"] == 3
    assert answer.json["effective"]["pservers"] == 3
    assert answer.json["starts"] == "now"
    assert user.get("/api/v2/jobs?phase=all").json["items"] == []


def test_a_dry_run_refuses_what_a_submit_would(user: Caller) -> None:
    user.submit("taken", "fake hold=1")
    body = {"name": "taken", "entry": "fake"}
    assert user.post("/api/v2/jobs?dry_run=1", body).status == 409
    huge = {"name": "huge", "entry": "fake", "gpu": 1000}
    assert user.post("/api/v2/jobs?dry_run=1", huge).status == 422


def test_a_dry_run_says_what_would_have_to_wait(user: Caller, server: Running) -> None:
    server.admin.call("PUT", f"/api/v2/accounts/{_me(user)}/quota", {"replicas": 1})
    digest = user.upload({"a": b""})
    user.submit("holds", "fake hold=1", package_digest=digest)
    user.wait("holds", "running")
    body = {"name": "more", "entry": "fake", "mode": "single", "package_digest": digest}
    answer = user.post("/api/v2/jobs?dry_run=1", body)
    assert answer.json["starts"] == "later", answer.body
    assert answer.json["reason"]


def _me(caller: Caller) -> str:
    name: str = caller.get("/api/v2/whoami").json["name"]
    return name


def test_explains_a_waiting_job(user: Caller) -> None:
    job = user.submit("waits", "fake queue=1")
    user.get(f"/api/v2/jobs/waits/wait?for=changed&after={job['revision']}")
    answer = user.get("/api/v2/jobs/waits/explain").json
    assert answer["waiting"] is True
    assert answer["position"] >= 1
    assert answer["reason"] == "waits for cpu"
    user.post("/api/v2/jobs/waits/cancel")
    user.wait("waits")
    assert user.get("/api/v2/jobs/waits/explain").json["waiting"] is False


def test_kills_with_the_reason_it_was_given(user: Caller) -> None:
    user.submit("victim", "fake hold=1")
    answer = user.post("/api/v2/jobs/victim/cancel", {"reason": "enough"})
    assert answer.status == 202
    ended = user.wait("victim")
    assert (ended["phase"], ended["reason"]) == ("Killed", "enough")
    assert user.post("/api/v2/jobs/victim/cancel").status == 202  # ended: left alone
    assert user.get("/api/v2/jobs/victim").json["reason"] == "enough"


def test_runs_an_ended_job_again_under_the_same_id(user: Caller, server: Running) -> None:
    job = user.submit("twice", "fake lines=1")
    user.wait("twice")
    home = server.state / "pfs" / "home" / job["account"] / "jobs"
    (home / "twice" / "output" / "model").write_text("one")
    answer = user.post("/api/v2/jobs/twice/rerun")
    assert answer.status == 201
    assert (answer.json["id"], answer.json["run"]) == (job["id"], 2)
    assert user.wait("twice")["phase"] == "Succeeded"
    runs = user.get("/api/v2/jobs/twice/runs").json["items"]
    assert [(run["run"], run["phase"]) for run in runs] == [(1, "Succeeded"), (2, "Succeeded")]
    assert runs[0]["package"].endswith(f"/jobs/.ended/twice-{job['id']}-run1")
    assert runs[1]["package"].endswith("/jobs/twice")
    aside = home / ".ended" / f"twice-{job['id']}-run1"
    assert (aside / "output" / "model").read_text() == "one"
    assert (home / "twice" / "train.py").exists()
    assert len(user.get("/api/v2/jobs/twice/replicas?run=1").json["items"]) == 1
    assert user.get("/api/v2/jobs/twice/replicas?run=3").status == 404


def test_refuses_to_run_a_live_job_again(user: Caller) -> None:
    user.submit("alive", "fake hold=1")
    assert user.post("/api/v2/jobs/alive/rerun").status == 409


def test_deletes_an_ended_job(user: Caller) -> None:
    job = user.submit("gone")
    user.wait("gone")
    assert user.call("DELETE", "/api/v2/jobs/gone").status == 204
    assert user.get("/api/v2/jobs/gone").status == 404
    assert user.get(f"/api/v2/jobs/{job['id']}/events").status == 404
    assert user.get("/api/v2/jobs?phase=all").json["items"] == []


def test_deleting_a_live_job_kills_it_first(user: Caller) -> None:
    user.submit("dying", "fake hold=1")
    user.wait("dying", "running")
    revision = user.get("/api/v2/jobs").json["revision"]
    assert user.call("DELETE", "/api/v2/jobs/dying").status == 204
    assert user.get("/api/v2/jobs/dying").status == 404
    while user.post("/api/v2/jobs", _again(user)).status == 409:  # until the engine has ended it
        revision = user.get(f"/api/v2/changes?after={revision}&timeout_s=1").json["revision"]


def _again(user: Caller) -> dict[str, str]:
    return {"name": "dying", "entry": "fake", "package_digest": user.upload({"a": b""})}


def test_finds_the_live_job_of_a_name_else_the_latest(user: Caller) -> None:
    first = user.submit("n")
    user.wait("n")
    second = user.submit("n")
    user.wait("n")
    assert user.get("/api/v2/jobs/n").json["id"] == second["id"]
    assert user.get(f"/api/v2/jobs/{first['id']}").json["id"] == first["id"]
    third = user.post("/api/v2/jobs/" + first["id"] + "/rerun").json
    assert third["id"] == first["id"]
    user.wait(first["id"])
