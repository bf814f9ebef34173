"""Who may call what: anonymous, another account, a job's own token, a non-administrator."""

from __future__ import annotations

import base64
import contextlib
import json
import sqlite3

import pytest

from tests.patience import PATIENCE_S
from tests.server.running import Answer, Caller, Running

OPEN = {
    ("GET", "/healthz"),
    ("GET", "/healthz/"),
    ("POST", "/api-token-auth/"),
    ("GET", "/filepub"),  # a published file: the link is the secret
    ("GET", "/filepub/"),
}


def _routes(server: Running) -> list[tuple[str, str]]:
    paths = server.admin.get("/api/v2/openapi.json").json["paths"]
    return [(method.upper(), path) for path, rows in paths.items() for method in rows]


def _filled(path: str) -> str:
    return path.replace("{digest}", "0" * 64).replace("{ref}", "x").replace("{name}", "x")


def test_anonymous_gets_401_everywhere_but_health_login_and_links(server: Running) -> None:
    routes = _routes(server)
    assert len(routes) > 40
    for method, path in routes:
        answer = server.anonymous.call(method, _filled(path))
        if (method, path) in OPEN:
            assert answer.status != 401, (method, path)
        else:
            assert answer.status == 401, (method, path)
            assert answer.headers["www-authenticate"].startswith("Token")


@pytest.mark.parametrize("path", ["/api/v2/nothing", "/api/v1/nothing/", "/api/", "/api/v3/jobs"])
def test_anonymous_cannot_even_learn_which_paths_exist(server: Running, path: str) -> None:
    assert server.anonymous.get(path).status == 401
    assert server.admin.get(path).status == 404


def _same_but_for(name: str, answer: Answer) -> tuple[int, str]:
    return answer.status, answer.body.decode().replace(name, "?")


@pytest.mark.parametrize(
    ("method", "tail"),
    [
        ("GET", ""),
        ("GET", "/runs"),
        ("GET", "/replicas"),
        ("GET", "/events"),
        ("GET", "/logs"),
        ("GET", "/logs?follow=1"),
        ("GET", "/wait"),
        ("GET", "/explain"),
        ("POST", "/cancel"),
        ("POST", "/rerun"),
        ("DELETE", ""),
    ],
)
def test_anothers_job_looks_exactly_like_one_that_does_not_exist(
    server: Running, user: Caller, method: str, tail: str
) -> None:
    theirs = server.admin.submit(f"secret{abs(hash((method, tail)))}")
    missing = "job-0123456789abcdef"
    for ref, none in ((theirs["id"], missing), (theirs["name"], "nobody-has-this")):
        real = user.call(method, f"/api/v2/jobs/{ref}{tail}")
        fake = user.call(method, f"/api/v2/jobs/{none}{tail}")
        assert real.status == 404
        assert _same_but_for(ref, real) == _same_but_for(none, fake)
    assert server.admin.get(f"/api/v2/jobs/{theirs['id']}").status == 200


def test_lists_show_only_the_callers_jobs(server: Running, user: Caller) -> None:
    server.admin.submit("not-yours")
    mine = user.submit("mine")
    items = user.get("/api/v2/jobs?phase=all").json["items"]
    assert [job["id"] for job in items] == [mine["id"]]
    assert [wish["name"] for wish in user.get("/api/v1/jobs").json["msg"]] == ["mine"]


def test_a_package_of_another_account_is_not_there(server: Running, user: Caller) -> None:
    digest = server.admin.upload({"private": b"bytes"})
    assert user.call("HEAD", f"/api/v2/packages/{digest}").status == 404
    body = {"name": "steal", "entry": "fake", "package_digest": digest}
    assert user.post("/api/v2/jobs", body).status == 400


def test_administrators_only(server: Running, user: Caller) -> None:
    for method, path in (
        ("GET", "/api/v2/accounts"),
        ("POST", "/api/v2/accounts"),
        ("PUT", "/api/v2/accounts/root/quota"),
        ("POST", "/api/v2/accounts/root/token"),
        ("POST", "/api/v2/accounts/root/cert"),
        ("POST", "/api/v2/runtimes"),
        ("DELETE", "/api/v2/runtimes/x"),
    ):
        assert user.call(method, path, {}).status == 403, path


def test_an_administrator_may_kill_anothers_job_by_its_id(server: Running, user: Caller) -> None:
    job = user.submit("runaway", "fake hold=1")
    assert server.admin.post(f"/api/v2/jobs/{job['id']}/cancel").status == 202
    ended = user.wait("runaway")
    assert (ended["phase"], ended["reason"]) == ("Killed", "killed by root")


