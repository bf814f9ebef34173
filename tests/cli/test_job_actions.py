"""`job state|info|list|kill|rerun|delete`: every answer shape of 1.x and 2.x."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run
from tests.cli.second_client import ID, OTHER, full
from tests.cli.shapes import ended, page, replica
from tests.scripted_server import Answer, ScriptedServer

pytestmark = pytest.mark.usefixtures("elsewhere")


@pytest.mark.parametrize(
    ("phase", "word"),
    [
        ("Submitted", "submit"),
        ("Starting", "schedule"),
        ("Queued", "queue"),
        ("Preempted", "queue"),
        ("Suspended", "queue"),
        ("Running", "running"),
        ("Rescaling", "running"),
        ("Succeeded", "success"),
        ("Failed", "fail"),
        ("Killed", "killed"),
        ("TimedOut", "killed"),
    ],
)
def test_says_the_state_in_the_words_of_the_old_client(
    server: ScriptedServer, run: Run, phase: str, word: str
) -> None:
    server.routes[f"GET /api/v2/jobs/{ID}"] = Answer(full(phase=phase))
    answer = json.loads(run("job", "state", ID).out)
    assert answer == {"jobId": ID, "jobStatus": word, "usedTime": 39}
    old = json.loads(run("job", "--compat", "1", "state", ID).out)
    assert old == {"code": 0, "data": {"jobStatus": word}, "message": "success"}


@pytest.mark.parametrize(("kill", "word"), [("asked", "kill_submit"), ("stopping", "killing")])
def test_every_answer_says_that_a_job_is_being_killed(
    server: ScriptedServer, run: Run, kill: str, word: str
) -> None:
    dying = full(kill=kill)
    server.routes[f"GET /api/v2/jobs/{ID}"] = Answer(dying)
    server.routes[f"GET /api/v2/jobs/{ID}/replicas"] = Answer({"items": []})
    server.routes["GET /api/v2/jobs"] = page(dying)
    assert f'"jobStatus": "{word}"' in run("job", "state", ID).out
    assert f'"jobStatus": "{word}"' in run("job", "info", ID).out
    assert f"jobStatus: {word}\n" in run("job", "list").out


def test_tells_all_about_a_job(server: ScriptedServer, run: Run) -> None:
    notes = {"tags": "x", "remark": "训练", "permission": "group"}
    server.routes[f"GET /api/v2/jobs/{ID}"] = Answer(full(notes=notes, group="g", phase="Failed"))
    server.routes[f"GET /api/v2/jobs/{ID}/replicas"] = Answer(
        {"items": [replica("a-b-1-1f2e3d-trainer-0"), replica("a-b-1-1f2e3d-pserver-0")]}
    )
    out = run("job", "info", ID).out
    found = json.loads(out)
    assert (
        found.items()
        >= {
            "jobName": "a_b:1",
            "jobStatus": "fail",
            "groupName": "g",
            "jobTags": "x",
            "jobAuth": "group",
            "startCMD": "python t.py",
        }.items()
    )
    assert "训练" in out
    assert found["trainerList"] == [
        {
            "resourceName": f"{ID}-trainer-0",
            "status": "Running",
            "host": "127.0.0.2",
            "logUrl": f"{server.url}/api/v2/jobs/{ID}/logs?replica=trainer-0",
        }
    ]
    assert len(found["pserverList"]) == 1
    assert "jobConf" not in found
    old = json.loads(run("job", "--compat", "1", "info", ID).out)
    assert (old["code"], old["data"]) == (0, found)


@pytest.fixture
def two_jobs(server: ScriptedServer) -> ScriptedServer:
    one = full(id=ID)
    two = {**ended("plain", id=OTHER), "spec": {"annotations": {}}}
    server.routes["GET /api/v2/jobs"] = page(one, two)
    server.routes[f"GET /api/v2/jobs/{ID}"] = Answer(one)
    server.routes[f"GET /api/v2/jobs/{OTHER}"] = Answer(two)
    return server


LISTED = """\
*************************** 1. row ***************************
      jobId{0}job-4f1c09d2a7b35e60
    jobName{0}a_b:1
  jobStatus{0}running
  groupName{0}alice
clusterName{0}local
     userId{0}alice
 createTime{0}2026-11-15 07:59:19
  startTime{0}2026-11-15 07:59:20
    endTime{1}
   usedTime{0}39
*************************** 2. row ***************************
      jobId{0}job-0a1b2c3d4e5f6071
    jobName{0}plain
  jobStatus{0}success
  groupName{0}alice
clusterName{0}local
     userId{0}alice
 createTime{0}2026-11-15 07:59:19
  startTime{0}2026-11-15 07:59:20
    endTime{0}2026-11-15 07:59:50
   usedTime{0}29
