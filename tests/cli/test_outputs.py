"""`paddlecloud outputs`: what a job left is listed or fetched, wherever the server says it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.core.errors import NotAllowed
from paddlecloud.sdk import Client
from tests.cli.conftest import Run
from tests.cli.scripted_files import ScriptedFiles, file, folder, summary
from tests.cli.shapes import ended, job, page
from tests.scripted_server import Answer, ScriptedServer

OUTPUT = "/pfs/dc2/home/bob/jobs/fit/output"


def has_job(server: ScriptedServer, shape: dict[str, Any]) -> None:
    server.routes["GET /api/v2/jobs/fit"] = Answer({**shape, "spec": {}})


@pytest.fixture
def left(server: ScriptedServer, files: ScriptedFiles) -> ScriptedFiles:
    has_job(server, ended("fit", output=OUTPUT))
    files.add(OUTPUT, folder("output"))
    files.add(f"{OUTPUT}/model.json", file("model.json", 36))
    files.add(f"{OUTPUT}/steps", folder("steps"))
    files.add(f"{OUTPUT}/steps/1.bin", file("1.bin", 3_145_728))
    return files


def test_lists_every_file_with_its_size(left: ScriptedFiles, run: Run) -> None:
    ran = run("outputs", "fit")
    assert (ran.code, ran.out) == (
        0,
        "SIZE      CHANGED               NAME\n"
        "36 B      2025-11-15 07:52:45   model.json\n"
        "3.0 MiB   2025-11-15 07:52:45   steps/1.bin\n",
    )
    assert ran.err == "2 files, 3.0 MiB; to fetch: paddlecloud outputs fit FOLDER\n"


def test_lists_for_programs(left: ScriptedFiles, run: Run) -> None:
    items = json.loads(run("outputs", "fit", "-o", "json").out)["items"]
    assert [item["path"] for item in items] == [f"{OUTPUT}/model.json", f"{OUTPUT}/steps/1.bin"]
    assert run("outputs", "-o", "name", "fit").out == "model.json\nsteps/1.bin\n"


def test_fetches_into_a_folder_and_says_how_much(left: ScriptedFiles, run: Run) -> None:
    left.summary = summary(files=2, size_bytes=3_145_764, sent_files=2, sent_bytes=3_145_764)
    ran = run("outputs", "fit", "./fit")
    [(sources, target, how)] = [what for verb, what in left.asked if verb == "copy"]
    assert (sources, target, how["recursive"]) == ([f"{OUTPUT}/"], "./fit", True)
    assert how["replace"] == "changed"
    assert ran.code == 0
    assert "2 files, 3.0 MiB: received 3.0 MiB" in ran.out


def test_says_that_a_job_left_nothing(left: ScriptedFiles, run: Run) -> None:
    for path in (f"{OUTPUT}/model.json", f"{OUTPUT}/steps/1.bin"):
        del left.tree[path]
    ran = run("outputs", "fit")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == (
        "fit left nothing: it wrote nothing to $OUTPUT_PATH. "
        "paddlecloud logs fit shows what it printed\n"
    )
    assert json.loads(run("outputs", "fit", "-o", "json").out) == {"items": []}
    ran = run("outputs", "fit", "./fit")
    assert ran.code == 4
    assert ran.err.startswith("error: fit left nothing")
    assert not [verb for verb, _ in left.asked if verb == "copy"]


def test_a_job_that_waits_has_nothing_yet(
    server: ScriptedServer, files: ScriptedFiles, run: Run
) -> None:
    has_job(server, job("fit", phase="Queued", started_at=None, output=OUTPUT))
    ran = run("outputs", "fit")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == (
        "fit is Queued and has written nothing to $OUTPUT_PATH so far. "
        "paddlecloud explain fit says why\n"
    )
    has_job(server, ended("fit", "Killed", started_at=None, output=OUTPUT))
    assert run("outputs", "fit").err.startswith("fit never started, so it left nothing. ")


def test_says_that_a_running_job_may_write_more(
    server: ScriptedServer, left: ScriptedFiles, run: Run
) -> None:
    has_job(server, job("fit", output=OUTPUT))
    note = "note: fit is Running; this is what is there so far\n"
    assert note in run("outputs", "fit").err
    assert note in run("outputs", "fit", "./fit").err


def test_suggests_a_job_near_an_unknown_name(server: ScriptedServer, run: Run) -> None:
    lost = {"error": {"code": "NotFound", "message": "no job named fti", "hint": "", "field": ""}}
    server.routes["GET /api/v2/jobs/fti"] = Answer(lost, 404)
    server.routes["GET /api/v2/jobs"] = page(job("fit"))
    ran = run("outputs", "fti")
    assert ran.code == 4
    assert "Did you mean fit?" in ran.err


def test_what_a_shared_job_left_stays_its_owners(left: ScriptedFiles, run: Run) -> None:
    left.failing = NotAllowed("not a valid user: alice")
    ran = run("outputs", "fit")
    assert ran.code == 3
    assert ran.err == (
        "error: what fit left is in the home of alice, for nobody else to read\n"
        "hint:  alice can share a file by a link: paddlecloud publish PATH\n"
    )


def test_wrong_words_are_refused(run: Run) -> None:
    for words in ((), ("a", "b", "c")):
        ran = run("outputs", *words)
        assert ran.code == 2
        assert "hint:  usage: paddlecloud outputs" in ran.err


def test_the_sdk_lists_and_fetches_by_name(left: ScriptedFiles, tmp_path: Path) -> None:
    with Client() as client:
        assert [entry["name"] for entry in client.outputs("fit")] == ["model.json", "steps/1.bin"]
        client.fetch_outputs("fit", str(tmp_path / "fit"))
    assert left.asked[-1][0] == "copy"
    assert left.asked[-1][1][:2] == ([f"{OUTPUT}/"], str(tmp_path / "fit"))
