"""Groups over the API: who sees and changes what, whose quota a job counts, who may kill."""

from __future__ import annotations

import itertools
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing

import pytest

from tests.server.running import Caller, Running

GROUPS = "/api/v2/groups"
_numbers = itertools.count(1)


@pytest.fixture
def name() -> str:
    return f"group{next(_numbers)}"


def people(server: Running, *names: str) -> list[tuple[str, Caller]]:
    """Somebody new for each of these words."""
    made = []
    for word in names:
        full = f"{word}-{next(_numbers)}"
        made.append((full, server.account(full)))
    return made


def make(server: Running, name: str, **more) -> dict:
    answer = server.admin.post(GROUPS, {"name": name, **more})
    assert answer.status == 201, answer.body
    return answer.json


def put(caller: Caller, path: str, body: dict) -> int:
    return caller.call("PUT", path, body).status


def add(server: Running, group: str, account: str, role: str = "member") -> None:
    assert put(server.admin, f"{GROUPS}/{group}/members", {"account": account, "role": role}) == 200


# --- every account's own ------------------------------------------------------------------------


def test_every_account_has_a_group_of_its_own(server, user):
    me = user.get("/api/v2/whoami").json["name"]
    (own,) = user.get(GROUPS).json["items"]
    assert (own["name"], own["own"], own["role"], own["weight"]) == (me, True, "owner", 1)
    assert own["guarantee"] == own["limit"] == dict.fromkeys(("cpu", "memory", "gpu", "replicas"))


def test_a_job_counts_for_its_accounts_own_group_unless_told(server, user):
    me = user.get("/api/v2/whoami").json["name"]
    job = user.submit("mine", "fake hold=1")
    user.wait(job["id"], "running")
    assert user.get(f"/api/v2/jobs/{job['id']}").json["spec"]["group"] == me
    info = user.get(f"{GROUPS}/{me}").json
    assert info["used"] == {"cpu": "1", "memory": "1Gi", "gpu": 0, "replicas": 1}
    assert info["jobs"] == {"running": 1, "waiting": 0}


def test_an_own_group_cannot_be_removed_or_left(server, user):
    me = user.get("/api/v2/whoami").json["name"]
    assert server.admin.call("DELETE", f"{GROUPS}/{me}").status == 409
    assert user.post(f"{GROUPS}/{me}/members/remove", {"account": me}).status == 409


def test_an_account_cannot_be_called_like_a_group(server, name):
    make(server, name)
    answer = server.admin.post("/api/v2/accounts", {"name": name})
    assert (answer.status, answer.json["field"]) == (409, "name")
    assert server.admin.post(GROUPS, {"name": "root"}).status == 409


# --- who sees and changes what ------------------------------------------------------------------


def test_strangers_do_not_learn_that_a_group_exists(server, user, name):
    make(server, name)
    there, nowhere = user.get(f"{GROUPS}/{name}"), user.get(f"{GROUPS}/no-such-group")
    assert (there.status, nowhere.status) == (404, 404)
    assert there.json["message"].replace(name, "X") == "no group X"
    body = {"account": "root", "role": "viewer"}
    assert put(user, f"{GROUPS}/{name}/members", body) == 404
    assert name not in [each["name"] for each in user.get(GROUPS).json["items"]]


def test_only_administrators_make_groups_and_set_quota(server, user, name):
    assert user.post(GROUPS, {"name": name}).status == 403
    me = user.get("/api/v2/whoami").json["name"]
    assert put(user, f"{GROUPS}/{me}/quota", {"weight": 9}) == 403
    assert user.call("DELETE", f"{GROUPS}/{me}").status == 403


