"""Who gets in: tokens of the cloud server, its word through the relay, and nobody else."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pfs.calls import PFS, ask, put
from tests.pfs.running import Caller, FakeCloud, Running

_HOME = "/pfs/local/home/alice"


def test_asks_once_a_second_and_not_for_every_request(cloud: FakeCloud, server: Running) -> None:
    cloud.tokens["Token often"] = {"name": "often", "id": 90, "admin": False}
    often = server.as_user("often")
    assert ask(often, "entries", "/pfs/local/home/often").status == 200
    before, began_s = cloud.asked, time.monotonic()
    for _ in range(50):
        assert ask(often, "entries", "/pfs/local/home/often").status == 200
    assert cloud.asked - before <= time.monotonic() - began_s + 1


def test_lets_a_revoked_token_in_for_a_second_at_most(cloud: FakeCloud, server: Running) -> None:
    cloud.tokens["Token brief"] = {"name": "brief", "id": 91, "admin": False}
    brief = server.as_user("brief")
    path = "/pfs/local/home/brief"
    assert ask(brief, "entries", path).status == 200
    del cloud.tokens["Token brief"]
    revoked_s = time.monotonic()
    while ask(brief, "entries", path).status == 200:
        # The last one that got in was asked about before the token was revoked.
        assert time.monotonic() - revoked_s < 10
        last_s = time.monotonic()
        assert last_s - revoked_s <= 1.5
    assert ask(brief, "entries", path).status == 401


def test_understands_a_cloud_server_that_knows_only_names(
    cloud: FakeCloud, own_server: Running
) -> None:
    cloud.is_old = True
    alice = own_server.as_user("alice")
    assert put(alice, f"{_HOME}/f", b"1").status == 200
    assert own_server.as_user("nobody").get(f"{PFS}/uploads").status == 401


def test_lets_nobody_in_when_the_cloud_server_is_not_there(
    tmp_path: Path, cloud: FakeCloud
) -> None:
    running = Running(tmp_path / "root", "http://127.0.0.1:9").start()
    try:
        answer = running.as_user("alice").get(f"{PFS}/uploads")
        assert (answer.status, answer.json["code"]) == (503, "unavailable")
        assert answer.headers["retry-after"] == "1"
        assert running.as_user("alice").get("/healthz").status == 200
    finally:
        running.stop()


@pytest.mark.parametrize(
    "facts",
    [{"name": "../alice"}, {"name": ""}, {"name": 5}, {"name": "a/b", "id": 1}, [], "alice", {}],
)
def test_believes_no_nonsense_about_a_caller(cloud: FakeCloud, server: Running, facts: Any) -> None:
    cloud.tokens[f"Token odd {facts}"] = facts
    answer = server.as_user(f"odd {facts}").get(f"{PFS}/uploads")
    assert answer.status in (401, 503)


# --- the relay ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def relayed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("relay")
    (folder / "secret").write_text("correct horse\n")
    # No cloud server at all: the relay's word must be enough.
    running = Running(
        folder / "root", "http://127.0.0.1:9", ("--relay-secret", str(folder / "secret"))
    ).start()
    yield running
    running.stop()


def _word(facts: Any) -> str:
    return base64.b64encode(json.dumps(facts).encode()).decode()


def test_believes_the_relay_that_knows_the_secret(relayed: Running) -> None:
    facts = {"name": "alice", "id": 1, "storage": {"bytes": 10, "files": None}}
    relay = Caller(relayed, {"PFS-Relay": "correct horse", "PFS-Caller": _word(facts)})
    assert put(relay, f"{_HOME}/f", b"1").status == 200
    over = relay.post(f"{PFS}/uploads", {"path": f"{_HOME}/g", "size": 11})
    assert over.json["code"] == "quota_exceeded"


@pytest.mark.parametrize(
    "headers",
    [
        {"PFS-Relay": "wrong", "PFS-Caller": _word({"name": "alice", "id": 1})},
        {"PFS-Relay": "", "PFS-Caller": _word({"name": "alice", "id": 1})},
        {"PFS-Caller": _word({"name": "alice", "id": 1})},
        {"PFS-Relay": "correct horse"},
        {"PFS-Relay": "correct horse", "PFS-Caller": "not base64!"},
        {"PFS-Relay": "correct horse", "PFS-Caller": _word("alice")},
    ],
)
def test_believes_no_other_word(relayed: Running, headers: dict[str, str]) -> None:
    assert Caller(relayed, headers).get(f"{PFS}/uploads").status in (401, 503)


def test_has_no_relay_without_a_secret(server: Running) -> None:
    for secret in ("", "correct horse"):
        headers = {"PFS-Relay": secret, "PFS-Caller": _word({"name": "alice", "id": 1})}
        assert Caller(server, headers).get(f"{PFS}/uploads").status == 401
