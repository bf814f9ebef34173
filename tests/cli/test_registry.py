"""`registry`, `get registry` and `delete registry`, against a scripted server."""

from __future__ import annotations

import io
import json

import pytest

from tests.cli.conftest import Run
from tests.scripted_server import Answer, ScriptedServer

HUB = {
    "name": "hub",
    "secret": "pcloud-registry-hub",
    "server": "hub.example.com",
    "username": "alice",
    "created_at": "2026-11-15T07:00:00.123Z",
    "changed_at": "2026-11-15T07:30:00.456Z",
}
WORDS = ("-name", "hub", "-username", "alice", "-password", "s3cret", "-server", "hub.example.com")
SENT = {"name": "hub", "username": "alice", "password": "s3cret", "server": "hub.example.com"}


@pytest.mark.parametrize("order", [("add", *WORDS), (*WORDS, "add"), WORDS])
def test_adds_one_wherever_the_word_stands(
    server: ScriptedServer, run: Run, order: tuple[str, ...]
) -> None:
    server.routes["POST /api/v2/registries"] = Answer(HUB, 201)
    ran = run("registry", *order)
    assert (ran.code, ran.out, ran.err) == (0, "registry: [hub] is added\n", "")
    assert server.requests[-1].json == SENT


def test_reads_the_password_from_the_standard_input(
    server: ScriptedServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.routes["POST /api/v2/registries"] = Answer(HUB, 201)
    monkeypatch.setattr("sys.stdin", io.StringIO('{\n "key": 1\n}\n'))
    words = ("-name", "hub", "-username", "_json_key", "--password-stdin", "-server", "gcr.io")
    assert run("registry", "add", *words).code == 0
    assert server.requests[-1].json["password"] == '{\n "key": 1\n}'


def test_del_and_delete_remove_one(server: ScriptedServer, run: Run) -> None:
    server.routes["DELETE /api/v2/registries/hub"] = Answer(None, 204)
    assert run("registry", "del", "-name", "hub").out == "registry: [hub] is deleted\n"
    assert run("delete", "registry", "hub").out == "registry: [hub] is deleted\n"
    assert run("delete", "registry", "other").code == 4


def test_lists_them_in_the_columns_of_the_first_client(server: ScriptedServer, run: Run) -> None:
    server.routes["GET /api/v2/registries"] = Answer({"items": [HUB]})
    assert run("get", "registry").out == ("ID   NAME   DATA\n0    hub    2026-11-15T07:00:00Z\n")
    assert run("get", "registry", "-o", "wide").out == (
        "ID   NAME   DATA                   SERVER            USERNAME\n"
        "0    hub    2026-11-15T07:00:00Z   hub.example.com   alice\n"
    )
    assert json.loads(run("get", "registry", "-o", "json").out) == {"items": [HUB]}


def test_an_empty_list_has_its_head(server: ScriptedServer, run: Run) -> None:
    server.routes["GET /api/v2/registries"] = Answer({"items": []})
    assert run("get", "registry").out == "ID   NAME   DATA\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("registry", "add", "-name", "hub"), "-username"),
        (("registry", "add", "-name", "hub"), "-password"),
        (("registry", "add", "-name", "hub"), "-server"),
        (("registry", "ad", *WORDS), "it can add and del"),
        (("registry", "del"), "-name: is missing"),
        (("delete",), "delete what?"),
        (("delete", "registry"), "which registry?"),
        (("delete", "job", "x"), "paddlecloud kill -rm x"),
        (("delete", "x"), "delete cannot remove x"),
        (("get", "registrys"), "Did you mean registry?"),
    ],
)
def test_refuses_and_says_what_to_type(
    server: ScriptedServer, run: Run, words: tuple[str, ...], message: str
) -> None:
    ran = run(*words)
    assert (ran.code, message in ran.err) == (2, True), ran.err
    assert server.requests == []
    assert "s3cret" not in ran.err
