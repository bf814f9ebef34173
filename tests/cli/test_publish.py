"""`publish`: making, listing and revoking links, against a scripted server."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run
from tests.scripted_server import Answer, ScriptedServer

MODEL = "/pfs/local/home/alice/model"
LINK = {
    "id": "3f0c7d1e",
    "path": MODEL,
    "url": "http://127.0.0.1:8000/filepub/?uuid=3f0c7d1e",
    "created_at": "2026-11-15T08:00:00.000Z",
    "expires_at": "2026-11-22T08:00:00.000Z",
}


def test_prints_the_link_and_beside_it_how_to_end_it(server: ScriptedServer, run: Run) -> None:
    server.routes["POST /api/v2/publications"] = Answer(LINK, 201)
    ran = run("publish", MODEL)
    assert ran.out == f"{LINK['url']}\n"
    assert ran.err == (
        "works until 2026-11-22 08:00:00; to end it: paddlecloud publish --revoke 3f0c7d1e\n"
    )
    assert server.requests[-1].json == {"path": MODEL}
    assert json.loads(run("publish", MODEL, "-o", "json").out) == {"items": [LINK]}


def test_a_link_lives_as_long_as_told(server: ScriptedServer, run: Run) -> None:
    server.routes["POST /api/v2/publications"] = Answer(LINK, 201)
    run("publish", "--expires", "12h", MODEL)
    assert server.requests[-1].json == {"path": MODEL, "expires_in_s": 43200}


def test_lists_links_in_full(server: ScriptedServer, run: Run) -> None:
    server.routes["GET /api/v2/publications"] = Answer({"items": [LINK]})
    assert run("publish").out == (
        "ID         EXPIRES               PATH                          URL\n"
        f"3f0c7d1e   2026-11-22 08:00:00   {MODEL}   {LINK['url']}\n"
    )
    assert json.loads(run("publish", "-o", "json").out) == {"items": [LINK]}


def test_revokes_by_id(server: ScriptedServer, run: Run) -> None:
    server.routes["DELETE /api/v2/publications/3f0c7d1e"] = Answer(None, 204)
    assert run("publish", "--revoke", "3f0c7d1e").out == "revoked 3f0c7d1e\n"
    assert run("publish", "--revoke", "other").code == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("model",), "model is not a path under /pfs"),
        (("--expires", "soon", MODEL), "--expires soon"),
        (("--expires", "59s", MODEL), "--expires 59s    must be from 1m to 365d"),
        (("--expires", "366d", MODEL), "--expires 366d    must be from 1m to 365d"),
        (("--expires", "7d"), "--expires needs a file"),
    ],
)
def test_refuses_and_says_what_to_type(
    server: ScriptedServer, run: Run, words: tuple[str, ...], message: str
) -> None:
    ran = run("publish", *words)
    assert (ran.code, message in ran.err) == (2, True)
    assert server.requests == []
