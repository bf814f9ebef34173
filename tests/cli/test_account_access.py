"""`account disable|enable|tokens|revoke|password|cert --list`, against a scripted server."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.patience import PATIENCE_S
from tests.scripted_server import Answer, ScriptedServer

BOB = "/api/v2/accounts/bob"
TOKENS = [
    {
        "id": 7,
        "prefix": "pct_AbCd",
        "created_at": "2026-11-15T07:00:00.000Z",
        "last_used_at": "2026-11-15T07:58:00.000Z",
        "expires_at": "2026-12-15T07:00:00.000Z",
        "current": True,
    },
    {
        "id": 3,
        "prefix": "pct_wxyz",
        "created_at": "2026-11-12T07:00:00.000Z",
        "last_used_at": None,
        "expires_at": None,
        "current": False,
    },
]
CERTS = [
    {
        "serial": "a1b2",
        "created_at": "2026-11-15T07:00:00.000Z",
        "expires_at": "2027-11-15T07:00:00.000Z",
        "revoked_at": None,
        "reason": "",
    },
    {
        "serial": "c3d4",
        "created_at": "2026-11-14T07:00:00.000Z",
        "expires_at": "2027-11-14T07:00:00.000Z",
        "revoked_at": "2026-11-15T07:30:00.000Z",
        "reason": "laptop stolen",
    },
]


def _access(enabled: bool, live: int = 0, killed: int = 0) -> Answer:
    return Answer({"name": "bob", "enabled": enabled, "live_jobs": live, "killed_jobs": killed})


def test_disable_says_that_jobs_go_on(server: ScriptedServer, run: Run) -> None:
    server.routes[f"POST {BOB}/disable"] = _access(False, live=2)
    ran = run("account", "disable", "bob")
    assert ran.out == (
        "account    bob disabled: its tokens, sessions and certificates are refused\n"
        "jobs       2 jobs still live, going on;"
        " paddlecloud account disable bob --kill-jobs ends them\n"
    )
    assert server.requests[0].json == {"kill_jobs": False}
    assert server.requests[0].headers["idempotency-key"]


def test_disable_kills_jobs_when_told_so(server: ScriptedServer, run: Run) -> None:
    server.routes[f"POST {BOB}/disable"] = _access(False, killed=1)
    ran = run("account", "disable", "bob", "--kill-jobs")
    assert ran.out.endswith("jobs       1 job told to end\n")
    assert server.requests[0].json == {"kill_jobs": True}


def test_enable_lets_in_again(server: ScriptedServer, run: Run) -> None:
    server.routes[f"POST {BOB}/enable"] = _access(True)
    ran = run("account", "enable", "bob")
    assert ran.out == "account    bob enabled, with the tokens and certificates it had\n"


def test_tokens_are_a_table(server: ScriptedServer, run: Run) -> None:
    server.routes[f"GET {BOB}/tokens"] = Answer({"items": TOKENS})
    assert run("account", "tokens", "bob").out == (
        "ID   TOKEN                 CREATED   LAST-USED   EXPIRES\n"
        "7    pct_AbCd (this one)   1h ago    2m ago      2026-12-15 07:00:00\n"
        "3    pct_wxyz              3d ago    never       never\n"
    )
    assert json.loads(run("account", "tokens", "bob", "-o", "json").out)["items"] == TOKENS
    assert run("account", "tokens", "bob", "-o", "name").out == "7\n3\n"


def test_without_a_name_it_is_the_caller(server: ScriptedServer, run: Run) -> None:
    server.routes["GET /api/v2/whoami"] = Answer({"name": "bob", "id": 2, "admin": False})
    server.routes[f"GET {BOB}/tokens"] = Answer({"items": []})
    server.routes[f"GET {BOB}/certs"] = Answer({"items": CERTS})
    assert run("account", "tokens").out == "ID   TOKEN   CREATED   LAST-USED   EXPIRES\n"
    assert run("account", "cert").out == run("account", "cert", "bob", "--list").out


def test_certificates_are_a_table_with_the_reason(server: ScriptedServer, run: Run) -> None:
    server.routes[f"GET {BOB}/certs"] = Answer({"items": CERTS})
    assert run("account", "cert", "bob", "--list").out == (
        "SERIAL   CREATED   EXPIRES               STATE\n"
        "a1b2     1h ago    2027-11-15 07:00:00   good\n"
        "c3d4     1d ago    2027-11-14 07:00:00   revoked 30m ago: laptop stolen\n"
    )
    assert [request.method for request in server.requests] == ["GET"]


@pytest.mark.parametrize(
    ("flags", "body", "answer", "said"),
    [
        (["--token", "7"], {"token": 7}, (1, 0), "1 token of bob"),
        (["--cert", "a1b2"], {"cert": "a1b2", "reason": ""}, (0, 1), "1 certificate of bob"),
        (
            ["--all", "--reason", "left"],
            {"all": True, "reason": "left"},
            (3, 0),
            "3 tokens and 0 certificates of bob",
        ),
    ],
)
def test_revoke_sends_what_was_named(
    server: ScriptedServer,
    run: Run,
    flags: list[str],
    body: dict[str, Any],
    answer: tuple[int, int],
    said: str,
) -> None:
    server.routes[f"POST {BOB}/revoke"] = Answer({"tokens": answer[0], "certs": answer[1]})
    assert run("account", "revoke", "bob", *flags).out == f"revoked    {said}\n"
    assert server.requests[0].json == body


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "say what to revoke: --token ID, --cert SERIAL, --key AK or --all"),
        (["--all", "--token", "7"], "say what to revoke"),
        (["--token", "pct_x"], "--token pct_x: must be a number from the column ID"),
        (["--token", "7", "--reason", "x"], "--reason goes with --cert, --key and --all"),
    ],
)
def test_revoke_refuses_what_it_cannot_mean(
    server: ScriptedServer, run: Run, flags: list[str], said: str
) -> None:
    ran = run("account", "revoke", "bob", *flags)
    assert ran.code == 2
    assert said in ran.err
    assert not server.requests


def test_password_reads_one_line_and_never_shows_it(
    server: ScriptedServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.routes[f"PUT {BOB}/password"] = Answer(b"", 204)
    monkeypatch.setattr("sys.stdin", io.StringIO("a new one 5\nmore\n"))
    ran = run("account", "password", "bob", "--stdin")
    assert ran.out == "password   of bob changed; sessions of the old one have ended\n"
    assert server.requests[0].json == {"password": "a new one 5"}
    assert "a new one" not in ran.out + ran.err


@pytest.mark.parametrize(("typed", "code"), [("new one 5\nold one 5\n", 0), ("new one 5\n", 2)])
def test_password_gives_the_present_one_where_the_server_asks_for_it(
    server: ScriptedServer, run: Run, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    refused = {"code": "invalid_input", "message": "needed", "hint": "", "field": "old_password"}
    server.routes[f"PUT {BOB}/password"] = [Answer(refused, 400), Answer(b"", 204)]
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    ran = run("account", "password", "bob", "--stdin")
    assert ran.code == code
    sent = [{"password": "new one 5"}, {"password": "new one 5", "old_password": "old one 5"}]
    assert [request.json for request in server.requests] == sent[: 2 if code == 0 else 1]
    assert ("on a second line" in ran.err) == (code == 2)
    assert "one 5" not in ran.out + ran.err


def test_password_is_no_argument(server: ScriptedServer, run: Run) -> None:
    assert run("account", "password", "bob", "secret").code == 2
    assert not server.requests


def test_password_without_a_terminal_says_how(
    server: ScriptedServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("ignored\n"))
    ran = run("account", "password", "bob")
    assert ran.code == 2
    assert "account password bob --stdin reads one line" in ran.err
    assert not server.requests


@pytest.mark.needs("linux")
@pytest.mark.parametrize(("second", "code"), [("quite new 5", 0), ("quite different", 2)])
def test_password_is_asked_for_twice_without_echo(
    server: ScriptedServer, tmp_path: Path, second: str, code: int
) -> None:
    import pty
    import subprocess
    import sys

    server.routes[f"PUT {BOB}/password"] = Answer(b"", 204)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "paddlecloud", "account", "password", "bob"]
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    os.close(theirs)
    shown = b""
    for question, answer in ((b"new password of bob: ", "quite new 5"), (b"once more: ", second)):
        while question not in shown:
            shown += os.read(ours, 1000)
        os.write(ours, f"{answer}\n".encode())
    assert process.wait(PATIENCE_S) == code
    try:
        while piece := os.read(ours, 1000):
            shown += piece
    except OSError:  # Linux says so when the other side has closed
        pass
    os.close(ours)
    assert b"quite" not in shown
    assert [request.json for request in server.requests] == (
        [{"password": "quite new 5"}] if code == 0 else []
    )


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
