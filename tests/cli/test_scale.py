"""`scale`: another number of trainers, against a scripted server."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run
from tests.scripted_server import Answer, ScriptedServer

JOB = {"id": "job-0123456789abcdef", "name": "wide"}


@pytest.mark.parametrize(
    "words", [("wide", "4"), ("wide", "--replicas", "4"), ("--replicas=4", "wide")]
)
def test_asks_for_so_many(server: ScriptedServer, run: Run, words: tuple[str, ...]) -> None:
    server.routes["POST /api/v2/jobs/wide/scale"] = Answer(JOB, 202)
    ran = run("scale", *words)
    assert (ran.code, ran.out) == (0, "wide  asked for 4 trainers  job-0123456789abcdef\n")
    assert server.requests[-1].json == {"trainers": 4}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "scale which job"),
        (("wide",), "to how many trainers?"),
        (("wide", "4", "5"), "to how many trainers?"),
        (("wide", "many"), "many is no number of trainers"),
        (("wide", "0"), "0 is no number of trainers"),
        (("wide", "--replicas", "0"), "--replicas"),
    ],
)
def test_refuses_and_says_what_to_type(
    server: ScriptedServer, run: Run, words: tuple[str, ...], message: str
) -> None:
    ran = run("scale", *words)
    assert (ran.code, message in ran.err) == (2, True), ran.err
    assert server.requests == []
