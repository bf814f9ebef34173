"""`logs`: the latest job under its pod list, rules between pods, one bare log, following."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.cli.conftest import Run
from tests.cli.shapes import ended, exit_of, job, log, page, replica
from tests.scripted_server import Answer, Request, ScriptedServer

ID = "job-4f1c09d2a7b35e60"
RULE = "=" * 26


@pytest.fixture
def two(server: ScriptedServer) -> ScriptedServer:
    server.routes["GET /api/v2/jobs"] = page(job())
    server.routes["GET /api/v2/jobs/wide-deep"] = Answer(job())
    server.routes[f"GET /api/v2/jobs/{ID}/replicas"] = Answer(
        {"items": [replica("wide-deep-trainer-0"), replica("wide-deep-trainer-1")]}
    )
    server.routes[f"GET /api/v2/jobs/{ID}/logs"] = lambda request: log(
        f"hello from {request.query['replica']}\n"
    )
    return server


def test_each_pod_under_a_rule(two: ScriptedServer, run: Run) -> None:
    assert run("logs", "wide-deep").out == (
        f"{RULE}wide-deep-trainer-0{RULE}\nhello from trainer-0\n"
        f"{RULE}wide-deep-trainer-1{RULE}\nhello from trainer-1\n"
    )
    assert two.requests[-1].query["tail"] == "10"


def test_without_a_job_the_latest_under_its_pod_list(two: ScriptedServer, run: Run) -> None:
    out = run("logs").out
    head, _, rest = out.partition("\n")
    assert head == "running pod list:  [('Running', '127.0.0.2'), ('Running', '127.0.0.3')]"
    assert rest == run("logs", "wide-deep").out
    assert two.requests[0].query == {"phase": "all", "limit": "1"}


def test_one_pod_of_the_latest_job_is_bare(two: ScriptedServer, run: Run) -> None:
    two.routes[f"GET /api/v2/jobs/{ID}/replicas"] = Answer(
        {"items": [replica("wide-deep-trainer-0", "Ended", exit=exit_of())]}
    )
    assert run("logs").out == (
        "running pod list:  [('Succeeded', '127.0.0.2')]\nhello from trainer-0\n"
    )


@pytest.mark.parametrize("worker", ["wide-deep-trainer-1", "trainer-1"])
def test_one_worker_is_bare(two: ScriptedServer, run: Run, worker: str) -> None:
    assert run("logs", "-w", worker, "wide-deep").out == "hello from trainer-1\n"


@pytest.mark.parametrize(
    ("words", "tail"), [(("-n", "3"), "3"), (("-n3",), "3"), (("-n=0",), "0"), (("-n", "-1"), None)]
)
def test_n_is_how_many_lines(
    two: ScriptedServer, run: Run, words: tuple[str, ...], tail: str | None
) -> None:
    assert run("logs", *words, "-w", "trainer-0", "wide-deep").code == 0
    assert two.requests[-1].query.get("tail") == tail


def test_a_last_line_without_an_end_gets_one(two: ScriptedServer, run: Run) -> None:
    two.routes[f"GET /api/v2/jobs/{ID}/logs"] = lambda request: log("no end")
    assert run("logs", "wide-deep").out.count("no end\n") == 2


def test_a_worker_that_is_not_there_is_named_with_those_that_are(
    two: ScriptedServer, run: Run
) -> None:
    ran = run("logs", "-w", "trainer-9", "wide-deep")
    assert ran.code == 4
    assert ran.err == (
        "error: wide-deep has no worker trainer-9\nhint:  it has trainer-0, trainer-1\n"
    )


def test_a_mistyped_job_is_met_with_a_suggestion(two: ScriptedServer, run: Run) -> None:
    ran = run("logs", "wide-dep")
    assert ran.code == 4
    assert ran.err == "error: no job named wide-dep. Did you mean wide-deep?\n"


def test_no_job_at_all(server: ScriptedServer, run: Run) -> None:
    server.routes["GET /api/v2/jobs"] = page()
    ran = run("logs")
    assert ran.code == 4
    assert "there is no job yet" in ran.err


@pytest.mark.parametrize(
    ("words", "line"), [((), "trainer-0   | one\n"), (("-w", "trainer-0"), "one\n")]
)
def test_following_with_and_without_names(
    two: ScriptedServer, run: Run, words: tuple[str, ...], line: str
) -> None:
    records = (
        {"replica": "trainer-0", "attempt": 1, "cursor": 4, "data": "one\n"},
        {"end": True, "phase": "Failed"},
    )
    two.routes[f"GET /api/v2/jobs/{ID}/logs"] = Answer(
        b"\n".join(json.dumps(record).encode() for record in records) + b"\n"
    )
    ran = run("logs", "-f", *words, "wide-deep")
    assert (ran.code, ran.out) == (0, line)
    assert two.requests[-1].query.items() >= {"follow": "1", "tail": "10"}.items()


# --- the other verbs about one job -----------------------------------------------------------

Script = Callable[[Request], Answer]


def test_kill_says_what_it_does(server: ScriptedServer, run: Run) -> None:
    server.routes["GET /api/v2/jobs/a"] = Answer(job("a"))
    server.routes["GET /api/v2/jobs/b"] = Answer(ended("b"))
    server.routes[f"POST /api/v2/jobs/{ID}/cancel"] = Answer(job("a"), 202)
    assert run("kill", "a", "b").out == f"a  stopping  {ID}\nb  Succeeded already  {ID}\n"
    assert len(server.asked("POST", f"/api/v2/jobs/{ID}/cancel")) == 1


def test_kill_goes_on_after_a_job_that_is_not_there(server: ScriptedServer, run: Run) -> None:
    server.routes["GET /api/v2/jobs"] = page(job())
    server.routes["GET /api/v2/jobs/wide-deep"] = Answer(job())
    server.routes[f"POST /api/v2/jobs/{ID}/cancel"] = Answer(job(), 202)
    for name in ("wide-dep", "b"):
        missing = {"code": "not_found", "message": f"no job {name}", "hint": "", "field": "job"}
        server.routes[f"GET /api/v2/jobs/{name}"] = Answer(missing, 404)
    done = run("kill", "wide-dep", "b", "wide-deep")
    assert done.out == f"wide-deep  stopping  {ID}\n"
    assert done.err == "error: no job b\nerror: no job wide-dep. Did you mean wide-deep?\n"
    assert done.code == 4


@pytest.mark.parametrize("words", [(), ("-f",)])
def test_the_log_of_a_job_that_waits_says_that_it_does(
    server: ScriptedServer, run: Run, words: tuple[str, ...]
) -> None:
    waiting = job(phase="Queued", reason="waits for 2 cpu", started_at=None)
    server.routes["GET /api/v2/jobs/wide-deep"] = Answer(waiting)
    server.routes[f"GET /api/v2/jobs/{ID}/replicas"] = Answer({"items": []})
    server.routes[f"GET /api/v2/jobs/{ID}/logs"] = Answer(b'{"end": true, "phase": "Killed"}\n')
    done = run("logs", *words, "wide-deep")
    assert (done.out, done.code) == ("", 0)
    assert done.err == (
        "nothing of wide-deep has run; it is Queued: waits for 2 cpu"
        "   paddlecloud explain wide-deep\n"
    )


def test_kill_rm_removes(server: ScriptedServer, run: Run) -> None:
    server.routes["GET /api/v2/jobs/a"] = Answer(job("a"))
    server.routes[f"DELETE /api/v2/jobs/{ID}"] = Answer(None, 204)
    for words in (("-rm", "a"), ("a", "--rm"), ("-rm=true", "a")):
        assert run("kill", *words).out == f"a  removed  {ID}\n"
    assert len(server.asked("DELETE", f"/api/v2/jobs/{ID}")) == 3


def test_rerun_says_which_run(server: ScriptedServer, run: Run) -> None:
    server.routes["POST /api/v2/jobs/a/rerun"] = Answer(job("a", run=2), 201)
    assert run("rerun", "a").out == f"a  run 2  {ID}\n"


def test_events_are_a_table(server: ScriptedServer, run: Run) -> None:
    event = {
        "seq": 1,
        "at": "2026-11-15T07:59:19.000Z",
        "run": 1,
        "reason": "Submitted",
        "message": "submitted by alice",
        "severity": "Normal",
        "replica": "",
    }
    server.routes["GET /api/v2/jobs/a/events"] = Answer({"items": [event], "next": None})
    assert run("events", "a").out == (
        "AGE   RUN   TYPE     REASON      WHO   MESSAGE\n"
        "41s   1     Normal   Submitted         submitted by alice\n"
    )


def test_explain_prints_the_planners_words(server: ScriptedServer, run: Run) -> None:
    server.routes["GET /api/v2/jobs/big/explain"] = Answer(
        {
            "name": "big",
            "id": ID,
            "phase": "Queued",
            "since": "2026-11-15T07:56:00.000Z",
            "waiting": True,
            "reason": "",
            "position": 2,
            "queue_length": 3,
            "needs": "8 cpu for 4 trainers + 2 pservers, all at once",
            "blockers": [
                {
                    "resource": "cpu",
                    "needed": "8",
                    "free": "3",
                    "holders": [{"job": "wide-deep", "account": "bob", "amount": "4"}],
                }
            ],
            "ahead": ["nightly (bob, priority high, needs 6 cpu)"],
            "start_earliest_s": 720,
            "start_latest_s": 1500,
            "start_basis": "wide-deep reports 11m left",
            "remedies": [{"change": "--parallelism 2", "effect": "starts now"}],
        }
    )
    assert run("explain", "big").out == (
        "big is Queued (position 2 of 3) since 4m.\n"
        "  needs      8 cpu for 4 trainers + 2 pservers, all at once\n"
        "  blocked by cpu: 8 needed, 3 free. wide-deep (bob) holds 4.\n"
        "  ahead      nightly (bob, priority high, needs 6 cpu)\n"
        "  start      between 12m and 25m (wide-deep reports 11m left)\n"
        "  sooner     --parallelism 2      starts now\n"
    )


def test_wait_gives_up_in_time(server: ScriptedServer, run: Run) -> None:
    server.routes["GET /api/v2/jobs/a"] = Answer(job("a"))
    server.routes[f"GET /api/v2/jobs/{ID}"] = Answer(job("a"))
    server.routes[f"GET /api/v2/jobs/{ID}/wait"] = Answer(job("a"))
    ran = run("wait", "--timeout", "0s", "a")
    assert (ran.code, ran.err) == (1, "error: time is up; a is Running\n")
    assert run("wait", "--for", "running", "a").out == "a  Running\n"
    assert run("wait", "--timeout", "soon", "a").code == 2