def test_an_owner_decides_who_is_in(server, name):
    (boss, owner), (mate, member), (guest, viewer) = people(server, "boss", "mate", "guest")
    make(server, name, owner=boss)
    members = f"{GROUPS}/{name}/members"
    assert put(owner, members, {"account": mate}) == 200
    assert put(owner, members, {"account": guest, "role": "viewer"}) == 200
    for caller in (member, viewer):
        assert put(caller, members, {"account": "root"}) == 403
        assert len(caller.get(f"{GROUPS}/{name}").json["members"]) == 3
    assert owner.post(f"{members}/remove", {"account": guest}).status == 204
    assert viewer.get(f"{GROUPS}/{name}").status == 404
    assert owner.post(f"{members}/remove", {"account": guest}).status == 404
    last = owner.post(f"{members}/remove", {"account": boss})
    assert (last.status, "last owner" in last.json["message"]) == (409, True)


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"limit": {"gpu": -1}, "weight": 0}, ["limit.gpu", "weight"]),
        ({"guarantee": {"cpu": 4}, "limit": {"cpu": 2}}, ["limit.cpu"]),
        ({"guarantee": {"disk": 4}, "clusters": ["mars"]}, ["guarantee.disk", "clusters"]),
        ({"limit": 4, "weight": True, "quota": {}}, ["quota", "limit", "weight"]),
        ({"limit": {"memory": "10GB"}}, ["limit.memory"]),
    ],
)
def test_refuses_a_bad_quota_with_every_fault(server, name, body, fields):
    make(server, name)
    answer = server.admin.call("PUT", f"{GROUPS}/{name}/quota", body)
    assert answer.status == 400, answer.body
    assert [fault["field"] for fault in answer.json["faults"]] == fields
    assert server.admin.get(f"{GROUPS}/{name}").json["weight"] == 1


def test_quota_that_is_left_out_stays_and_null_removes_it(server, name):
    make(server, name, limit={"gpu": 8, "cpu": "10"}, guarantee={"gpu": 0}, weight=3)
    path = f"{GROUPS}/{name}/quota"
    answer = server.admin.call("PUT", path, {"limit": {"cpu": None}, "clusters": ["local"]}).json
    assert answer["limit"] == {"cpu": None, "memory": None, "gpu": 8, "replicas": None}
    assert (answer["guarantee"]["gpu"], answer["weight"]) == (0, 3)
    assert answer["clusters"] == ["local"]


def test_idle_quota_is_what_is_left_of_the_limit_as_far_as_it_is_free(server, name):
    info = make(server, name, limit={"gpu": 1})
    assert info["idleQuota"]["gpu"] == 1
    more = server.admin.call("PUT", f"{GROUPS}/{name}/quota", {"limit": {"gpu": 10_000}}).json
    free = server.admin.get("/api/v2/status").json["capacity"]["free"]
    assert more["idleQuota"]["gpu"] == free["gpu"]


def test_says_when_more_is_guaranteed_than_there_is(make_server):
    server = make_server().start()
    notes = make(server, "greedy", guarantee={"gpu": 99, "cpu": 1})["notes"]
    assert notes == ["99 gpu are guaranteed in all, local has 8"]


def test_a_group_is_removed_only_when_nothing_of_it_is_live(server, name):
    ((boss, owner),) = people(server, "boss")
    make(server, name, owner=boss)
    job = owner.submit("job", "fake hold=1", group=name)
    answer = server.admin.call("DELETE", f"{GROUPS}/{name}")
    assert (answer.status, answer.json["message"]) == (409, f"group {name} still has 1 live job")
    owner.post(f"/api/v2/jobs/{job['id']}/cancel", {})
    owner.wait(job["id"])
    assert server.admin.call("DELETE", f"{GROUPS}/{name}").status == 204
    assert owner.get(f"/api/v2/jobs/{job['id']}").status == 200


# --- submitting ---------------------------------------------------------------------------------


def _try(caller: Caller, **more):
    body = {
        "name": f"try-{next(_numbers)}",
        "entry": "fake hold=1",
        "mode": "single",
        "package_digest": caller.upload({"train.py": b"print(1)\n"}),
    }
    return caller.post("/api/v2/jobs", body | more)


