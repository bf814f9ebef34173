"""`account key|keys` and `revoke --key`, and which keys `job` signs with; a scripted server."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from paddlecloud.sdk import paddlecli_files as files
from paddlecloud.wire import signing
from tests.cli.conftest import Run
from tests.cli.second_client import ID, full
from tests.scripted_server import Answer, Request, ScriptedServer

KEYS = "/api/v2/accounts/bob/keys"
MADE = {"ak": "a1b2", "sk": "s3cret", "name": "laptop", "scope": "submit"}
ROW = {
    "ak": "a1b2",
    "name": "laptop",
    "scope": "submit",
    "created_at": "2026-11-15T07:00:00.000Z",
    "rotated_at": None,
    "last_used_at": "2026-11-15T07:58:00.000Z",
    "old_secret_until": None,
    "revoked_at": None,
    "reason": "",
}


def test_makes_a_key_and_shows_its_secret_once(server: ScriptedServer, run: Run) -> None:
    server.routes[f"POST {KEYS}"] = Answer(MADE, 201)
    ran = run("account", "key", "bob", "--title", "laptop", "--scope", "submit")
    assert ran.out == (
        "key        laptop of bob, scope submit\n"
        "ak         a1b2\n"
        "sk         s3cret\n"
        "next       paddlecloud config --ak AK --sk SK\n"
    )
    assert "shown only now" in ran.err
    assert server.requests[0].json == {"name": "laptop", "scope": "submit"}


def test_gives_a_new_key_to_programs(server: ScriptedServer, run: Run) -> None:
    server.routes[f"POST {KEYS}"] = Answer(MADE, 201)
    assert json.loads(run("account", "key", "bob", "-o", "json").out) == MADE
    assert run("account", "key", "bob", "-o", "name").out == "a1b2\n"


def test_without_a_name_it_is_the_caller(server: ScriptedServer, run: Run) -> None:
    server.routes["GET /api/v2/whoami"] = Answer({"name": "bob"})
    server.routes[f"GET {KEYS}"] = Answer({"items": [ROW]})
    assert "a1b2" in run("account", "keys").out


def test_lists_what_has_become_of_each(server: ScriptedServer, run: Run) -> None:
    revoked = {"ak": "c3", "revoked_at": "2026-11-15T07:30:00.000Z", "reason": "lost"}
    rotated = {"ak": "d4", "last_used_at": None, "old_secret_until": "2026-11-16T08:00:00.000Z"}
    items = [ROW, {**ROW, **revoked}, {**ROW, **rotated}]
    server.routes[f"GET {KEYS}"] = Answer({"items": items})
    head, *lines = run("account", "keys", "bob").out.splitlines()
    assert head.split() == ["AK", "NAME", "SCOPE", "CREATED", "LAST-USED", "STATE"]
    assert lines[0].split()[-1] == "good"
    assert lines[1].endswith("ago: lost")
    assert "never" in lines[2]
    assert lines[2].endswith("old secret until 2026-11-16 08:00:00")


def test_rotates_with_an_overlap(server: ScriptedServer, run: Run) -> None:
    server.routes[f"POST {KEYS}/rotate"] = Answer(MADE)
    assert "s3cret" in run("account", "key", "bob", "--rotate", "a1b2", "--overlap", "1h").out
    assert server.requests[0].json == {"ak": "a1b2", "overlap_s": 3600}


def test_brings_a_pair_from_the_standard_input(
    server: ScriptedServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.routes[f"POST {KEYS}"] = Answer(MADE, 201)
    monkeypatch.setattr("sys.stdin", io.StringIO("a1b2 s3cret\n"))
    assert run("account", "key", "bob", "--import").code == 0
    assert server.requests[0].json == {"name": "", "scope": "all", "ak": "a1b2", "sk": "s3cret"}
    monkeypatch.setattr("sys.stdin", io.StringIO("a1b2"))
    assert run("account", "key", "bob", "--import").code == 2


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--scope", "everything"], "--scope everything"),
        (["--overlap", "1h"], "--overlap goes with --rotate"),
        (["--rotate", "a", "--scope", "read"], "--scope is for a new key"),
        (["--rotate", "a", "--overlap", "soon"], "--overlap soon"),
    ],
)
def test_refuses_what_it_cannot_mean(
    server: ScriptedServer, run: Run, flags: list[str], said: str
) -> None:
    ran = run("account", "key", "bob", *flags)
    assert (ran.code, said in ran.err) == (2, True), ran.err
    assert not server.requests


def test_revokes_one(server: ScriptedServer, run: Run) -> None:
    server.routes["POST /api/v2/accounts/bob/revoke"] = Answer({"tokens": 0, "certs": 0, "keys": 1})
    assert run("account", "revoke", "bob", "--key", "a1b2").out == (
        "revoked    1 access key of bob\n"
    )
    assert server.requests[0].json == {"key": "a1b2", "reason": ""}


# --- what `job` signs with -----------------------------------------------------------------------


@pytest.fixture
def asked(server: ScriptedServer, elsewhere: Path) -> ScriptedServer:
    server.routes[f"GET /api/v2/jobs/{ID}"] = Answer(full(phase="Failed"))
    return server


def _ak(request: Request) -> str:
    header = request.headers["authorization"]
    return header.split("/")[1] if header.startswith("paddle-auth-v1/") else ""


def _keep(ak: str, sk: str) -> None:
    files.write(files.config_file(), files.TOKEN, {"user_ak": ak, "user_sk": sk})


def test_signs_so_that_the_server_can_check_it(asked: ScriptedServer, run: Run) -> None:
    assert run("job", "--ak", "a1", "--sk", "s1", "state", ID).code == 0
    (request,) = asked.requests
    claim = signing.read_claim(request.headers["authorization"])
    signed = signing.Signed("GET", request.path, (), request.headers)
    proven = signing.verify(claim, signed, "s1", now_s=claim.timestamp_s)
    assert proven.is_complete
    signing.check_body(proven, b"")


def test_flags_go_before_the_file_only_together(
    asked: ScriptedServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PADDLECLOUD_TOKEN")
    _keep("stored", "s")
    run("job", "--ak", "a1", "--sk", "s1", "state", ID)
    ran = run("job", "--ak", "a1", "state", ID)
    run("job", "state", ID)
    assert [_ak(each) for each in asked.requests] == ["a1", "stored", "stored"]
    assert "only together" in ran.err


def test_a_token_of_the_environment_goes_before_the_file(asked: ScriptedServer, run: Run) -> None:
    _keep("stored", "s")
    run("job", "state", ID)
    assert asked.requests[0].headers["authorization"].startswith("Token ")


def test_a_file_with_bad_keys_is_refused_by_name(
    asked: ScriptedServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PADDLECLOUD_TOKEN")
    _keep("sto/red", "s3cret")
    ran = run("job", "state", ID)
    assert (ran.code, "user_ak in" in ran.err, "s3cret" in ran.err) == (2, True, False)
    assert not asked.requests


def test_every_attempt_has_a_nonce_of_its_own(asked: ScriptedServer, run: Run) -> None:
    for _ in range(2):
        run("job", "--ak", "a1", "--sk", "s1", "state", ID)
    assert len({each.headers[signing.NONCE] for each in asked.requests}) == 2
