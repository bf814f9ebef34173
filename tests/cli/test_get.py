"""`get` and `jobs`: the tables of the manuals, byte by byte, and the forms for programs."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from paddlecloud.cli import tables
from paddlecloud.cli.terminal import Terminal
from tests.cli.conftest import Run
from tests.cli.shapes import counts, ended, exit_of, job, page, replica
from tests.scripted_server import Answer, Request, ScriptedServer

JOBS = "GET /api/v2/jobs"


def test_jobs_as_in_the_usage_manual(server: ScriptedServer, run: Run) -> None:
    half = job("paddle-cluster-job", roles={"trainer": counts(2, running=1, failed=1)})
    server.routes[JOBS] = page(job(), half)
    ran = run("get", "jobs")
    assert ran.out == (
        "NUM   NAME                 SUCC    FAIL    START                  COMP    ACTIVE\n"
        "0     wide-deep            <nil>   <nil>   2026-11-15T07:59:20Z   <nil>   2\n"
        "1     paddle-cluster-job   <nil>   1       2026-11-15T07:59:20Z   <nil>   1\n"
    )
    assert (ran.code, ran.err) == (0, "")
    assert server.requests[0].query["phase"] == "live"


def test_no_jobs_is_a_table_of_heads(server: ScriptedServer, run: Run) -> None:
    server.routes[JOBS] = page()
    assert run("get", "jobs").out == "NUM   NAME   SUCC   FAIL   START   COMP   ACTIVE\n"


@pytest.mark.parametrize(
    ("words", "known", "advice"),
    [
        (("get", "jobs"), [job()], "no live jobs; ended ones: paddlecloud get jobs -a\n"),
        (("jobs",), [job()], "no live jobs; ended ones: paddlecloud get jobs -a\n"),
        (
            ("get", "jobs", "x"),
            [job("x")],
            "no live job named x; ended ones: paddlecloud get jobs -a x\n",
        ),
        (("get", "jobs", "x"), [], "no job named x; paddlecloud get jobs -a lists all\n"),
        (("get", "jobs"), [], "no jobs yet; to start one: paddlecloud submit --help\n"),
        (("get", "jobs", "-a"), [], "no jobs yet; to start one: paddlecloud submit --help\n"),
    ],
)
def test_a_table_without_rows_says_where_jobs_are(
    server: ScriptedServer, run: Run, words: tuple[str, ...], known: list[Any], advice: str
) -> None:
    server.routes["GET /api/v2/jobs"] = lambda request: page(
        *(known if request.query["phase"] == "all" else ())
    )
    ran = run(*words)
    assert ran.out.count("\n") == 1
    assert ran.err == advice
    assert run(*words, "-o", "json").err == ""


@pytest.mark.parametrize(
    "words", [("get", "-a", "jobs"), ("get", "jobs", "-a"), ("get", "jobs", "--all")]
)
def test_all_jobs_wherever_the_flag_stands(
    server: ScriptedServer, run: Run, words: tuple[str, ...]
) -> None:
    server.routes[JOBS] = page(ended())
    assert run(*words).out.splitlines()[1] == (
        "0     wide-deep   2      <nil>   2026-11-15T07:59:20Z   2026-11-15T07:59:50Z   <nil>"
    )
    assert server.requests[0].query["phase"] == "all"


def test_a_job_that_has_not_started_has_no_start(server: ScriptedServer, run: Run) -> None:
    waiting = job(started_at=None, phase="Queued", roles={"trainer": counts(2)})
    server.routes[JOBS] = page(waiting)
    assert run("get", "jobs").out.splitlines()[1].split() == [
        *("0", "wide-deep", "<nil>", "<nil>", "<nil>", "<nil>", "<nil>")
    ]


def test_all_pages_are_one_table(server: ScriptedServer, run: Run) -> None:
    def pages(request: Request) -> Answer:
        return page(job("b")) if request.query.get("cursor") else page(job("a"), following="x")

    server.routes[JOBS] = pages
    lines = run("get", "jobs").out.splitlines()[1:]
    assert [line.split()[:2] for line in lines] == [["0", "a"], ["1", "b"]]


def test_wide_says_more(server: ScriptedServer, run: Run) -> None:
    waiting = job(
        "big",
        phase="Queued",
        started_at=None,
        submitted_at="2026-11-15T07:56:00.000Z",
        reason="cpu: 8 needed, 3 free",
        roles={"trainer": counts(4)},
        cpu="8",
    )
    server.routes[JOBS] = page(job(), waiting, ended("old"))
    assert run("get", "jobs", "-o", "wide").out == (
        "ID                     NAME        PHASE       TRAINERS   PSERVERS   CPU   GPU   AGE"
        "   GROUP   REASON\n"
        "job-4f1c09d2a7b35e60   wide-deep   Running     2/2        2/2        4     0     41s"
        "   alice\n"
        "job-4f1c09d2a7b35e60   big         Queued      0/4        -          8     0     4m "
        "   alice   cpu: 8 needed, 3 free\n"
        "job-4f1c09d2a7b35e60   old         Succeeded   2/2        -          4     0     41s"
        "   alice\n"
    )


def test_json_is_items_as_the_server_sent_them(server: ScriptedServer, run: Run) -> None:
    server.routes[JOBS] = page(job(), job("b"))
    items = json.loads(run("get", "jobs", "-o", "json").out)["items"]
    assert items == [job(), job("b")]
    assert items[0].keys() >= {"name", "id", "phase"}


def test_yaml_is_the_same(server: ScriptedServer, run: Run) -> None:
    server.routes[JOBS] = page(job())
    assert yaml.safe_load(run("get", "jobs", "-o=yaml").out) == {"items": [job()]}


def test_name_is_one_per_line(server: ScriptedServer, run: Run) -> None:
    server.routes[JOBS] = page(job(), job("b"))
    assert run("get", "jobs", "--output", "name").out == "wide-deep\nb\n"


def test_workers_as_in_the_usage_manual(server: ScriptedServer, run: Run) -> None:
    server.routes["GET /api/v2/jobs/wide-deep"] = Answer(job())
    server.routes["GET /api/v2/jobs/job-4f1c09d2a7b35e60/replicas"] = Answer(
        {
            "items": [
                replica("wide-deep-pserver-0"),
                replica("wide-deep-trainer-0", "Ended", exit=exit_of(1)),
                replica("wide-deep-trainer-0", attempt=2),
                replica("wide-deep-trainer-1", "Pending"),
                replica("wide-deep-trainer-2", "Ended", exit=exit_of(0)),
                replica("wide-deep-trainer-3", "Ended", exit=exit_of(137, "signaled", 9)),
                replica(
                    "wide-deep-pserver-1",
                    "Ended",
                    exit=exit_of(143, "signaled", 15),
                    stop_asked=True,
                ),
            ]
        }
    )
    assert run("get", "workers", "wide-deep").out == (
        "NAME                  STATUS      START\n"
        "wide-deep-trainer-0   Running     2026-11-15T07:59:20Z\n"
        "wide-deep-trainer-1   Pending     <nil>\n"
        "wide-deep-trainer-2   Succeeded   2026-11-15T07:59:20Z\n"
        "wide-deep-trainer-3   Failed      2026-11-15T07:59:20Z\n"
        "wide-deep-pserver-0   Running     2026-11-15T07:59:20Z\n"
        "wide-deep-pserver-1   Stopped     2026-11-15T07:59:20Z\n"
    )
    assert run("get", "workers", "wide-deep", "-a").out.count("wide-deep-trainer-0") == 2
    wide = run("get", "workers", "wide-deep", "-o", "wide").out.splitlines()
    assert wide[0].split() == [
        *("NAME", "STATUS", "START", "EXIT_CODE", "MSG", "ADDRESS", "ATTEMPT")
    ]
    assert wide[4].split() == [
        *("wide-deep-trainer-3", "Failed", "2026-11-15T07:59:20Z", "137", "<nil>"),
        *("127.0.0.5", "1"),
    ]


def test_quota_as_the_first_client_spelt_it(server: ScriptedServer, run: Run) -> None:
    limits = {"cpu": "4", "memory": "10Gi", "gpu": 0, "replicas": None}
    used = {"cpu": "1", "memory": "1Gi", "gpu": 0, "replicas": 2}
    server.routes["GET /api/v2/quota"] = Answer({"limits": limits, "used": used})
    assert run("get", "quota").out == (
        "RESOURCE       LIMIT\n"
        "-----          -----\n"
        "Memory         10Gi\n"
        "CPU            4\n"
        "GPU            0\n"
        "MaxParallism   <nil>\n"
    )
    wide = run("get", "quota", "-o", "wide").out.splitlines()
    assert wide[2].split() == ["Memory", "10Gi", "1Gi"]


def test_quota_shows_limits_of_storage_where_there_are_any(
    server: ScriptedServer, run: Run
) -> None:
    limits = {"cpu": None, "memory": None, "gpu": None, "replicas": None}
    limits |= {"storage": "1Gi", "files": 100}
    server.routes["GET /api/v2/quota"] = Answer({"limits": limits, "used": {}})
    server.routes["GET /api/v2/status"] = Answer({})
    server.routes["GET /api/v2/whoami"] = Answer({"name": "alice", "clusters": ["local"]})
    usage = {"used_bytes": 5 << 20, "used_files": 7}
    server.routes["GET /api/v2/pfs/usage"] = Answer(usage)
    assert run("get", "quota").out.splitlines()[-2:] == ["Storage        1Gi", "Files          100"]
    wide = run("get", "quota", "-o", "wide").out.splitlines()
    assert [line.split() for line in wide[-2:]] == [
        ["Storage", "1Gi", "5.0", "MiB"],
        ["Files", "100", "7"],
    ]
    (asked,) = server.asked("GET", "/api/v2/pfs/usage")
    assert asked.query["path"] == "/pfs/local/home/alice"


def test_jobs_verb_as_in_the_design(server: ScriptedServer, run: Run) -> None:
    server.routes[JOBS] = page(job("paddle-job", account="user1@gmail.com"))
    lines = run("jobs").out.splitlines()
    assert lines[0].split() == ["NAMESPACE", "NAME", "DESIRED", "SUCCESSFUL", "AGE"]
    namespace, *rest = lines[1].split()
    assert namespace.startswith("user1-gmail-com")
    assert rest == ["paddle-job", "2", "0", "41s"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("get",), 2, "get what?"),
        (("get", "jbos"), 2, "get cannot list jbos. Did you mean jobs?"),
        (("get", "workers"), 2, "get workers needs one job"),
        (("get", "jobs", "-o", "jsno"), 2, "did you mean json?"),
        (("get", "jobs", "-wacth"), 2, "did you mean -watch?"),
    ],
)
def test_wrong_words_are_refused_with_advice(
    run: Run, words: tuple[str, ...], code: int, message: str
) -> None:
    ran = run(*words)
    assert ran.code == code
    assert message in ran.err
    assert ran.out == ""


# --- on a terminal ---------------------------------------------------------------------------


class FakeTerminal(Terminal):
    def __init__(self, columns: int) -> None:
        self.is_terminal = self.has_colour = True
        self._columns = columns

    @property
    def width(self) -> int:
        return self._columns


def test_colour_never_moves_a_column() -> None:
    rows = [("a", "Running", "x"), ("b", "Failed", "y")]
    plain = tables.render(("N", "PHASE", "REASON"), rows)
    painted = tables.render(("N", "PHASE", "REASON"), rows, FakeTerminal(80))
    assert "\x1b[32mRunning" in painted
    assert "\x1b[31mFailed" in painted
    for code in ("\x1b[32m", "\x1b[31m", "\x1b[0m"):
        painted = painted.replace(code, "")
    assert painted == plain


def test_lines_are_cut_to_the_terminal_and_not_on_a_pipe() -> None:
    rows = [("a" * 10, "b" * 100)]
    assert len(tables.render(("N", "REASON"), rows, FakeTerminal(40)).splitlines()[1]) == 40
    assert len(tables.render(("N", "REASON"), rows).splitlines()[1]) == 113


def test_no_color_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen:
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    assert Terminal(Screen()).has_colour
    monkeypatch.setenv("NO_COLOR", "1")
    assert not Terminal(Screen()).has_colour


# --- watching --------------------------------------------------------------------------------


def test_watch_appends_what_changed_and_waits_for_changes(server: ScriptedServer, run: Run) -> None:
    revisions = iter((7, 8, 8))

    def changes(request: Request) -> Answer:
        if request.query["timeout_s"] == "0":
            return Answer({"revision": next(revisions)})
        if request.query["after"] == "7":
            return Answer({"revision": 8})
        raise_interrupt()
        return Answer({"revision": 8})

    first, second = job("first", id="job-1"), job("second", id="job-2")
    looks = iter((page(first), page(second)))
    server.routes["GET /api/v2/jobs/job-1"] = Answer(ended("first", id="job-1"))
    server.routes[JOBS] = lambda request: next(looks)
    server.routes["GET /api/v2/changes"] = changes
    ran = run("get", "jobs", "--watch")
    assert ran.code == 130
    assert [line.split()[1:3] for line in ran.out.splitlines()] == [
        ["NAME", "SUCC"],
        ["first", "<nil>"],
        ["second", "<nil>"],
        ["first", "2"],  # how the one that left the list has ended
    ]


def raise_interrupt() -> None:
    """Ctrl-C, as the terminal would send it to the main thread."""
    import os
    import signal

    os.kill(os.getpid(), signal.SIGINT)
