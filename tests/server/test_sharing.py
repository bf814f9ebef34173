"""Marks on jobs and jobs shared with a group, in the lists of the job service and of our own."""

from __future__ import annotations

import uuid

import pytest

from tests.server.running import Caller, Running
from tests.server.signing import Signer
from tests.server.test_access_keys import signer
from tests.server.test_job_service import CONF, JOB, ok, status, submit


@pytest.fixture
def old(user: Caller) -> Signer:
    """A client of the old package."""
    return signer(user)


def _ids(old: Signer, kind: str) -> list[str]:
    return [job["jobId"] for job in ok(old.legacy("GET", f"/v1/job?type={kind}"))["jobs"]]


def test_favorites_are_what_was_marked(user: Caller, old: Signer) -> None:
    one, two = submit(old), submit(old)
    assert _ids(old, "favorite") == []
    for _ in range(2):
        assert user.call("PUT", f"/api/v2/jobs/{one}/favorite").status == 204
    assert _ids(old, "favorite") == [one]
    items = user.get("/api/v2/jobs?phase=all&type=favorite").json["items"]
    assert [item["id"] for item in items] == [one]
    assert user.call("DELETE", f"/api/v2/jobs/{one}/favorite").status == 204
    assert user.call("PUT", f"/api/v2/jobs/{two}/favorite").status == 204
    assert _ids(old, "favorite") == [two]
    ok(old.legacy("DELETE", "/v1/job", {"jobIds": [two]}))
    assert _ids(old, "favorite") == []


def test_nobody_marks_what_they_may_not_see(server: Running, user: Caller) -> None:
    theirs = server.admin.submit(f"marked{uuid.uuid4().hex[:8]}")["id"]
    assert user.call("PUT", f"/api/v2/jobs/{theirs}/favorite").status == 404


def test_the_list_of_the_group_is_what_is_shared(
    server: Running, user: Caller, old: Signer
) -> None:
    submit(old)
    shared = submit(old, jobAuth="group")
    assert _ids(old, "group") == [shared]
    items = user.get("/api/v2/jobs?phase=all&type=group").json["items"]
    assert [item["id"] for item in items] == [shared]
    # The name of somebody else's group is refused as one that does not exist.
    name = user.get("/api/v2/whoami").json["name"]
    intruder = signer(server.account(f"{name}-intruder"))
    for group in (name, "no-such-group"):
        wish = {**JOB, "clusterConf": CONF, "jobAuth": "group", "groupName": group}
        answer = intruder.legacy("POST", "/v1/job", wish)
        assert (answer.status, answer.json["message"]) == (400, f"no group {group}")
    assert _ids(old, "group") == [shared]
    assert intruder.legacy("GET", f"/v1/jobStatus?jobId={shared}").status == 404


def test_members_of_a_group_look_at_what_is_shared_with_it(
    server: Running, user: Caller, old: Signer
) -> None:
    name = user.get("/api/v2/whoami").json["name"]
    group, friend = f"{name}-team", server.account(f"{name}-friend")
    assert server.admin.post("/api/v2/groups", {"name": group}).status == 201
    for account in (name, f"{name}-friend"):
        body = {"account": account, "role": "member"}
        assert server.admin.call("PUT", f"/api/v2/groups/{group}/members", body).status == 200
    seen = ok(old.legacy("GET", "/v1/users_auth"))
    assert sorted(each["name"] for each in seen) == sorted([name, group])

    conf = "my_password = hidden\n"
    job_id = submit(old, groupName=group, jobAuth="group", jobConf=conf)
    other = signer(friend)
    assert _ids(other, "group") == [job_id]
    assert _ids(other, "normal") == []
    assert status(other, job_id)
    assert ok(other.legacy("GET", f"/v1/job?jobId={job_id}"))["userId"] == name
    for caller in (friend, user):
        found = caller.get(f"/api/v2/jobs/{job_id}")
        assert found.json["spec"]["env"]["my_password"] == "******"
        assert "hidden" not in found.body.decode()
    assert friend.call("PUT", f"/api/v2/jobs/{job_id}/favorite").status == 204
    assert _ids(other, "favorite") == [job_id]
    for method, body in (("PUT", {"jobIds": [job_id], "opType": "Rerun"}),
                         ("DELETE", {"jobIds": [job_id]})):  # fmt: skip
        answer = other.legacy(method, "/v1/job", body)
        assert (answer.status, "only who submitted it" in answer.json["message"]) == (403, True)