def test_an_unknown_and_a_foreign_group_are_refused_alike_with_those_one_has(server, user, name):
    me = user.get("/api/v2/whoami").json["name"]
    make(server, name)
    for asked in (name, "no-such-group"):
        answer = _try(user, group=asked)
        assert (answer.status, answer.json["field"]) == (400, "group")
        assert answer.json["message"] == f"no group {asked}"
        assert answer.json["hint"] == f"groups you may use: {me}"
    assert user.get("/api/v2/jobs?phase=all").json["items"] == []


def test_a_viewer_does_not_submit(server, name):
    ((guest, viewer),) = people(server, "guest")
    make(server, name)
    add(server, name, guest, "viewer")
    answer = _try(viewer, group=name)
    assert answer.status == 400
    assert answer.json["message"] == f"you only look at group {name}"


def test_what_the_limit_could_never_hold_is_refused_with_the_number(server, name):
    ((mate, member),) = people(server, "mate")
    make(server, name, limit={"gpu": 2})
    add(server, name, mate)
    answer = _try(member, group=name, gpu=3)
    assert answer.status == 422
    assert answer.json["faults"][0]["problem"] == (
        f"1 trainer together need 3 gpu, the limit of group {name} is 2"
    )
    assert _try(member, group=name, gpu=2).status == 201


def test_the_engine_is_told_and_a_dry_run_asks_the_planner(server, name):
    ((mate, member),) = people(server, "mate")
    make(server, name, limit={"replicas": 1})
    add(server, name, mate)
    member.wait(_try(member, group=name).json["id"], "running")
    body = {"name": "dry", "entry": "fake", "mode": "single", "group": name}
    answer = member.post("/api/v2/jobs?dry_run=1", body).json
    assert answer["spec"]["group"] == name
    assert (answer["starts"], answer["reason"]) == (
        "later",
        f"the limit of group {name}, 1 replicas, is used: 1 of 1",
    )


def test_who_left_a_group_does_not_run_its_jobs_again(server, name):
    ((mate, member),) = people(server, "mate")
    make(server, name)
    add(server, name, mate)
    job = member.submit("once", "fake", group=name)
    assert (job["group"], member.wait(job["id"])["phase"]) == (name, "Succeeded")
    again = f"/api/v2/jobs/{job['id']}/rerun"
    assert member.post(again, {}).status == 201
    member.wait(job["id"])
    server.admin.post(f"{GROUPS}/{name}/members/remove", {"account": mate})
    answer = member.post(again, {})
    assert (answer.status, answer.json["hint"]) == (
        409,
        f"submit it again with --group, one of: {mate}",
    )


def test_a_group_runs_only_where_it_is_attached(server, name):
    ((mate, member),) = people(server, "mate")
    make(server, name, clusters=["local"])
    add(server, name, mate)
    groups = member.get("/api/v2/clusters").json["items"][0]["groups"]
    assert [group["name"] for group in groups] == [mate, name]


# --- sharing ------------------------------------------------------------------------------------


def test_members_see_a_shared_job_and_only_owners_kill_it(server, name):
    (who, author), (mate, member), (guest, viewer), (boss, owner), (_, stranger) = people(
        server, "who", "mate", "guest", "boss", "stranger"
    )
    make(server, name, owner=boss)
    for account, role in ((who, "member"), (mate, "member"), (guest, "viewer")):
        add(server, name, account, role)
    shared = author.submit("open", "fake hold=1", group=name, annotations={"permission": "group"})
    private = author.submit("closed", "fake hold=1", group=name)
    path = f"/api/v2/jobs/{shared['id']}"
    for caller in (member, viewer, owner):
        assert caller.get(path).json["account"] == who
        listed = caller.get("/api/v2/jobs?type=group&phase=all").json["items"]
        assert [job["id"] for job in listed] == [shared["id"]]
        assert caller.get(f"/api/v2/jobs/{private['id']}").status == 404
    for caller in (member, viewer):
        assert caller.post(f"{path}/cancel", {}).status == 403
        assert caller.call("DELETE", path).status == 403
    assert stranger.get(path).status == 404
    assert stranger.post(f"{path}/cancel", {}).status == 404
    assert owner.post(f"/api/v2/jobs/{private['id']}/cancel", {}).status == 404
    assert owner.post(f"{path}/cancel", {}).status == 202
    assert author.wait(shared["id"])["phase"] == "Killed"


