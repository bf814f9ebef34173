"""kill -9 at any moment: every accepted job exists exactly once, and none is forgotten."""

from __future__ import annotations

import http.client
import json
import random
import threading
from collections import Counter
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.server import dying
from tests.server.running import Running

ROUNDS = {"sqlite": 8, "postgres": 4}
PER_ROUND = 10


def _try_submit(server: Running, token: str, body: dict[str, Any], key: str) -> int:
    """The status, or 0 when the server was gone."""
    try:
        return server.caller(token).post("/api/v2/jobs", body, Idempotency_Key=key).status
    except (OSError, http.client.HTTPException, json.JSONDecodeError):
        return 0


@pytest.mark.slow
def test_every_key_is_exactly_one_job_after_kills_at_random_moments(
    make_server, store: str
) -> None:
    server: Running = make_server().start()
    token = server.admin_token
    digest = server.admin.upload({f"f{n}.py": b"x" * 100 for n in range(20)})
    chance = random.Random(7)
    answers: dict[str, int] = {}
    for round_number in range(ROUNDS[store]):
        killer = threading.Timer(chance.uniform(0.0, 0.05), server.kill_9)
        first_hit = chance.randrange(PER_ROUND)
        for number in range(PER_ROUND):
            if number == first_hit:
                killer.start()
            name = f"r{round_number}-{number}"
            body = _holding(name, digest)
            answers[name] = _try_submit(server, token, body, name)
        killer.join()
        server.start()
    assert set(answers.values()) >= {0, 201}, "no kill hit a submit: the test proves nothing"
    for name in answers:
        again = server.admin.post("/api/v2/jobs", _holding(name, digest), Idempotency_Key=name)
        # What was promised before must be there; what was not may be new now.
        assert again.status == 200 or answers[name] == 0, (name, answers[name], again.body)
        assert again.status in (200, 201), again.body
    jobs = _all_jobs(server)
    assert Counter(job["name"] for job in jobs) == dict.fromkeys(answers, 1)
    _wait_until_all_run(server, len(answers))
    home = server.state / "pfs" / "home" / "root" / "jobs"
    for name in answers:
        files = {path.name for path in (home / name).iterdir()}
        assert files == {f"f{n}.py" for n in range(20)} | {"output"}, name
    puts = Counter((record["job"], record["run"]) for record in map(json.loads, _records(server)))
    assert {key[0] for key in puts} == {job["id"] for job in jobs}
    assert {key[1] for key in puts} == {1}


def _holding(name: str, digest: str) -> dict[str, Any]:
    return {"name": name, "entry": "fake hold=1", "mode": "single", "package_digest": digest}


def _records(server: Running) -> list[str]:
    return (server.state / "fake-engine.jsonl").read_text().splitlines()


def _all_jobs(server: Running) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = server.admin.get(f"/api/v2/jobs?phase=all&limit=100{cursor}").json
        jobs += page["items"]
        if page["next"] is None:
            return jobs
        cursor = f"&cursor={page['next']}"


def _wait_until_all_run(server: Running, count: int) -> None:
    revision = 0
    while True:
        answer = server.admin.get(f"/api/v2/changes?after={revision}&timeout_s=20").json
        if [job["phase"] for job in _all_jobs(server)].count("Running") == count:
            return
        assert answer["revision"] > revision, "nothing changes any more and not all run"
        revision = answer["revision"]


@pytest.mark.parametrize("point", dying.POINTS)
def test_a_submit_cut_at_a_known_point_is_one_job_when_repeated(make_server, point: str) -> None:
    server: Running = make_server().start()
    token = server.admin_token
    digest = server.admin.upload({"a.py": b"1", "b.py": b"22"})
    server.stop()
    server.program = (dying.__file__, point)
    server.start()
    # The engine is told beside the answer, so there the client may have got its 201.
    allowed = (0, 201) if point == "before the engine knows" else (0,)
    assert _try_submit(server, token, _holding("cut", digest), "key") in allowed
    assert server.process is not None
    assert server.process.wait(PATIENCE_S) == -9
    server.program = ("-m", "paddlecloud.server")
    server.start()
    again = server.caller(token).post(
        "/api/v2/jobs", _holding("cut", digest), Idempotency_Key="key"
    )
    assert again.status == (201 if point == "before the commit" else 200), again.body
    assert server.admin.wait("cut", "running")["phase"] == "Running"
    assert len(_all_jobs(server)) == 1
    folder = server.state / "pfs" / "home" / "root" / "jobs" / "cut"
    assert sorted(path.name for path in folder.iterdir()) == ["a.py", "b.py", "output"]
    assert (folder / "b.py").read_bytes() == b"22"


def test_orders_given_before_a_crash_are_carried_out_after_it(make_server) -> None:
    server: Running = make_server().start()
    for name in ("stays", "killed", "deleted"):
        server.admin.submit(name, "fake hold=1")
        server.admin.wait(name, "running")
    # An engine that never answers: the orders are in the rows only when the server dies.
    server.stop()
    server.engine = "paddlecloud.testing.bad_engines:DeadEngine"
    server.start()
    assert server.admin.post("/api/v2/jobs/killed/cancel").status == 202
    assert server.admin.call("DELETE", "/api/v2/jobs/deleted").status == 204
    server.kill_9()
    server.engine = "fake"
    server.start()
    assert server.admin.wait("killed")["phase"] == "Killed"
    assert server.admin.wait("stays", "running")["phase"] == "Running"
    assert server.admin.get("/api/v2/jobs/deleted").status == 404
    revision = 0
    while server.admin.post("/api/v2/jobs", _body(server, "deleted")).status == 409:
        path = f"/api/v2/changes?after={revision}&timeout_s=5"
        revision = server.admin.get(path).json["revision"]


def _body(server: Running, name: str) -> dict[str, Any]:
    return {"name": name, "entry": "fake", "package_digest": server.admin.upload({"a": b""})}


def test_a_folder_that_cannot_be_filled_fails_the_job_with_the_reason(make_server) -> None:
    server: Running = make_server().start()
    digest = server.admin.upload({"a": b"1"})
    home = server.state / "pfs" / "home" / "root"
    (home / "jobs").mkdir()
    (home / "jobs" / "blocked").write_text("a file where the folder should be")
    body = {"name": "blocked", "entry": "fake", "package_digest": digest}
    answer = server.admin.post("/api/v2/jobs", body)
    assert answer.status == 201
    assert answer.json["phase"] == "Failed"
    assert "could not be filled" in answer.json["reason"]
    assert server.admin.get("/api/v2/jobs/blocked/runs").json["items"][0]["phase"] == "Failed"
