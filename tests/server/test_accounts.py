"""Ending and changing what an account logs in with: refused for real, at once, and undone."""

from __future__ import annotations

import base64
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.server import https
from tests.server.browsing import PASSWORD, Browser
from tests.server.running import Answer, Caller, Running

OTHER = "staple of another kind"
_numbers = itertools.count(1)


@pytest.fixture
def name(server: Running) -> str:
    """Somebody new with a password."""
    chosen = f"person{next(_numbers)}"
    server.account(chosen, password=PASSWORD)
    return chosen


@pytest.fixture
def admin_name(server: Running) -> str:
    """One more administrator: sessions begin on the admin page, which is for them alone."""
    chosen = f"admin{next(_numbers)}"
    server.account(chosen, password=PASSWORD, admin=True)
    return chosen


def _token(server: Running, name: str) -> str:
    token: str = server.admin.post(f"/api/v2/accounts/{name}/token").json["token"]
    return token


def _order(server: Running, name: str, verb: str, **body: Any) -> Answer:
    answer = server.admin.post(f"/api/v2/accounts/{name}/{verb}", body)
    assert answer.status == 200, answer.body
    return answer


def _password_works(server: Running, name: str, password: str) -> bool:
    words = base64.b64encode(f"{name}:{password}".encode()).decode()
    status = Caller(server.port, f"Basic {words}").get("/api/v2/whoami").status
    assert status in (200, 401)
    return status == 200


def _whoami(caller: Caller) -> int:
    return caller.get("/api/v2/whoami").status


# --- disable and enable ------------------------------------------------------------------------


def test_disabling_ends_every_login_at_once_and_enabling_brings_them_back(
    server: Running, admin_name: str
) -> None:
    name = admin_name
    user = server.caller(_token(server, name))
    browser = Browser(server)
    browser.log_in(name)
    assert (_whoami(user), _password_works(server, name, PASSWORD)) == (200, True)
    assert browser.call("GET", "/api/v2/whoami").status == 200
    done = _order(server, name, "disable").json
    assert done == {"name": name, "enabled": False, "live_jobs": 0, "killed_jobs": 0}
    refused = user.get("/api/v2/whoami")
    assert (refused.status, refused.json["message"]) == (401, f"the account {name} is disabled")
    assert not _password_works(server, name, PASSWORD)
    assert browser.call("GET", "/api/v2/whoami").status == 401
    login = {"username": name, "password": PASSWORD}
    assert server.anonymous.post("/api-token-auth/", login).status == 401
    listed = {item["name"]: item for item in server.admin.get("/api/v2/accounts").json["items"]}
    assert listed[name]["enabled"] is False
    assert _order(server, name, "enable").json["enabled"] is True
    assert (_whoami(user), _password_works(server, name, PASSWORD)) == (200, True)


def test_jobs_of_a_disabled_account_go_on(server: Running, name: str) -> None:
    user = server.caller(_token(server, name))
    job = user.submit("goes-on", "fake hold=1")
    user.wait("goes-on", "running")
    assert _order(server, name, "disable").json["live_jobs"] == 1
    assert server.admin.get(f"/api/v2/jobs/{job['id']}").json["phase"] == "Running"
    _order(server, name, "enable")
    assert user.get("/api/v2/jobs/goes-on").json["phase"] == "Running"


def test_jobs_of_a_disabled_account_are_killed_when_told_so(server: Running, name: str) -> None:
    user = server.caller(_token(server, name))
    jobs = [user.submit(f"ends{number}", "fake hold=1") for number in range(2)]
    for job in jobs:
        user.wait(job["id"], "running")
    assert _order(server, name, "disable", kill_jobs=True).json["killed_jobs"] == 2
    for job in jobs:
        ended = server.admin.wait(job["id"])
        assert (ended["phase"], ended["reason"]) == ("Killed", "its account was disabled by root")


def test_a_followed_log_and_a_wait_end_with_the_account(server: Running, name: str) -> None:
    user = server.caller(_token(server, name))
    user.submit("followed", "fake hold=1")
    user.wait("followed", "running")
    held = [user.connect(), user.connect()]
    paths = ("/api/v2/jobs/followed/logs?follow=1", "/api/v2/jobs/followed/wait?timeout_s=60")
    for connection, path in zip(held, paths, strict=True):
        connection.request("GET", path, headers=user.headers())
    following = held[0].getresponse()
    assert following.status == 200
    _order(server, name, "disable")
    assert b'"end"' not in following.read()  # it ends, and not because the job has
    assert held[1].getresponse().status == 401
    for connection in held:
        connection.close()


def test_the_last_administrator_cannot_be_disabled(make_server: Callable[..., Running]) -> None:
    server = make_server().start()
    refused = server.admin.post("/api/v2/accounts/root/disable")
    assert refused.status == 409
    assert "last administrator" in refused.json["message"]
    second = server.account("second", admin=True)
    assert second.post("/api/v2/accounts/root/disable").status == 200
    assert _whoami(server.admin) == 401
    assert second.post("/api/v2/accounts/second/disable").status == 409
    assert second.post("/api/v2/accounts/root/enable").status == 200
    assert _whoami(server.admin) == 200


