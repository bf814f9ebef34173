"""A slow, dead, lying or failing engine: reads go on, promises are kept, nobody is fooled."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.running import Caller, Running

SLOW = "paddlecloud.testing.bad_engines:SlowEngine"
DEAD = "paddlecloud.testing.bad_engines:DeadEngine"
LYING = "paddlecloud.testing.bad_engines:LyingEngine"


def _body(caller: Caller, name: str) -> dict[str, Any]:
    digest = caller.upload({"a": b""})
    return {"name": name, "entry": "fake", "mode": "single", "package_digest": digest}


@pytest.mark.parametrize("engine", [SLOW, DEAD])
def test_rows_are_read_while_the_engine_does_not_answer(make_server, engine: str) -> None:
    server: Running = make_server().start()
    server.admin.submit("before", "fake lines=3")
    server.admin.wait("before")
    server.admin.submit("lives", "fake hold=1")
    server.admin.wait("lives", "running")
    server.stop()
    server.engine = engine
    server.env["PADDLECLOUD_ENGINE_TIMEOUT_S"] = "0.2"
    server.start()
    admin = server.admin
    for _ in range(10):  # more often than there are threads for the engine
        assert admin.post("/api/v2/jobs", _body(admin, "new")).status == 503
        assert admin.get("/api/v2/jobs/before/logs").status == 503
    status = admin.get("/api/v2/status")
    assert status.json["capacity"] is None
    assert any("engine" in note for note in status.json["notes"])
    names = [job["name"] for job in admin.get("/api/v2/jobs?phase=all").json["items"]]
    assert names == ["lives", "before"]
    for path in ("", "/runs", "/replicas", "/events", "/wait?timeout_s=0"):
        assert admin.get(f"/api/v2/jobs/before{path}").status == 200
    assert admin.post("/api/v2/jobs/lives/cancel").json["kill"] == "asked"
    told = admin.get("/v1/jobStatus?jobId=lives")
    assert told.json["data"] == {"jobStatus": "kill_submit"}
    assert admin.get("/api/v1/jobs").status == 200
    assert server.stop() == 0


def test_keeps_asking_an_engine_that_fails(make_server) -> None:
    server: Running = make_server("tests.server.broken_engines:Forgetful").start()
    server.admin.submit("stubborn")
    assert server.admin.wait("stubborn")["phase"] == "Succeeded"
    assert "not now" in server.log.read_text()


def test_is_not_fooled_by_an_engine_that_lies(make_server) -> None:
    server: Running = make_server(LYING).start()
    job = server.admin.submit("honest")
    ended = server.admin.wait("honest")
    assert ended["phase"] == "Succeeded"
    events = server.admin.get("/api/v2/jobs/honest/events").json["items"]
    assert [event["reason"] for event in events] == ["Submitted", "Started", "Succeeded"]
    assert server.admin.get("/api/v2/jobs/job-ffffffffffffffff").status == 404
    assert server.admin.get("/api/v2/jobs?phase=all").json["items"][0]["id"] == job["id"]
    server.admin.submit("next")  # another batch, in which the first is said to run again
    server.admin.wait("next")
    assert server.admin.get("/api/v2/jobs/honest").json["phase"] == "Succeeded"
    assert server.admin.get("/api/v2/jobs/honest/runs").json["items"][0]["phase"] == "Succeeded"


def test_kills_what_the_engine_does_not_take(make_server) -> None:
    server: Running = make_server("tests.server.broken_engines:Refusing").start()
    server.admin.submit("stuck")
    assert server.admin.wait("stuck", timeout_s=0.3)["phase"] == "Submitted"
    server.admin.post("/api/v2/jobs/stuck/cancel", {"reason": "give up"})
    ended = server.admin.wait("stuck")
    assert (ended["phase"], ended["reason"]) == ("Killed", "give up")


def test_serves_one_account_where_there_is_no_sandbox(make_server) -> None:
    server: Running = make_server("tests.server.broken_engines:Alone").start()
    assert any("one account only" in n for n in server.admin.get("/api/v2/status").json["notes"])
    answer = server.admin.post("/api/v2/accounts", {"name": "second"})
    assert (answer.status, answer.json["code"]) == (409, "conflict")
    assert "no sandbox on this machine" in answer.json["message"]
    assert server.admin.post("/api/v2/jobs", _body(server.admin, "mine")).status == 201


def test_refuses_jobs_when_the_sandbox_is_gone_and_there_are_several_accounts(make_server) -> None:
    server: Running = make_server().start()
    server.account("second")
    server.stop()
    server.engine = "tests.server.broken_engines:Alone"
    server.start()
    answer = server.admin.post("/api/v2/jobs", _body(server.admin, "mine"))
    assert answer.status == 409
    assert "cannot be kept apart" in answer.json["message"]
