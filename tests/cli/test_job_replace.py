"""`job replace`: how it asks, what it answers, what it refuses."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run
from tests.cli.second_client import ID, full
from tests.scripted_server import Answer, ScriptedServer

pytestmark = pytest.mark.usefixtures("elsewhere")
MOVE = f"POST /api/v2/jobs/{ID}/move"


def test_asks_for_each_pod_and_answers_as_other_orders_do(server: ScriptedServer, run: Run) -> None:
    server.routes[MOVE] = Answer(full(), 202)
    pods = f"pod={ID}-trainer-1,host=127.0.0.3;pod={ID}-trainer-2,host=127.0.0.4"
    for words in ([ID, "--pods", pods], [f"--pods={pods}", ID], [ID, "--po", pods]):
        ran = run("job", "replace", *words)
        assert (ran.code, ran.err) == (0, "")
        data = {"jobIds": [ID], "pods": [f"{ID}-trainer-1", f"{ID}-trainer-2"]}
        assert json.loads(ran.out) == {"code": 0, "data": data, "message": "success"}
        assert server.requests[-1].json == {
            "replicas": [
                {"replica": f"{ID}-trainer-1", "host": "127.0.0.3"},
                {"replica": f"{ID}-trainer-2", "host": "127.0.0.4"},
            ]
        }


@pytest.mark.parametrize(
    ("words", "faults"),
    [
        ((), ["JOB_ID", "--pods"]),
        ((ID,), ["--pods"]),
        ((ID, "--pods"), ["--pods"]),
        (("--pods", "pod=a,host=h"), ["JOB_ID"]),
        ((ID, "job-2", "--pods", "pod=a"), ["JOB_ID", "--pods"]),
        ((ID, "--pods", "pod=a;b"), ["--pods pod=a", "--pods b"]),
        ((ID, "--pods", ""), ["--pods"]),
        ((ID, "--bods", "pod=a,host=h"), ["--bods"]),
    ],
)
def test_says_all_that_is_wrong_and_asks_for_nothing(
    server: ScriptedServer, run: Run, words: tuple[str, ...], faults: list[str]
) -> None:
    ran = run("job", "replace", *words)
    is_only_unknown = faults == ["--bods"]
    assert (ran.code, ran.out, server.requests) == (1 if is_only_unknown else 2, "", [])
    lines = [line.strip() for line in ran.err.splitlines() if line.startswith("  ")]
    assert len(lines) == len(faults)
    assert all(line.startswith(start) for line, start in zip(lines, faults, strict=True))


def test_a_pod_that_is_not_there_is_a_failure_in_the_servers_words(
    server: ScriptedServer, run: Run
) -> None:
    fault = {"field": "x-trainer-9", "problem": "no such pod; the job has a, b", "value": ""}
    body = {
        "code": "invalid_input",
        "message": "",
        "hint": "look",
        "field": "",
        "faults": [fault],
    }
    server.routes[MOVE] = Answer(body, 400)
    ran = run("job", "replace", ID, "--pods", "pod=x-trainer-9,host=h")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == ("Error occurred: x-trainer-9 no such pod; the job has a, b\nhint:  look\n")


def test_explains_itself(run: Run) -> None:
    ran = run("job", "replace", "-h")
    assert ran.code == 0
    assert ran.out.startswith('usage: paddlecloud job replace [options] JOB_ID --pods "pod=P,host=')
    assert "--pods" in ran.out
