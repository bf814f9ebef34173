"""/api/v2/clusters: what there is, and what the caller may use of it."""

from __future__ import annotations

from collections.abc import Callable

from tests.server.running import Caller, Running


def test_says_what_is_there_and_what_is_left(user: Caller, server: Running) -> None:
    name = user.get("/api/v2/whoami").json["name"]
    limits = {"cpu": 4, "memory": "8Gi", "gpu": 2}
    assert server.admin.call("PUT", f"/api/v2/accounts/{name}/quota", limits).status == 200
    (cluster,) = user.get("/api/v2/clusters").json["items"]
    assert (cluster["name"], cluster["engine"], cluster["is_default"]) == ("local", "fake", True)
    assert cluster["total"] == {"cpu": "64", "memory": "256Gi", "gpu": 8}
    (group,) = cluster["groups"]
    assert group["name"] == name
    assert group["limits"] == {"cpu": "4", "memory": "8Gi", "gpu": 2, "replicas": None}
    assert group["idle"] == {"cpu": "4", "memory": "8Gi", "gpu": 2, "replicas": None}

    user.submit("holds", "fake hold=1", cpu=3, memory="1Gi", gpu=1)
    user.get("/api/v2/jobs/holds/wait?for=running")
    (group,) = user.get("/api/v2/clusters").json["items"][0]["groups"]
    assert group["used"] == {"cpu": "3", "memory": "1Gi", "gpu": 1, "replicas": 1}
    assert group["idle"] == {"cpu": "1", "memory": "7Gi", "gpu": 1, "replicas": None}
    user.post("/api/v2/jobs/holds/cancel")


def test_without_limits_what_is_free_is_left(user: Caller) -> None:
    (cluster,) = user.get("/api/v2/clusters").json["items"]
    idle = cluster["groups"][0]["idle"]
    assert {name: idle[name] for name in ("cpu", "memory", "gpu")} == cluster["free"]


def test_an_engine_that_does_not_answer_is_not_waited_for(
    make_server: Callable[..., Running],
) -> None:
    running = make_server("paddlecloud.testing.bad_engines:SlowEngine").start()
    (cluster,) = running.admin.get("/api/v2/clusters").json["items"]
    assert (cluster["total"], cluster["free"]) == (None, None)
    assert "did not answer within 1 s" in cluster["notes"][0]
    assert cluster["groups"][0]["idle"]["cpu"] is None


def test_every_group_has_what_is_left_for_it(user: Caller, server: Running) -> None:
    name = user.get("/api/v2/whoami").json["name"]
    body = {"name": f"team-{name}", "owner": name, "limit": {"cpu": 6, "gpu": 1}}
    assert server.admin.post("/api/v2/groups", body).status == 201
    elsewhere = {"name": f"far-{name}", "owner": name}
    assert server.admin.post("/api/v2/groups", elsewhere).status == 201
    server.admin.call("PUT", f"/api/v2/accounts/{name}/quota", {"cpu": 4})
    own, far, team = user.get("/api/v2/clusters").json["items"][0]["groups"]
    assert [each["name"] for each in (own, far, team)] == [name, f"far-{name}", f"team-{name}"]
    assert (own["limits"]["cpu"], own["idle"]["cpu"]) == ("4", "4")
    assert (team["limits"]["cpu"], team["limits"]["gpu"]) == ("6", 1)
    # The account's own limit holds in whatever group it asks.
    assert (team["idle"]["cpu"], team["idle"]["gpu"]) == ("4", 1)
