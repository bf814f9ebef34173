"""Moving replicas over /api/v2: what is refused with which words, and that an order arrives."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.server.running import Caller, Running


def held(user: Caller, name: str = "two") -> list[dict]:
    """The replicas of a job of two trainers that runs until it is killed."""
    user.submit(name, "fake hold=1", mode="collective", parallelism=2)
    user.get(f"/api/v2/jobs/{name}/wait?for=running")
    return attempts(user, name)


def attempts(user: Caller, name: str) -> list[dict]:
    items: list[dict] = user.get(f"/api/v2/jobs/{name}/replicas").json["items"]
    return items


def move(user: Caller, name: str, *replicas: tuple[str, str]):
    rows = [{"replica": replica, "host": host} for replica, host in replicas]
    return user.post(f"/api/v2/jobs/{name}/move", {"replicas": rows})


def until_moved(user: Caller, name: str) -> list[dict]:
    """All attempts once there is one more than before."""
    revision = 0
    while len(found := attempts(user, name)) < 3:
        path = f"/api/v2/jobs/{name}/wait?for=changed&after={revision}&timeout_s=5"
        revision = user.get(path).json["revision"]
    return found


@pytest.mark.parametrize("prefix", ["", "two-", "{id}-"])
def test_restarts_the_replica_that_is_named(user: Caller, prefix: str) -> None:
    replicas = held(user)
    job_id = user.get("/api/v2/jobs/two").json["id"]
    name = f"{prefix.format(id=job_id)}trainer-1"
    answer = move(user, "two", (name, replicas[1]["address"]))
    assert (answer.status, answer.json["id"]) == (202, job_id)
    after = [(each["index"], each["attempt"], each["state"]) for each in until_moved(user, "two")]
    assert after == [(0, 1, "Running"), (1, 1, "Ended"), (1, 2, "Running")]
    events = user.get("/api/v2/jobs/two/events").json["items"]
    assert {"MoveAsked", "Moved"} <= {event["reason"] for event in events}
    assert user.get("/api/v2/jobs/two").json["restarts"] == 0
    user.post("/api/v2/jobs/two/cancel")


def test_says_everything_that_is_wrong_and_does_nothing(user: Caller) -> None:
    replicas = held(user)
    here, there = (each["address"] for each in replicas)
    answer = move(user, "two", ("trainer-9", here), ("trainer-0", there), ("trainer-1", ""))
    assert answer.status == 400
    problems = {fault["field"]: fault["problem"] for fault in answer.json["faults"]}
    job_id = user.get("/api/v2/jobs/two").json["id"]
    assert f"the job has {job_id}-trainer-0, {job_id}-trainer-1" in problems["trainer-9"]
    assert problems["trainer-0"] == f"is not on {there}; it is on {here} or fake"
    assert "is not on no host" in problems["trainer-1"]
    twice = move(user, "two", ("trainer-0", here), ("two-trainer-0", here))
    assert "named twice" in twice.json["faults"][0]["problem"]
    assert len(attempts(user, "two")) == 2
    user.post("/api/v2/jobs/two/cancel")


@pytest.mark.parametrize(
    "body", [{}, {"replicas": []}, {"replicas": "x"}, {"replicas": [1]}, {"replicas": [{}]}]
)
def test_refuses_another_shape(user: Caller, body: dict) -> None:
    held(user)
    answer = user.post("/api/v2/jobs/two/move", body)
    assert (answer.status, answer.json["field"]) == (400, "replicas")
    user.post("/api/v2/jobs/two/cancel")


def test_a_job_without_replicas_has_nothing_to_move(user: Caller) -> None:
    user.submit("waits", "fake queue=1")
    user.get("/api/v2/jobs/waits/wait?for=changed")
    assert move(user, "waits", ("trainer-0", "h")).status == 409
    user.post("/api/v2/jobs/waits/cancel")
    user.wait("waits")
    answer = move(user, "waits", ("trainer-0", "h"))
    assert (answer.status, answer.json["message"].split(";")[0]) == (409, "waits is Killed")


def test_a_stranger_cannot_move_it(user: Caller, server: Running) -> None:
    replicas = held(user)
    job_id = user.get("/api/v2/jobs/two").json["id"]
    stranger = server.account(f"stranger-{job_id[4:]}")
    assert move(stranger, job_id, ("trainer-0", replicas[0]["address"])).status == 404
    user.post("/api/v2/jobs/two/cancel")


def test_an_order_is_told_again_by_a_server_that_was_killed(
    make_server: Callable[..., Running],
) -> None:
    """The engine forgets in this test, the rows do not: a real one then finds the order spent."""
    running = make_server().start()
    replicas = held(running.admin)
    assert move(running.admin, "two", ("trainer-0", replicas[0]["address"])).status == 202
    running.kill_9()
    running.start()
    found = until_moved(running.admin, "two")
    assert ("Running", 2) in {(each["state"], each["attempt"]) for each in found}
