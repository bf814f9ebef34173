"""Registries of images: kept sealed, shown without passwords, given to engines, used by jobs."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.server.running import Caller, Running
from tests.server.test_access_keys import signer

GOOD = {"name": "hub", "username": "alice", "password": "s3cret-9", "server": "hub.example.com"}
PULLING = "tests.server.pulling_engine:Pulling"


def _save(caller: Caller, **change: Any) -> dict[str, Any]:
    answer = caller.post("/api/v2/registries", {**GOOD, **change})
    assert answer.status == 201, answer.body
    saved: dict[str, Any] = answer.json
    return saved


def _names(caller: Caller) -> list[str]:
    return [row["name"] for row in caller.get("/api/v2/registries").json["items"]]


def test_keeps_a_login_and_never_shows_its_password(user: Caller) -> None:
    saved = _save(user)
    (row,) = user.get("/api/v2/registries").json["items"]
    assert row == saved
    assert (row["name"], row["secret"]) == ("hub", "pcloud-registry-hub")
    assert (row["server"], row["username"]) == ("hub.example.com", "alice")
    assert "s3cret" not in json.dumps(saved)


def test_replaces_a_login_of_the_same_name(user: Caller) -> None:
    first = _save(user)
    again = _save(user, name="pcloud-registry-hub", username="bob")
    assert (again["username"], again["created_at"]) == ("bob", first["created_at"])
    assert _names(user) == ["hub"]


def test_belongs_to_one_account(server: Running, user: Caller) -> None:
    _save(user)
    other = server.account(f"other-{time.time_ns()}")
    assert _names(other) == []
    assert other.call("DELETE", "/api/v2/registries/hub").status == 404
    assert _names(user) == ["hub"]
    assert server.anonymous.get("/api/v2/registries").status == 401


def test_is_deleted_by_either_of_its_names(user: Caller) -> None:
    _save(user)
    assert user.call("DELETE", "/api/v2/registries/pcloud-registry-hub").status == 204
    gone = user.call("DELETE", "/api/v2/registries/hub")
    assert (gone.status, gone.json["message"]) == (404, "no registry hub")


def test_refuses_bad_input_by_field(user: Caller) -> None:
    answer = user.post("/api/v2/registries", {"name": "Bad Name", "password": "s3cret"})
    assert answer.status == 400
    fields = [fault["field"] for fault in answer.json["faults"]]
    assert fields == ["name", "server", "username"]
    assert "s3cret" not in answer.body.decode()
    assert user.post("/api/v2/registries", b"[]").status == 400


def test_has_a_most(user: Caller) -> None:
    for number in range(50):
        _save(user, name=f"hub{number}")
    assert user.post("/api/v2/registries", GOOD).status == 409
    assert user.post("/api/v2/registries", {**GOOD, "name": "hub7"}).status == 201


def test_the_same_request_again_changes_nothing(user: Caller) -> None:
    key = f"registry-{time.time_ns()}"
    first = user.post("/api/v2/registries", GOOD, Idempotency_Key=key)
    again = user.post("/api/v2/registries", GOOD, Idempotency_Key=key)
    assert (again.status, again.body) == (201, first.body)
    assert again.headers["idempotency-replayed"] == "true"


def test_needs_the_whole_account_of_an_access_key(user: Caller) -> None:
    narrow = signer(user, scope="submit")
    assert narrow.complete("POST", "/api/v2/registries", GOOD).status == 403
    assert narrow.complete("GET", "/api/v2/registries").status == 200


@pytest.mark.parametrize("slash", ["", "/"])
def test_serves_the_first_client(user: Caller, slash: str) -> None:
    path = f"/api/v1/registry{slash}"
    made = user.post(path, {**GOOD, "name": "pcloud-registry-hub"})
    assert (made.status, made.json) == (200, {"code": 200, "msg": ""})
    listed = user.get(path).json
    (item,) = listed["msg"]["items"]
    assert (listed["code"], item["metadata"]["name"]) == (200, "pcloud-registry-hub")
    assert item["metadata"]["creation_timestamp"].endswith("Z")
    assert "s3cret" not in json.dumps(listed)
    gone = user.call("DELETE", path, {"name": "pcloud-registry-hub"})
    assert (gone.status, gone.json["code"]) == (200, 200)
    assert user.call("DELETE", path, {}).status == 400
    assert user.call("DELETE", path, {"name": "hub"}).status == 404


def test_an_engine_without_images_says_that_it_does_not_use_one(user: Caller) -> None:
    job = user.submit("unused", registry="nobodys")
    events = user.get(f"/api/v2/jobs/{job['id']}/events").json["items"]
    assert "registry nobodys is not used: jobs of local have no images" in [
        event["message"] for event in events
    ]


def _told(server: Running) -> list[dict[str, Any]]:
    path = server.state / "registries.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _until_told(server: Running, count: int) -> list[dict[str, Any]]:
    deadline = time.monotonic() + PATIENCE_S
    while len(told := _told(server)) < count:
        assert time.monotonic() < deadline, told
        time.sleep(0.01)  # a file another process writes has no event to wait for
    return told


def test_an_engine_with_images_has_it_before_the_job(make_server) -> None:
    server: Running = make_server(PULLING).start()
    admin = server.admin
    digest = admin.upload({"a": b""})
    body = {"name": "pulls", "entry": "fake hold=1", "mode": "single", "package_digest": digest}
    refused = admin.post("/api/v2/jobs", {**body, "registry": "hub"})
    assert refused.status == 400
    assert (refused.json["field"], "you have no registry hub" in refused.json["message"]) == (
        "registry",
        True,
    )
    _save(admin)
    (told,) = _until_told(server, 1)
    login = json.loads(told["registries"]["hub"])["auths"]["hub.example.com"]
    assert (login["username"], login["password"]) == ("alice", "s3cret-9")
    made = admin.post("/api/v2/jobs", {**body, "registry": "hub"})
    assert made.status == 201, made.body
    admin.wait("pulls", "running")
    assert len(_told(server)) == 2
    spec = admin.get("/api/v2/jobs/pulls").json["spec"]
    assert spec["registry"] == "pcloud-registry-hub"
    kept = admin.call("DELETE", "/api/v2/registries/hub")
    assert (kept.status, "pulls" in kept.json["message"]) == (409, True)
    admin.post("/api/v2/jobs/pulls/cancel")
    admin.wait("pulls")
    assert admin.call("DELETE", "/api/v2/registries/hub").status == 204
    assert _until_told(server, 3)[-1]["registries"] == {}


def test_is_stored_sealed_and_told_again_after_a_start(make_server) -> None:
    server: Running = make_server(PULLING).start()
    _save(server.admin)
    _until_told(server, 1)
    server.stop()
    with closing(sqlite3.connect(server.state / "server.db")) as database:
        dump = "\n".join(database.iterdump())
    assert "hub.example.com" in dump
    assert "s3cret" not in dump
    assert "s3cret" not in server.log.read_text()
    server.start()
    assert "s3cret-9" in _until_told(server, 2)[-1]["registries"]["hub"]
