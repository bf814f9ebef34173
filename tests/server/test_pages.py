"""Django's own pages: the admin site, sessions in the API, and the deployment check."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.server.browsing import PASSWORD, Browser
from tests.server.running import Running


@pytest.fixture(scope="module")
def staff(server: Running) -> Browser:
    server.account("boss", password=PASSWORD, admin=True)
    browser = Browser(server)
    assert browser.log_in("boss").status == 302
    assert "sessionid" in browser.cookies
    return browser


def test_the_admin_site_is_for_administrators(server: Running) -> None:
    assert server.anonymous.call("GET", "/admin/", Host="localhost").status == 302
    server.account("plain", password=PASSWORD)
    browser = Browser(server)
    assert browser.log_in("plain").status == 200  # the form again, with a refusal
    assert browser.call("GET", "/admin/").status == 302


def test_slows_down_guessing_on_the_admin_page_too(make_server) -> None:
    server = make_server().start()
    server.account("chief", password=PASSWORD, admin=True)
    body = {"username": "chief", "password": "a wrong guess"}
    assert server.anonymous.post("/api-token-auth/", body).status == 401
    with closing(sqlite3.connect(server.state / "server.db", timeout=PATIENCE_S)) as rows, rows:
        rows.execute("UPDATE accounts_failedlogins SET count = 30")  # guesses nobody waits for
    browser = Browser(server)
    assert browser.log_in("chief").status == 200  # the right password, too soon
    assert "sessionid" not in browser.cookies


@pytest.mark.parametrize(
    "path",
    [
        "/admin/",
        "/admin/accounts/account/",
        "/admin/accounts/account/add/",
        "/admin/accounts/account/1/change/",
        "/admin/accounts/apitoken/",
        "/admin/accounts/failedlogins/",
        "/admin/groups/group/",
        "/admin/groups/group/1/change/",
        "/admin/jobs/job/",
        "/static/admin/css/base.css",
    ],
)
def test_shows_every_page(staff: Browser, path: str) -> None:
    assert staff.call("GET", path).status == 200


def test_shows_a_job_and_kills_it(server: Running, staff: Browser) -> None:
    user = server.account("watched")
    job = user.submit("seen", "fake hold=1")
    user.wait("seen", "running")
    page = staff.call("GET", f"/admin/jobs/job/{job['id']}/change/")
    assert page.status == 200
    assert b"Started" in page.body
    token = re.search(
        rb'name="csrfmiddlewaretoken" value="(\w+)"', staff.call("GET", "/admin/jobs/job/").body
    )
    assert token
    form = {
        "csrfmiddlewaretoken": token[1].decode(),
        "action": "kill",
        "_selected_action": job["id"],
    }
    assert staff.call("POST", "/admin/jobs/job/", form).status == 302
    ended = user.wait("seen")
    assert (ended["phase"], ended["reason"]) == ("Killed", "killed by boss")


def test_shows_no_secret_of_a_job(server: Running, staff: Browser) -> None:
    env = {"MY_PASSWORD": "hidden-words", "EPOCHS": "shown-words"}
    job = server.account("careful").submit("quiet", env=env)
    page = staff.call("GET", f"/admin/jobs/job/{job['id']}/change/")
    assert page.status == 200
    assert b"shown-words" in page.body
    assert b"hidden-words" not in page.body


def test_a_session_reads_the_api_but_changes_need_the_csrf_token(staff: Browser) -> None:
    assert staff.call("GET", "/api/v2/whoami").json["name"] == "boss"
    refused = staff.call("POST", "/api/v2/accounts/boss/token")
    assert refused.status == 403
    assert "CSRF" in refused.json["message"]
    token = staff.cookies["csrftoken"]
    foreign = {"X_CSRFToken": token, "Origin": "http://evil.example"}
    assert staff.call("POST", "/api/v2/accounts/boss/token", **foreign).status == 403
    allowed = {"X_CSRFToken": token, "Origin": "http://localhost"}
    assert staff.call("POST", "/api/v2/accounts/boss/token", **allowed).status == 201


def test_a_made_up_session_is_nobody(server: Running) -> None:
    browser = Browser(server)
    browser.cookies["sessionid"] = "x" * 32
    assert browser.call("GET", "/api/v2/whoami").status == 401


def test_unknown_pages_and_hosts_are_refused_quietly(server: Running) -> None:
    assert server.anonymous.call("GET", "/nothing", Host="localhost").status == 404
    answer = server.anonymous.call("GET", "/admin/", Host="evil.example")
    assert answer.status == 400
    assert b"Traceback" not in answer.body


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "is_clean"),
    [
        ({}, True),  # loopback without TLS
        ({"PADDLECLOUD_TLS": "1", "PADDLECLOUD_HOST": "0.0.0.0"}, True),
        ({"PADDLECLOUD_TLS": "proxy", "PADDLECLOUD_HOST": "0.0.0.0"}, True),
        ({"PADDLECLOUD_HOST": "0.0.0.0"}, False),  # passwords in the clear on a network: say so
    ],
)
def test_the_deployment_check(tmp_path: Path, env: dict[str, str], is_clean: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "django", "check", "--deploy", "--fail-level", "WARNING"],
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "paddlecloud.server.settings",
            "PADDLECLOUD_HOME": str(tmp_path),
        }
        | env,
        capture_output=True,
        text=True,
    )
    assert (done.returncode == 0) == is_clean, done.stderr
    if not is_clean:
        assert "security.W012" in done.stderr