"""


def test_lists_as_either_generation_did(two_jobs: ScriptedServer, run: Run) -> None:
    assert run("job", "list").out == LISTED.format(": ", ":")
    assert run("job", "--compat", "1", "list").out == LISTED.format(" : ", " :")


def test_lists_for_programs(two_jobs: ScriptedServer, run: Run) -> None:
    found = json.loads(run("job", "list", "--json").out)
    assert [each["jobId"] for each in found["jobs"]] == [ID, OTHER]
    old = json.loads(run("job", "--compat", "1", "list", "--json").out)
    assert (old["code"], old["data"]) == (0, found)


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (("--size", "1"), [ID]),
        (("--size", "1", "--page", "2"), [OTHER]),
        (("--page", "2"), []),
        (("--job-name", "a_b:1"), [ID]),
        (("--job-name", "plain"), [OTHER]),
        (("--job-name", "a.b.1"), []),  # the same plain name, another name
    ],
)
def test_lists_a_part(
    two_jobs: ScriptedServer, run: Run, words: tuple[str, ...], ids: list[str]
) -> None:
    found = json.loads(run("job", "list", "--json", *words).out)
    assert [each["jobId"] for each in found["jobs"]] == ids


@pytest.mark.parametrize(("words", "asked"), [((), None), (("--type", "favorite"), "favorite")])
def test_lists_of_a_kind_are_the_servers(
    two_jobs: ScriptedServer, run: Run, words: tuple[str, ...], asked: str | None
) -> None:
    assert run("job", "list", *words).code == 0
    assert two_jobs.requests[0].query.get("type") == asked


@pytest.mark.parametrize(
    ("words", "method"), [((), "PUT"), (("--remove",), "DELETE"), (("--json",), "PUT")]
)
def test_marks_favorites_and_takes_marks_away(
    two_jobs: ScriptedServer, run: Run, words: tuple[str, ...], method: str
) -> None:
    for job_id in (ID, OTHER):
        two_jobs.routes[f"{method} /api/v2/jobs/{job_id}/favorite"] = Answer(b"", 204)
    ran = run("job", "favorite", f"{ID},", OTHER, *words)
    assert json.loads(ran.out)["data"] == {"jobIds": [ID, OTHER]}
    marked = [each.path for each in two_jobs.requests if each.method == method]
    assert marked == [f"/api/v2/jobs/{job_id}/favorite" for job_id in (ID, OTHER)]


def test_favorite_asks_which_job(server: ScriptedServer, run: Run) -> None:
    ran = run("job", "favorite")
    assert (ran.code, "favorite which job?" in ran.err) == (2, True)


@pytest.mark.parametrize("compat", ["1", "2"])
def test_an_empty_list_says_so(server: ScriptedServer, run: Run, compat: str) -> None:
    server.routes["GET /api/v2/jobs"] = page()
    assert run("job", "--compat", compat, "list").out == "No data.\n"


# --- orders ----------------------------------------------------------------------------------

_ROUTES = {
    "kill": "POST /api/v2/jobs/{}/cancel",
    "rerun": "POST /api/v2/jobs/{}/rerun",
    "delete": "DELETE /api/v2/jobs/{}",
}


@pytest.mark.parametrize("action", _ROUTES)
@pytest.mark.parametrize(
    "words",
    [
        (f"{ID},{OTHER}",),
        (f"{ID},", OTHER),
        (ID, OTHER),
        (f"{ID} , {OTHER}",),
        (ID, ",", OTHER, ID),
    ],
)
def test_orders_jobs_however_they_are_listed(
    two_jobs: ScriptedServer, run: Run, action: str, words: tuple[str, ...]
) -> None:
    for each in (ID, OTHER):
        two_jobs.routes[_ROUTES[action].format(each)] = Answer(full())
    ran = run("job", action, *words)
    answer = {"code": 0, "data": {"jobIds": [ID, OTHER]}, "message": "success"}
    assert (ran.code, ran.err, json.loads(ran.out)) == (0, "", answer)
    assert len([r for r in two_jobs.requests if r.method != "GET"]) == 2


def test_an_order_is_carried_out_where_it_can_be(two_jobs: ScriptedServer, run: Run) -> None:
    body = {"code": "not_found", "message": "no job job-x", "hint": "", "field": ""}
    two_jobs.routes["GET /api/v2/jobs/job-x"] = Answer(body, 404)
    two_jobs.routes[f"POST /api/v2/jobs/{OTHER}/cancel"] = Answer(full())
    ran = run("job", "kill", "job-x", OTHER)
    assert ran.code == 1
    assert json.loads(ran.out) == {
        "code": 1,
        "data": {"jobIds": [OTHER], "failed": [{"jobId": "job-x", "message": "no job job-x"}]},
        "message": "no job job-x",
    }
    assert ran.err == "Error occurred: no job job-x\n"


def test_a_job_that_is_not_there_is_exit_code_1(server: ScriptedServer, run: Run) -> None:
    body = {"code": "not_found", "message": "no job x", "hint": "look again", "field": ""}
    server.routes["GET /api/v2/jobs/x"] = Answer(body, 404)
    ran = run("job", "state", "x")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "Error occurred: no job x\nhint:  look again\n"
