"""What an account may store: set by the administrator, told to the file server by whoami."""

from __future__ import annotations

from collections.abc import Callable

from tests.server.running import Caller, Running

GIB = 1 << 30


def test_says_who_calls_and_what_they_may_store(server: Running, user: Caller) -> None:
    facts = user.get("/api/v2/whoami").json
    assert facts["storage"] == {"bytes": None, "files": None}
    assert (facts["admin"], facts["clusters"], facts["job_id"]) == (False, ["local"], "")
    assert facts["uid"] is None or facts["uid"] > facts["id"]


def test_sets_storage_limits_and_leaves_them_alone_when_others_change(
    server: Running, user: Caller
) -> None:
    name = user.get("/api/v2/whoami").json["name"]
    path = f"/api/v2/accounts/{name}/quota"
    answer = server.admin.call("PUT", path, {"storage": "2Gi", "files": 1000})
    assert answer.json["limits"]["storage"] == "2Gi"
    assert server.admin.call("PUT", path, {"cpu": 4}).json["limits"]["files"] == 1000
    assert user.get("/api/v2/whoami").json["storage"] == {"bytes": 2 * GIB, "files": 1000}
    server.admin.call("PUT", path, {"storage": None, "files": None})
    assert user.get("/api/v2/whoami").json["storage"] == {"bytes": None, "files": None}


def test_refuses_a_limit_that_is_no_quantity(server: Running, user: Caller) -> None:
    name = user.get("/api/v2/whoami").json["name"]
    path = f"/api/v2/accounts/{name}/quota"
    answer = server.admin.call("PUT", path, {"storage": "much", "files": "1.5x"})
    assert answer.status == 400
    assert [fault["field"] for fault in answer.json["faults"]] == ["storage", "files"]


def test_applies_the_platform_s_default_until_somebody_decides(
    make_server: Callable[..., Running],
) -> None:
    server = make_server(PADDLECLOUD_STORAGE_BYTES="1Gi", PADDLECLOUD_STORAGE_FILES="50").start()
    bob = server.account("bob")
    assert bob.get("/api/v2/whoami").json["storage"] == {"bytes": GIB, "files": 50}
    server.admin.call("PUT", "/api/v2/accounts/bob/quota", {"cpu": 1, "files": None})
    assert bob.get("/api/v2/whoami").json["storage"] == {"bytes": GIB, "files": None}