# --- states that are older than groups ------------------------------------------------------------


@pytest.mark.e2e
def test_accounts_and_jobs_that_are_older_get_their_own_group(tmp_path):
    server = Running(tmp_path / "state").start()
    job = server.account("old").submit("job", "fake")
    server.account("old2")
    assert server.stop() == 0
    with closing(sqlite3.connect(server.state / "server.db")) as rows, rows:
        rows.execute("DROP INDEX jobs_job_group_id_" + _index_suffix(rows))
        for column in ("group_id", "trainers_asked"):
            rows.execute(f"ALTER TABLE jobs_job DROP COLUMN {column}")
        for table in ("groups_membership", "groups_group"):
            rows.execute(f"DROP TABLE {table}")
        rows.execute("CREATE TABLE jobs_package (id integer NOT NULL PRIMARY KEY)")  # had been
        rows.execute("CREATE INDEX job_queue ON jobs_job (cluster)")
        of_jobs = "app = 'jobs' AND name >= '0005_job_group'"
        newer = f"app = 'groups' OR {of_jobs}"
        rows.execute(f"DELETE FROM django_migrations WHERE {newer}")
    server.start()
    try:
        names = [group["name"] for group in server.admin.get(GROUPS).json["items"]]
        assert names == ["old", "old2", "root"]
        assert server.admin.get(f"/api/v2/jobs/{job['id']}").json["group"] == "old"
    finally:
        server.stop()


def _index_suffix(rows: sqlite3.Connection) -> str:
    sql = "SELECT name FROM sqlite_master WHERE name LIKE 'jobs_job_group_id_%'"
    return rows.execute(sql).fetchone()[0].removeprefix("jobs_job_group_id_")


# --- exactness ----------------------------------------------------------------------------------


def test_a_limit_is_exact_under_fifty_submits_at_once(make_server: Callable[..., Running]):
    """Real processes; how many run is asked of the machine's own records all the while.

    They go on when as many as may were seen to run, so that a slow machine sees them too."""
    server = make_server("local").start()
    caller = server.admin
    assert caller.post(GROUPS, {"name": "tight", "owner": "root"}).status == 201
    limit = {"replicas": 7, "cpu": "1"}
    assert put(caller, f"{GROUPS}/tight/quota", {"limit": limit}) == 200
    digest = caller.upload({"train.py": b"print(1)\n"})
    statuses: list[int] = []
    most: list[tuple[int, str]] = []
    over = threading.Event()
    full = server.state / "pfs" / "home" / "root" / "full"

    def submit(number: int) -> None:
        body = {
            "name": f"job-{number}",
            "entry": 'until [ -e "$PADDLECLOUD_PFS_HOME/full" ]; do sleep 0.05; done',
            "mode": "single",
            "cpu": "100m",
            "memory": "32Mi",
            "package_digest": digest,
            "group": "tight",
        }
        statuses.append(caller.post("/api/v2/jobs", body).status)

    def look() -> None:
        while not over.is_set():
            used = caller.get(f"{GROUPS}/tight").json["used"]
            most.append((used["replicas"], used["cpu"]))
            if used["replicas"] >= limit["replicas"]:
                full.touch()

    watcher = threading.Thread(target=look)
    watcher.start()
    threads = [threading.Thread(target=submit, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(50):
        assert caller.wait(f"job-{number}", timeout_s=60)["phase"] == "Succeeded"
    over.set()
    watcher.join()
    assert statuses == [201] * 50
    assert max(replicas for replicas, _ in most) == 7, "the limit is used, and never exceeded"
