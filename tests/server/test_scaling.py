"""Another number of trainers: who may have it, and that the engine is told once."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.server.running import Caller, Running

SCALING = "tests.server.pulling_engine:Scaling"
RANGE = {"mode": "collective", "parallelism": 2, "min_instance": 1, "max_instance": 4}


def _told(server: Running, count: int) -> list[Any]:
    path, deadline = server.state / "sizes.jsonl", time.monotonic() + PATIENCE_S
    while True:
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        if len(rows) >= count:
            return rows
        assert time.monotonic() < deadline, rows
        time.sleep(0.01)  # a file another process writes has no event to wait for


def test_an_engine_that_can_is_told_once(make_server) -> None:
    server: Running = make_server(SCALING).start()
    admin = server.admin
    job = admin.submit("wide", "fake hold=1", **RANGE)
    admin.wait("wide", "running")
    answer = admin.post("/api/v2/jobs/wide/scale", {"trainers": 4})
    assert (answer.status, answer.json["id"]) == (202, job["id"])
    assert _told(server, 1) == [[job["id"], 1, 4]]  # although its first try failed
    messages = [row["message"] for row in admin.get("/api/v2/jobs/wide/events").json["items"]]
    assert "root asked for 4 trainers" in messages
    # Afterwards the cluster's own tools may change it: a restart does not repeat the order.
    server.stop()
    server.start()
    server.admin.post("/api/v2/jobs/wide/scale", {"trainers": 3})
    assert [row[2] for row in _told(server, 2)] == [4, 3]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (5, "must be from 1 to 4"),
        (0, "must be a whole number"),
        (True, "must be a whole number"),
        ("3", "must be a whole number"),
        (None, "must be a whole number"),
    ],
)
def test_refuses_a_size_that_cannot_be(scaling: Caller, wanted: object, message: str) -> None:
    refused = scaling.post("/api/v2/jobs/wide/scale", {"trainers": wanted})
    assert (refused.status, refused.json["field"]) == (400, "trainers")
    assert message in refused.json["message"]


@pytest.fixture(scope="module")
def scaling(tmp_path_factory: pytest.TempPathFactory) -> Any:
    server = Running(tmp_path_factory.mktemp("scaling") / "state", SCALING).start()
    server.admin.submit("wide", "fake hold=1", **RANGE)
    server.admin.submit("rigid", "fake hold=1", mode="collective", parallelism=2)
    yield server.admin
    server.stop()


def test_a_job_without_a_range_keeps_its_size(scaling: Caller) -> None:
    refused = scaling.post("/api/v2/jobs/rigid/scale", {"trainers": 3})
    assert (refused.status, "-max_instance" in refused.json["hint"]) == (400, True)
    scaling.post("/api/v2/jobs/rigid/cancel")
    scaling.wait("rigid")
    ended = scaling.post("/api/v2/jobs/rigid/scale", {"trainers": 2})
    assert (ended.status, "only a live job" in ended.json["message"]) == (409, True)


def test_an_engine_that_cannot_says_so(user: Caller) -> None:
    user.submit("stays", "fake hold=1")
    refused = user.post("/api/v2/jobs/stays/scale", {"trainers": 2})
    assert (refused.status, "keep the number" in refused.json["message"]) == (409, True)
    assert user.post("/api/v2/jobs/nobodys/scale", {"trainers": 2}).status == 404