@pytest.mark.parametrize("verb", ["disable", "enable"])
def test_only_administrators_disable_and_enable(server: Running, user: Caller, verb: str) -> None:
    me = user.get("/api/v2/whoami").json["name"]
    assert user.post(f"/api/v2/accounts/{me}/{verb}").status == 403
    assert server.admin.post(f"/api/v2/accounts/nobody-here/{verb}").status == 404
    assert server.admin.post(f"/api/v2/accounts/{me}/{verb}", {"kil_jobs": True}).status == 400


# --- passwords ---------------------------------------------------------------------------------


def test_a_new_password_ends_sessions_and_the_old_password_but_no_token(
    server: Running, admin_name: str
) -> None:
    name = admin_name
    user = server.caller(_token(server, name))
    browser = Browser(server)
    browser.log_in(name)
    assert browser.call("GET", "/api/v2/whoami").status == 200
    assert _password_works(server, name, PASSWORD)  # and is remembered from now on
    path = f"/api/v2/accounts/{name}/password"
    assert user.call("PUT", path, {"password": OTHER}).status == 204
    assert browser.call("GET", "/api/v2/whoami").status == 401
    assert not _password_works(server, name, PASSWORD)
    assert _password_works(server, name, OTHER)
    assert _whoami(user) == 200


def test_administrators_change_anyones_password_others_their_own(
    server: Running, user: Caller, name: str
) -> None:
    path = f"/api/v2/accounts/{name}/password"
    refused = user.call("PUT", path, {"password": OTHER})
    missing = user.call("PUT", "/api/v2/accounts/nobody-here/password", {"password": OTHER})
    assert (refused.status, refused.body) == (403, missing.body)
    assert server.admin.call("PUT", path, {"password": OTHER}).status == 204
    assert _password_works(server, name, OTHER)


def test_a_token_alone_changes_no_password(server: Running, name: str) -> None:
    own = server.caller(_token(server, name))
    path = f"/api/v2/accounts/{name}/password"
    missing = own.call("PUT", path, {"password": OTHER})
    assert (missing.status, missing.json["field"]) == (400, "old_password")
    wrong = own.call("PUT", path, {"password": OTHER, "old_password": "guess-guess-guess"})
    assert (wrong.status, wrong.json["field"]) == (403, "old_password")
    assert _password_works(server, name, PASSWORD)
    right = own.call("PUT", path, {"password": OTHER, "old_password": PASSWORD})
    assert right.status == 204
    assert _password_works(server, name, OTHER)


@pytest.mark.parametrize("body", [{}, {"password": ""}, {"password": 5}, {"password": "12345678"}])
def test_refuses_weak_and_missing_passwords(server: Running, name: str, body: object) -> None:
    answer = server.admin.call("PUT", f"/api/v2/accounts/{name}/password", body)
    assert (answer.status, answer.json["field"]) == (400, "password")
    assert _password_works(server, name, PASSWORD)


# --- tokens ------------------------------------------------------------------------------------


def test_lists_tokens_without_what_is_secret_and_tells_which_one_is_calling(
    server: Running, name: str
) -> None:
    first, second = _token(server, name), _token(server, name)
    answer = server.caller(second).get(f"/api/v2/accounts/{name}/tokens")
    assert first not in answer.body.decode()
    items = answer.json["items"]
    assert [item["prefix"] for item in items[:2]] == [second[:8], first[:8]]
    assert [item["current"] for item in items] == [True, False, False]
    assert [item["last_used_at"] is None for item in items[:2]] == [False, True]


def test_a_revoked_token_is_refused_and_the_others_are_not(server: Running, name: str) -> None:
    first, second = (server.caller(_token(server, name)) for _ in range(2))
    assert (_whoami(first), _whoami(second)) == (200, 200)
    path = f"/api/v2/accounts/{name}"
    items = second.get(f"{path}/tokens").json["items"]
    stolen = items[1]["id"]
    assert second.post(f"{path}/revoke", {"token": stolen}).json == {
        "tokens": 1,
        "certs": 0,
        "keys": 0,
    }
    assert (_whoami(first), _whoami(second)) == (401, 200)
    assert stolen not in [item["id"] for item in second.get(f"{path}/tokens").json["items"]]
    assert second.post(f"{path}/revoke", {"token": stolen}).status == 404


def test_revoking_all_ends_every_token_but_those_of_jobs(server: Running, name: str) -> None:
    callers = [server.caller(_token(server, name)) for _ in range(3)]
    callers[0].submit("keeps", "fake hold=1")
    callers[0].wait("keeps", "running")
    revoked = _order(server, name, "revoke", all=True).json
    assert revoked["tokens"] == 4
    assert [_whoami(caller) for caller in callers] == [401] * 3
    assert _password_works(server, name, PASSWORD)


