"""`group list|info|create|delete|add|remove|quota`, against a scripted server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.scripted_server import Answer, ScriptedServer

pytestmark = pytest.mark.usefixtures("elsewhere")

NONE = {"cpu": None, "memory": None, "gpu": None, "replicas": None}
NLP: dict[str, Any] = {
    "name": "nlp",
    "own": False,
    "role": "owner",
    "weight": 2,
    "clusters": ["local"],
    "guarantee": {**NONE, "gpu": 4},
    "limit": {**NONE, "gpu": 8, "cpu": "16"},
    "used": {"cpu": "4", "memory": "1Gi", "gpu": 6, "replicas": 3},
    "beyond": {"cpu": "4", "memory": "1Gi", "gpu": 2, "replicas": 3},
    "created_at": "2026-11-15T07:00:00.000Z",
}
INFO: dict[str, Any] = {
    **NLP,
    "idleQuota": {"cpu": "8", "memory": "24158128Ki", "gpu": 2, "replicas": None},
    "members": [{"account": "alice", "role": "owner"}, {"account": "bob", "role": "viewer"}],
    "jobs": {"running": 2, "waiting": 1},
    "notes": [],
}
PATH = "/api/v2/groups/nlp"


@pytest.fixture
def group(server: ScriptedServer) -> ScriptedServer:
    server.routes["GET /api/v2/groups"] = Answer({"items": [NLP]})
    server.routes[f"GET {PATH}"] = Answer(INFO)
    return server


@pytest.mark.usefixtures("group")
def test_lists_groups_with_what_they_use_and_may(run: Run) -> None:
    assert run("group", "list").out == (
        "NAME   ROLE    WEIGHT   CPU USED/GUARANTEE/LIMIT   GPU USED/GUARANTEE/LIMIT\n"
        "nlp    owner   2        4/-/16                     6/4/8\n"
    )
    assert run("group", "list", "-o", "name").out == "nlp\n"
    assert json.loads(run("group", "list", "-o", "json").out)["items"][0]["weight"] == 2


@pytest.mark.usefixtures("group")
def test_info_is_a_table_for_people(run: Run) -> None:
    assert run("group", "info", "nlp").out == (
        "group      nlp (weight 2), on local\n"
        "members    alice (owner), bob (viewer)\n"
        "jobs       2 running, 1 waiting\n"
        "RESOURCE   USED   GUARANTEE   LIMIT   BEYOND   IDLE\n"
        "cpu        4      -           16      4        8\n"
        "memory     1Gi    -           -       1Gi      23Gi\n"
        "gpu        6      4           8       2        2\n"
        "replicas   3      -           -       3        -\n"
    )


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    "words",
    [
        ("info", "--group-name", "nlp", "--json"),
        ("info", "--group-name=nlp", "--json"),
        ("info", "--json", "--group_name", "nlp"),
        ("info", "nlp", "-o", "json"),
        ("--debug", "info", "--group", "nlp", "--json"),
    ],
)
def test_scripts_of_the_second_client_read_the_idle_cards(run: Run, words: tuple[str, ...]) -> None:
    found = json.loads(run("group", *words).out)
    assert (found["groupName"], found["idleQuota"]["gpu"]) == ("nlp", 2)
    # As every answer of that client: an indent of 4, sorted keys.
    shown = run("group", "info", "--group-name", "nlp", "--json").out
    assert shown == json.dumps(found, indent=4, sort_keys=True, ensure_ascii=False) + "\n"


def test_info_without_a_name_is_the_callers_own(group: ScriptedServer, run: Run) -> None:
    group.routes["GET /api/v2/whoami"] = Answer({"name": "nlp", "id": 2, "admin": False})
    assert run("group", "info").out.startswith("group      nlp ")


def test_creates_with_owner_and_quota(group: ScriptedServer, run: Run) -> None:
    group.routes["POST /api/v2/groups"] = Answer(INFO, 201)
    words = ("--owner", "bob", "--guarantee-gpu", "4", "--limit-memory", "10Gi", "--weight=2")
    ran = run("group", "create", "nlp", *words, "--clusters", "local,yq01")
    assert (ran.code, ran.out) == (0, "group      nlp created\n")
    assert group.requests[-1].json == {
        "name": "nlp",
        "owner": "bob",
        "guarantee": {"gpu": 4},
        "limit": {"memory": "10Gi"},
        "weight": 2,
        "clusters": ["local", "yq01"],
    }


def test_sends_only_the_quota_that_is_given(group: ScriptedServer, run: Run) -> None:
    group.routes[f"PUT {PATH}/quota"] = Answer({**INFO, "notes": ["12 gpu are guaranteed in all"]})
    ran = run("group", "quota", "nlp", "--limit-gpu", "none", "--clusters", "all")
    assert group.requests[-1].json == {"limit": {"gpu": None}, "clusters": []}
    assert ran.out == "nlp   guarantee gpu 4; limit cpu 16, gpu 8; weight 2\n"
    assert ran.err == "note: 12 gpu are guaranteed in all\n"


def test_quota_without_flags_only_shows_it(group: ScriptedServer, run: Run) -> None:
    assert run("group", "quota", "nlp").out.startswith("nlp   guarantee gpu 4; ")
    assert [request.method for request in group.requests] == ["GET"]


def test_adds_and_removes_people(group: ScriptedServer, run: Run) -> None:
    group.routes[f"PUT {PATH}/members"] = Answer(INFO)
    group.routes[f"POST {PATH}/members/remove"] = Answer(None, 204)
    assert run("group", "add", "nlp", "bob").out == "group      bob is member of nlp\n"
    assert run("group", "add", "--group-name", "nlp", "bob", "--role", "viewer").code == 0
    assert [request.json for request in group.requests] == [
        {"account": "bob", "role": "member"},
        {"account": "bob", "role": "viewer"},
    ]
    ran = run("group", "remove", "nlp", "bob")
    assert ran.out == "group      bob is no longer in nlp; their jobs go on\n"


def test_deletes(group: ScriptedServer, run: Run) -> None:
    group.routes[f"DELETE {PATH}"] = Answer(None, 204)
    assert run("group", "delete", "nlp").out == "group      nlp deleted\n"


def test_faults_of_the_server_are_named_as_typed(group: ScriptedServer, run: Run) -> None:
    fault = {"field": "limit.gpu", "problem": "is below the guarantee, 4 gpu", "value": "2"}
    body = {"code": "invalid_input", "message": "", "hint": "", "field": "", "faults": [fault]}
    group.routes[f"PUT {PATH}/quota"] = Answer(body, 400)
    ran = run("group", "quota", "nlp", "--limit-gpu", "2")
    assert ran.code == 2
    assert "  --limit-gpu 2    is below the guarantee, 4 gpu\n" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "group needs an action"),
        (("inf", "nlp"), "did you mean info?"),
        (("quota",), "GROUP    is missing: quota which group?"),
        (("add", "nlp"), "ACCOUNT    is missing: add which account?"),
        (("delete", "nlp", "cv"), "cv    is not asked for here"),
        (("quota", "nlp", "--limit-gpu", "-1"), "--limit-gpu -1    must be a whole number or none"),
        (("quota", "nlp", "--weight", "0"), "--weight 0    must be a whole number from 1 to 1000"),
        (("add", "nlp", "bob", "--role", "boss"), "--role boss"),
    ],
)
def test_refuses_what_cannot_be_meant(
    server: ScriptedServer, run: Run, words: tuple[str, ...], said: str
) -> None:
    ran = run("group", *words)
    assert ran.code == 2
    assert said in ran.err
    assert server.requests == []