@pytest.mark.parametrize("body", [b"[" * 200_000, b"{", b"[]", b"\xff", b'"x"', b"x" * 2**21])
def test_survives_any_body(user: Caller, body: bytes) -> None:
    answer = user.post("/api/v2/jobs", body)
    assert answer.status in (400, 413)
    assert answer.json["field"] == "body"


def test_the_head_of_a_stream_is_refused(user: Caller) -> None:
    user.submit("headless", "fake hold=1")
    assert user.call("HEAD", "/api/v2/jobs/headless/logs?follow=1").status == 405
    assert user.call("HEAD", "/api/v2/jobs/headless").status == 200


# --- the token of a job ------------------------------------------------------------------------


def _job_token(server: Running, job_id: str) -> str:
    """What the engine was given; the fake writes it down."""
    for line in (server.state / "fake-engine.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["job"] == job_id:
            return str(record["env"]["PADDLECLOUD_TOKEN"])
    raise AssertionError(f"{job_id} never reached the engine")


def test_a_jobs_token_reads_that_job_and_nothing_else(server: Running, user: Caller) -> None:
    mine = user.submit("own", "fake hold=1")
    other = user.submit("other", "fake hold=1")
    user.wait("own", "running")
    caller = server.caller(_job_token(server, mine["id"]))
    assert caller.get("/api/v2/jobs/own").status == 200
    assert caller.get(f"/api/v2/jobs/{mine['id']}/replicas").status == 200
    assert caller.get("/api/v2/jobs/other").status == 404
    assert caller.get(f"/api/v2/jobs/{other['id']}").status == 404
    listed = caller.get("/api/v2/jobs?phase=all").json["items"]
    assert [job["id"] for job in listed] == [mine["id"]]
    for method, path in (
        ("POST", "/api/v2/jobs/own/cancel"),
        ("POST", "/api/v2/jobs/own/rerun"),
        ("DELETE", "/api/v2/jobs/own"),
        ("POST", "/api/v2/jobs"),
        ("GET", "/api/v2/quota"),
        ("GET", "/api/v1/jobs"),
        ("GET", "/api/v1/filelist?path=/pfs/local/home/x"),
    ):
        assert caller.call(method, path, {}).status == 403, path


def test_a_jobs_token_dies_with_the_run(server: Running, user: Caller) -> None:
    job = user.submit("short", "fake hold=1")
    user.wait("short", "running")
    caller = server.caller(_job_token(server, job["id"]))
    assert caller.get("/api/v2/jobs/short").status == 200
    user.post("/api/v2/jobs/short/cancel")
    user.wait("short")
    assert caller.get("/api/v2/jobs/short").status == 401


# --- ways to log in ----------------------------------------------------------------------------


def _basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def test_logs_in_with_a_password_and_uses_the_token(server: Running) -> None:
    server.account("eve@example.com", password="long enough 7")
    body = {"username": "eve@example.com", "password": "long enough 7"}
    answer = server.anonymous.post("/api-token-auth/", body)
    assert answer.status == 200
    caller = server.caller(answer.json["token"])
    assert caller.get("/api/v2/whoami").json["name"] == "eve@example.com"
    assert caller.get("/api/v1/token2user/").json["user"] == "eve@example.com"
    basic = Caller(server.port, _basic("eve@example.com", "long enough 7"))
    assert basic.get("/api/v2/whoami").json["name"] == "eve@example.com"


@pytest.mark.parametrize(
    "header",
    [
        "Token nonsense",
        "Token ",
        "Bearer pct_x",
        "Basic !!!",
        "Basic bm9jb2xvbg==",
        "Digest a",
        "Token \xff",
    ],
)
def test_refuses_bad_credentials_with_401(server: Running, header: str) -> None:
    assert Caller(server.port, header).get("/api/v2/whoami").status == 401


def test_an_account_without_password_cannot_log_in_by_password(server: Running) -> None:
    server.account("tokens-only")
    for password in ("", "!", "None", "x"):
        body = {"username": "tokens-only", "password": password}
        assert server.anonymous.post("/api-token-auth/", body).status in (400, 401)


def _guess_until_refused(server: Running, body: dict[str, str]) -> Answer:
    """Five are free. Each further one doubles the wait, however slow this machine is."""
    for number in range(20):
        answer = server.anonymous.post("/api-token-auth/", body)
        if number >= 5 and answer.status == 429:
            return answer
        assert answer.status == 401
    raise AssertionError("nobody was slowed down")


def _recount(server: Running, name: str, change: str) -> None:
    with contextlib.closing(
        sqlite3.connect(server.state / "server.db", timeout=PATIENCE_S)
    ) as rows:
        rows.execute(
            f"update accounts_failedlogins set {change} where subject = ?", [f"account:{name}"]
        )
        rows.commit()


def test_slows_down_guessing_per_account_and_says_when_to_return(server: Running) -> None:
    server.account("guessed", password="right password 1")
    body = {"username": "guessed", "password": "wrong"}
    refused = _guess_until_refused(server, body)
    assert refused.json["code"] == "rate_limited"
    assert int(refused.headers["retry-after"]) >= 1
    _recount(server, "guessed", "count = count + 10")  # a wait that no machine is too slow for
    # Even the right password waits, else the limit would tell which guess was right.
    right = {"username": "guessed", "password": "right password 1"}
    assert server.anonymous.post("/api-token-auth/", right).status == 429


def test_a_clock_that_was_set_back_locks_nobody_out(server: Running) -> None:
    server.account("early", password="right password 1")
    wrong, right = ({"username": "early", "password": p} for p in ("wrong", "right password 1"))
    _guess_until_refused(server, wrong)
    _recount(server, "early", "count = count + 10")
    assert server.anonymous.post("/api-token-auth/", right).status == 429
    # As if all that was counted a day later than now.
    _recount(server, "early", "last_at = last_at + 86400")
    assert server.anonymous.post("/api-token-auth/", right).status == 200


def test_a_token_can_expire(server: Running) -> None:
    server.account("brief")
    path = "/api/v2/accounts/brief/token"
    token = server.admin.post(path, {"expires_in_s": 0.2}).json["token"]
    caller = server.caller(token)
    seen = {caller.get("/api/v2/whoami").status}
    while 401 not in seen:
        seen.add(caller.get("/api/v2/whoami").status)
    assert server.admin.post(path, {"expires_in_s": -1}).status == 400


def test_keeps_no_token_in_the_clear(server: Running, user: Caller) -> None:
    token = server.admin.post("/api/v2/accounts/root/token", Idempotency_Key="clear").json["token"]
    job = user.submit("hidden", "fake hold=1")
    user.wait("hidden", "running")
    job_token = _job_token(server, job["id"])
    files = list(server.state.glob("server.db*"))
    assert any(job["id"].encode() in path.read_bytes() for path in files)
    for path in files:
        data = path.read_bytes()
        assert token.encode() not in data
        assert job_token.encode() not in data


# --- accounts ----------------------------------------------------------------------------------


def test_adds_accounts_and_lists_them(server: Running) -> None:
    answer = server.admin.post("/api/v2/accounts", {"name": "carol@example.com"})
    assert answer.status == 201
    assert answer.json["admin"] is False
    assert server.admin.post("/api/v2/accounts", {"name": "carol@example.com"}).status == 409
    names = [row["name"] for row in server.admin.get("/api/v2/accounts").json["items"]]
    assert "carol@example.com" in names


@pytest.mark.parametrize("name", ["", "a/b", "../x", ".hidden", "a b", "x" * 151, 3, None])
def test_refuses_bad_account_names(server: Running, name: object) -> None:
    answer = server.admin.post("/api/v2/accounts", {"name": name})
    assert (answer.status, answer.json["field"]) == (400, "name")


def test_refuses_weak_passwords(server: Running) -> None:
    answer = server.admin.post("/api/v2/accounts", {"name": "weak", "password": "12345"})
    assert (answer.status, answer.json["field"]) == (400, "password")


def test_sets_limits_and_counts_what_is_in_use(server: Running, user: Caller) -> None:
    name = user.get("/api/v2/whoami").json["name"]
    body = {"cpu": "2500m", "memory": "8Gi", "gpu": 1, "replicas": None}
    answer = server.admin.call("PUT", f"/api/v2/accounts/{name}/quota", body)
    assert answer.status == 200
    assert user.get("/api/v2/quota").json["limits"] == {
        "cpu": "2500m",
        "memory": "8Gi",
        "gpu": 1,
        "replicas": None,
        "storage": None,
        "files": None,
    }
    user.submit("uses", "fake hold=1", memory="1Gi")
    user.wait("uses", "running")
    used = user.get("/api/v2/quota").json["used"]
    assert used == {"cpu": "1", "memory": "1Gi", "gpu": 0, "replicas": 1}


def test_reports_every_bad_limit_at_once(server: Running) -> None:
    body = {"cpu": "-1", "memory": "1GB", "cards": 2, "gpu": [1]}
    answer = server.admin.call("PUT", "/api/v2/accounts/root/quota", body)
    assert answer.status == 400
    assert {fault["field"] for fault in answer.json["faults"]} == set(body)
    assert server.admin.call("PUT", "/api/v2/accounts/nobody/quota", {}).status == 404
