"""Algorithms over /api/v2: whose they are, which jobs are theirs, what is refused."""

from __future__ import annotations

import re

import pytest

from tests.server.running import Caller, Running

PATH = "/api/v2/algorithms"


def create(user: Caller, name: str = "ctr", **more: str) -> dict:
    answer = user.post(PATH, {"name": name, **more})
    assert answer.status == 201, answer.body
    return answer.json


def test_makes_lists_and_forgets_one(user: Caller) -> None:
    made = create(user, remark="wide")
    assert re.fullmatch(r"algo-[0-9a-f]{16}", made["id"])
    assert (made["name"], made["remark"], made["jobs"]) == ("ctr", "wide", 0)
    second = create(user, "宽 2")
    assert {each["id"] for each in user.get(PATH).json["items"]} == {made["id"], second["id"]}
    assert user.get(f"{PATH}/ctr").json["id"] == made["id"]
    assert user.call("DELETE", f"{PATH}/{made['id']}").status == 204
    assert user.get(f"{PATH}/{made['id']}").status == 404
    assert [each["id"] for each in user.get(PATH).json["items"]] == [second["id"]]


def test_a_name_is_there_once(user: Caller, server: Running) -> None:
    create(user)
    answer = user.post(PATH, {"name": "ctr"})
    assert (answer.status, answer.json["field"]) == (409, "name")
    create(server.account("namesake"))


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["name"]),
        ({"name": "  "}, ["name"]),
        ({"name": 5, "group": 5, "remark": 5}, ["name", "group", "remark"]),
        ({"name": "x" * 129}, ["name"]),
        ({"name": "a\nb"}, ["name"]),
        ({"name": "a", "remark": "x" * 4097}, ["remark"]),
        ({"name": "a", "group": "not-mine"}, ["group"]),
        ({"name": "a", "colour": "red"}, ["colour"]),
    ],
)
def test_refuses_with_all_faults(user: Caller, body: dict, fields: list[str]) -> None:
    answer = user.post(PATH, body)
    assert answer.status == 400
    assert [fault["field"] for fault in answer.json["faults"]] == fields
    assert user.get(PATH).json["items"] == []


def test_jobs_belong_to_it(user: Caller) -> None:
    made = create(user)
    notes = {"algo-id": made["id"], "job-name": "a_b:1"}
    job = user.submit("in-it", "fake hold=1", annotations=notes)
    user.submit("beside-it")
    found = user.get(f"{PATH}/{made['id']}").json
    assert found["jobs"] == 1
    assert [(each["id"], each["title"]) for each in found["items"]] == [(job["id"], "a_b:1")]
    refused = user.call("DELETE", f"{PATH}/{made['id']}")
    assert (refused.status, job["id"] in refused.json["message"]) == (409, True)
    user.post("/api/v2/jobs/in-it/cancel")
    user.wait("in-it")
    assert user.call("DELETE", f"{PATH}/{made['id']}").status == 204
    spec = user.get("/api/v2/jobs/in-it").json["spec"]
    assert spec["annotations"]["algo-id"] == made["id"]


def test_a_job_that_names_none_of_ones_own_is_refused(user: Caller, server: Running) -> None:
    theirs = create(server.account(f"owner-{id(user)}"))
    for ref in (theirs["id"], "algo-0000000000000000", "nonsense"):
        body = {"name": "x", "entry": "fake", "annotations": {"algo-id": ref}}
        digest = user.upload({"train.py": b"1"})
        answer = user.post("/api/v2/jobs", {**body, "package_digest": digest})
        assert (answer.status, answer.json["field"]) == (400, "algo-id")
        dry = user.post("/api/v2/jobs?dry_run=1", body)
        assert (dry.status, dry.json["field"]) == (400, "algo-id")
    assert user.get("/api/v2/jobs?phase=all").json["items"] == []


def test_strangers_do_not_see_it_and_administrators_do(user: Caller, server: Running) -> None:
    made = create(user)
    stranger = server.account(f"stranger-{made['id'][5:]}")
    for method, path in (("GET", f"{PATH}/{made['id']}"), ("DELETE", f"{PATH}/{made['id']}")):
        assert stranger.call(method, path).status == 404
    assert stranger.get(PATH).json["items"] == []
    assert server.admin.get(f"{PATH}/{made['id']}").json["name"] == "ctr"


def test_ones_own_group_may_be_named(user: Caller) -> None:
    name = user.get("/api/v2/whoami").json["name"]
    assert create(user, group=name)["group"] == name


def test_members_of_its_group_use_it_but_do_not_delete_it(user: Caller, server: Running) -> None:
    owner = user.get("/api/v2/whoami").json["name"]
    group = f"team-{owner}"
    made_group = server.admin.post("/api/v2/groups", {"name": group, "owner": owner})
    assert made_group.status == 201, made_group.body
    mate = server.account(f"mate-{owner}")
    made = create(user, group=group)
    path = f"{PATH}/{made['id']}"
    assert mate.get(path).status == 404
    member = {"account": f"mate-{owner}", "role": "member"}
    assert user.call("PUT", f"/api/v2/groups/{group}/members", member).status == 200
    assert [each["id"] for each in mate.get(PATH).json["items"]] == [made["id"]]
    mate.submit("mine", annotations={"algo-id": made["id"]})
    assert [each["name"] for each in mate.get(path).json["items"]] == ["mine"]
    seen = user.get(path).json
    assert (seen["jobs"], seen["items"]) == (1, [])  # a job is its owner's to show
    mate.wait("mine")
    refused = mate.call("DELETE", path)
    assert (refused.status, "who alone can delete it" in refused.json["message"]) == (409, True)
    assert user.call("DELETE", path).status == 204
