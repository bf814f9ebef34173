"""`algo`: its answers in both shapes, what it refuses, and `job train --algo-id`."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run
from tests.cli.second_client import TRAIN, accept
from tests.scripted_server import Answer, ScriptedServer

pytestmark = pytest.mark.usefixtures("elsewhere")
ID = "algo-0123456789abcdef"
ALGO = {
    "id": ID,
    "name": "ctr",
    "group": "",
    "remark": "宽",
    "created_at": "2026-11-15T07:59:19.000Z",
    "account": "alice",
    "jobs": 1,
}
JOB = {
    "id": "job-4f1c09d2a7b35e60",
    "name": "a-b-1-1f2e3d",
    "title": "a_b:1",
    "phase": "Running",
    "submitted_at": "2026-11-15T07:59:19.000Z",
    "ended_at": None,
    "account": "alice",
}
SHOWN = {
    "algoId": ID,
    "algoName": "ctr",
    "algoRemark": "宽",
    "groupName": "",
    "userId": "alice",
    "createTime": "2026-11-15 07:59:19",
    "jobs": 1,
}
GONE = {"code": "not_found", "message": "no algorithm x", "hint": "look", "field": "algorithm"}


@pytest.mark.parametrize("words", [(), ("list",)])
def test_lists_them(server: ScriptedServer, run: Run, words: tuple[str, ...]) -> None:
    server.routes["GET /api/v2/algorithms"] = Answer({"items": [ALGO]})
    lines = run("algo", *words).out.splitlines()
    assert lines[1].split(" | ") == [
        "algo_id              ",
        "algo_name",
        "group_name",
        "user_id",
        "jobs",
        "create_time",
    ]
    assert lines[3].startswith(f"{ID} | ctr       |            | alice   | 1    | 2026-11-15")
    assert json.loads(run("algo", *(words or ("list",)), "--json").out) == {"algos": [SHOWN]}
    old = json.loads(run("algo", "--compat", "1", "list", "--json").out)
    assert old == {"code": 0, "data": {"algos": [SHOWN]}, "message": "success"}


def test_an_empty_list_says_so(server: ScriptedServer, run: Run) -> None:
    server.routes["GET /api/v2/algorithms"] = Answer({"items": []})
    assert run("algo").out == "No data.\n"


def test_creates_one(server: ScriptedServer, run: Run) -> None:
    server.routes["POST /api/v2/algorithms"] = Answer(ALGO, 201)
    ran = run("algo", "create", "--algo-name=ctr", "--algo-remark", "宽", "--group-name", "g")
    assert (ran.code, json.loads(ran.out)) == (0, SHOWN)
    assert server.requests[-1].json == {"name": "ctr", "group": "g", "remark": "宽"}


def test_tells_one_with_its_jobs(server: ScriptedServer, run: Run) -> None:
    server.routes[f"GET /api/v2/algorithms/{ID}"] = Answer({**ALGO, "items": [JOB]})
    found = json.loads(run("algo", "info", ID, "--size", "5").out)
    assert found["jobList"][0]["jobName"] == "a_b:1"
    assert found["jobList"][0]["jobStatus"] == "running"
    assert found.items() >= SHOWN.items()


def test_deletes_what_can_be(server: ScriptedServer, run: Run) -> None:
    server.routes[f"DELETE /api/v2/algorithms/{ID}"] = Answer(b"", 204)
    server.routes["DELETE /api/v2/algorithms/x"] = Answer(GONE, 404)
    ran = run("algo", "delete", f"{ID},", "x")
    assert ran.code == 1
    assert json.loads(ran.out) == {
        "code": 1,
        "data": {"algoIds": [ID], "failed": [{"algoId": "x", "message": "no algorithm x"}]},
        "message": "no algorithm x",
    }
    assert ran.err == "Error occurred: no algorithm x\n"
    alone = json.loads(run("algo", "delete", ID).out)
    assert alone == {"code": 0, "data": {"algoIds": [ID]}, "message": "success"}


def test_a_refusal_of_the_server_is_in_the_words_of_the_flags(
    server: ScriptedServer, run: Run
) -> None:
    fault = {"field": "group", "problem": "is no group of yours", "value": "g"}
    body = {"code": "invalid_input", "message": "", "hint": "", "field": "", "faults": [fault]}
    server.routes["POST /api/v2/algorithms"] = Answer(body, 400)
    ran = run("algo", "create", "--algo-name", "a", "--group-name", "g")
    assert (ran.code, ran.err) == (1, "Error occurred: --group-name is no group of yours\n")
    server.routes["GET /api/v2/algorithms/x"] = Answer(GONE, 404)
    assert run("algo", "info", "x").err == "Error occurred: no algorithm x\nhint:  look\n"


def test_an_unknown_option_is_exit_code_1(server: ScriptedServer, run: Run) -> None:
    ran = run("algo", "list", "--nonsense")
    assert (ran.code, ran.out, server.requests) == (1, "", [])
    assert "--nonsense    unknown option" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lits",), "did you mean list?"),
        (("create",), "--algo-name    is missing or empty"),
        (("create", "--algo-name", " "), "--algo-name    is missing or empty"),
        (("create", "x"), "x    is not asked for here"),
        (("info",), "ALGO_ID    is missing: info which algorithm?"),
        (("info", "a", "b"), "ALGO_ID a b    info takes one, not 2"),
        (("info", "a", "--size", "0"), "--size 0    must be a whole number from 1 to 1000"),
        (("delete", ","), "ALGO_ID    is missing"),
    ],
)
def test_refuses(server: ScriptedServer, run: Run, words: tuple[str, ...], said: str) -> None:
    ran = run("algo", *words)
    assert (ran.code, ran.out, server.requests) == (2, "", [])
    assert said in ran.err


def test_train_checks_the_algorithm_before_anything_is_sent(
    server: ScriptedServer, run: Run
) -> None:
    sent = accept(server)
    server.routes[f"GET /api/v2/algorithms/{ID}"] = Answer(GONE, 404)
    ran = run("job", *TRAIN, "--algo-id", ID)
    assert ran.code == 1
    assert f"aborted due to error, --algo-id {ID}: there is no such algorithm" in ran.out
    assert sent == []
    server.routes[f"GET /api/v2/algorithms/{ID}"] = Answer({**ALGO, "items": []})
    assert run("job", *TRAIN, "--algo-id", ID).code == 0
    assert sent[-1]["annotations"]["algo-id"] == ID