def test_nobody_revokes_or_lists_what_is_somebody_elses(
    server: Running, user: Caller, name: str
) -> None:
    items = server.admin.get(f"/api/v2/accounts/{name}/tokens").json["items"]
    me = user.get("/api/v2/whoami").json["name"]
    assert user.get(f"/api/v2/accounts/{name}/tokens").status == 403
    assert user.get(f"/api/v2/accounts/{name}/certs").status == 403
    assert user.post(f"/api/v2/accounts/{name}/revoke", {"all": True}).status == 403
    # Not by one's own name either.
    theirs = {"token": items[0]["id"]}
    assert user.post(f"/api/v2/accounts/{me}/revoke", theirs).status == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"all": False},
        {"token": "1"},
        {"token": True, "all": True},
        {"token": 0},
        {"token": 1 << 70},
        {"cert": 5},
        {"al": True},
        {"reason": "x"},
        {"all": True, "reason": 5},
    ],
)
def test_refuses_a_revoke_that_does_not_say_what(
    server: Running, name: str, body: dict[str, Any]
) -> None:
    answer = server.admin.post(f"/api/v2/accounts/{name}/revoke", body)
    assert answer.status == 400, answer.body


# --- certificates ------------------------------------------------------------------------------


class Holder:
    """A certificate of somebody, used over TLS."""

    def __init__(self, server: Running, name: str, folder: Path) -> None:
        self._server = server
        self.serial, cert, key = https.certificate(server, name, folder)
        self._context = https.context(server, cert, key)

    def whoami(self) -> tuple[int, str]:
        status, body = https.call(self._server, "GET", "/api/v2/whoami", self._context)
        return status, body.get("message", "")


def test_a_revoked_certificate_is_refused_at_once_with_its_reason(
    make_server: Callable[..., Running], tmp_path: Path
) -> None:
    server = make_server(PADDLECLOUD_TLS="1").start()
    lost, kept = (Holder(server, "root", tmp_path) for _ in range(2))
    assert (lost.whoami()[0], kept.whoami()[0]) == (200, 200)
    written = ":".join(f"{lost.serial:0>32}"[at : at + 2] for at in range(0, 32, 2)).upper()
    body = {"cert": written, "reason": "laptop stolen"}
    assert https.as_admin(server, "POST", "/api/v2/accounts/root/revoke", body)[0] == 200
    assert lost.whoami() == (401, "the client certificate was revoked: laptop stolen")
    assert kept.whoami()[0] == 200
    items = https.as_admin(server, "GET", "/api/v2/accounts/root/certs")[1]["items"]
    shown = {item["serial"]: (item["revoked_at"] is not None, item["reason"]) for item in items}
    assert shown == {lost.serial: (True, "laptop stolen"), kept.serial: (False, "")}
    assert https.as_admin(server, "POST", "/api/v2/accounts/root/revoke", {"cert": "ff"})[0] == 404
    # After a kill -9, too.
    server.kill_9()
    server.start()
    assert lost.whoami()[0] == 401


def test_a_certificate_stops_with_its_account(
    make_server: Callable[..., Running], tmp_path: Path
) -> None:
    server = make_server(PADDLECLOUD_TLS="1").start()
    assert https.as_admin(server, "POST", "/api/v2/accounts", {"name": "bob"})[0] == 201
    holder = Holder(server, "bob", tmp_path)
    assert (
        https.as_admin(server, "POST", "/api/v2/accounts/bob/disable", {"kill_jobs": False})[0]
        == 200
    )
    assert holder.whoami() == (401, "the account bob is disabled")
    assert https.as_admin(server, "POST", "/api/v2/accounts/bob/enable")[0] == 200
    assert holder.whoami()[0] == 200
    revoked = https.as_admin(server, "POST", "/api/v2/accounts/bob/revoke", {"all": True})[1]
    assert revoked == {"tokens": 0, "certs": 1, "keys": 0}
    assert holder.whoami() == (401, "the client certificate was revoked: revoked by root")


def test_the_admin_page_keeps_the_last_administrator_too(
    make_server: Callable[..., Running],
) -> None:
    server = make_server().start()
    path = "/api/v2/accounts/root/password"
    assert server.admin.call("PUT", path, {"password": PASSWORD}).status == 204
    browser = Browser(server)
    browser.log_in("root")
    page = "/admin/accounts/account/1/change/"
    form = {
        "csrfmiddlewaretoken": browser.cookies["csrftoken"],
        "is_staff": "on",  # and not is_active
        "quota-TOTAL_FORMS": "0",
        "quota-INITIAL_FORMS": "0",
    }
    answer = browser.call("POST", page, form)
    assert answer.status == 200
    assert b"last administrator" in answer.body
    assert _whoami(server.admin) == 200


def test_who_owns_the_state_directory_is_let_in_again(make_server: Callable[..., Running]) -> None:
    server = make_server().start()
    second = server.account("second", admin=True)
    assert second.post("/api/v2/accounts/root/disable").status == 200
    command = [sys.executable, "-m", "paddlecloud.server.bootstrap"]
    command += ["--state", str(server.state), "--account", "root"]
    env = os.environ | server.env | {"PADDLECLOUD_ENGINE": "fake"}
    subprocess.run(command, env=env, check=True, capture_output=True)
    assert server.admin.get("/api/v2/whoami").json["admin"] is True
