"""`describe` and the post-mortem: what failed first, why, and whether a retry would help."""

from __future__ import annotations

import pytest

from paddlecloud.cli.postmortem import examine
from tests.cli.conftest import Run
from tests.cli.shapes import ended, exit_of, failure, job, log, replica
from tests.scripted_server import Answer, ScriptedServer

ID = "job-4f1c09d2a7b35e60"
TRACEBACK = """step 1
Traceback (most recent call last):
  File "train.py", line 50, in <module>
    main()
  File "train.py", line 41, in reader
    open(path)
{last}
"""
MISSING = (
    "FileNotFoundError: [Errno 2] No such file or directory: "
    "'/pfs/local/home/alice/data/part-00007.gz'"
)


def found(last: str, **kwargs: object):
    return examine(failure(**kwargs), TRACEBACK.format(last=last), name="x")


@pytest.mark.parametrize(
    ("last", "retry", "command"),
    [
        (MISSING, "no: the file does not exist.", "paddlecloud pfs ls /pfs/local/home/alice/data"),
        ("ModuleNotFoundError: No module named 'pandas'",
         "no: the runtime lacks the module pandas.", "paddlecloud runtime list"),
        ("KeyError: 'x'", "no: it is a fault of the program.", ""),
        ("ConnectionRefusedError: [Errno 111] Connection refused",
         "maybe: another replica or a service was not there.", "paddlecloud rerun x"),
        ("OSError: [Errno 98] Address already in use",
         "maybe: another replica or a service was not there.", "paddlecloud rerun x"),
        ("OSError: [Errno 28] No space left on device", "no: the disk is full.", ""),
        ("PermissionError: [Errno 13] Permission denied: '/x'",
         "no: the job is not allowed to do that.", ""),
        ("MemoryError", "no: it needs more memory than it asked for.", "submit again with more"),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory.",
         "no: it needs more memory than it asked for.", "submit again with more"),
        ("my.own.Trouble: whatever", "unlikely: the program raised an error of its own.", ""),
    ],
)  # fmt: skip
def test_reads_the_exception_that_ended_the_program(last: str, retry: str, command: str) -> None:
    result = found(last)
    assert result.cause == f"Python exception: {last}"
    assert (result.retry, result.command) == (retry, command)
    assert result.lines[-1] == last


def test_the_last_of_several_tracebacks_counts() -> None:
    text = TRACEBACK.format(last="ValueError: first") + TRACEBACK.format(last="KeyError: 'second'")
    assert examine(failure(), text, name="x").cause == "Python exception: KeyError: 'second'"


def test_an_exception_over_several_lines_and_words_after_it() -> None:
    text = TRACEBACK.format(last="ValueError: bad shape\n  expected 3\ncleaning up\n")
    assert examine(failure(), text, name="x").cause == "Python exception: ValueError: bad shape"


@pytest.mark.parametrize(
    ("how", "tail", "cause", "retry"),
    [
        (exit_of(137, "out_of_memory"), "", "out of memory (its limit was 1Gi)",
         "no: it needs more memory than it asked for."),
        (exit_of(139, "signaled", 11), "loss 1\n", "crashed in native code: signal 11 (SEGV)",
         "maybe: if it happens again, it is a fault of the program or of a library."),
        (exit_of(137, "signaled", 9), "", "signal 9 (KILL); nobody here asked for it: a person, or "
         "the system short of memory", "maybe."),
        (exit_of(137, "signaled", 9, message="evicted from node-7: no room"), "",
         "signal 9 (KILL); evicted from node-7: no room", "maybe."),
        (exit_of(1, "start_failed", message="no runtime x"), "", "could not start: no runtime x",
         "no: the program never ran."),
        (exit_of(127), "sh: 1: no-such: not found\n", "command not found: no-such",
         "no: the runtime has no such program."),
        (exit_of(127), "bash: line 1: foo: command not found\n", "command not found: foo",
         "no: the runtime has no such program."),
        (exit_of(126), "sh: ./x: Permission denied\n", "the command cannot be executed",
         "no: it is no program."),
        (exit_of(4, message="disk on fire"), "", "exit code 4: disk on fire",
         "unknown: the program does not say why."),
        (exit_of(3), "loss 0.5: Error rate 3\n", "exit code 3",
         "unknown: the program does not say why."),
    ],
)  # fmt: skip
def test_reads_how_it_ended(how: dict, tail: str, cause: str, retry: str) -> None:
    result = examine(failure(**how), tail, name="x", memory="1Gi")
    assert (result.cause, result.retry) == (cause, retry)


def test_a_failed_job_as_people_need_it(server: ScriptedServer, run: Run) -> None:
    broken = ended("resnet", "Failed", run=2, restarts=2, max_restarts=2, failure=failure())
    broken["spec"] = {"entry": "python train.py", "roles": []}
    server.routes["GET /api/v2/jobs/resnet"] = Answer(broken)
    server.routes[f"GET /api/v2/jobs/{ID}/runs"] = Answer({"items": [{}, {}, {}]})
    server.routes[f"GET /api/v2/jobs/{ID}/replicas"] = Answer(
        {
            "items": [
                replica(
                    "resnet-trainer-0",
                    "Ended",
                    exit=exit_of(143, "signaled", 15),
                    stop_asked=True,
                ),
                replica("resnet-trainer-1", "Ended", attempt=3, exit=exit_of(1)),
            ]
        }
    )
    server.routes[f"GET /api/v2/jobs/{ID}/logs"] = log(TRACEBACK.format(last=MISSING))
    assert run("describe", "resnet").out == (
        "resnet  Failed  exit 1 in trainer-1, 24s after start "
        "(run 2 of 3; restarts used 2 of 2)\n"
        f"  id             {ID}\n"
        "  account        alice on local, priority normal\n"
        "  shape          ps: 2 trainers; 4 cpu, 4Gi, 0 gpu\n"
        "  entry          python train.py\n"
        "  submitted      2026-11-15 07:59:19\n"
        "  first to fail  trainer-1 on 127.0.0.3, 2026-11-15 07:59:45\n"
        f"  cause          Python exception: {MISSING}\n"
        '  last lines     File "train.py", line 41, in reader\n'
        "                 open(path)\n"
        f"                 {MISSING}\n"
        "  would a retry help?  no: the file does not exist.   "
        "paddlecloud pfs ls /pfs/local/home/alice/data\n"
        "  workers        trainer-0    Stopped    127.0.0.2\n"
        "                 trainer-1    Failed     127.0.0.3, exit 1, attempt 3\n"
        "  logs           kept: paddlecloud logs -w resnet-trainer-1 -n 200 resnet\n"
        "  output         paddlecloud outputs resnet\n"
    )
    (asked,) = server.asked("GET", f"/api/v2/jobs/{ID}/logs")
    assert asked.query.items() >= {"replica": "trainer-1", "attempt": "3", "run": "2"}.items()


@pytest.mark.parametrize(
    ("changes", "last"),
    [
        ({}, "  logs           paddlecloud logs -f wide-deep"),
        ({"phase": "Queued", "started_at": None}, "  why it waits   paddlecloud explain wide-deep"),
    ],
)
def test_a_live_job_says_what_to_type_next(
    server: ScriptedServer, run: Run, changes: dict, last: str
) -> None:
    server.routes["GET /api/v2/jobs/wide-deep"] = Answer({**job(**changes), "spec": {}})
    server.routes[f"GET /api/v2/jobs/{ID}/runs"] = Answer({"items": [{}]})
    server.routes[f"GET /api/v2/jobs/{ID}/replicas"] = Answer({"items": []})
    assert run("describe", "wide-deep").out.splitlines()[-1] == last


def test_shows_the_command_that_was_sent_not_the_script_around_it(
    server: ScriptedServer, run: Run
) -> None:
    from paddlecloud.wire.job_workspace import entry

    whole = {**job("line-fit"), "spec": {"entry": entry("python 'a b.py'")}}
    server.routes["GET /api/v2/jobs/line-fit"] = Answer(whole)
    server.routes[f"GET /api/v2/jobs/{whole['id']}/replicas"] = Answer({"items": []})
    server.routes[f"GET /api/v2/jobs/{whole['id']}/runs"] = Answer({"items": []})
    out = run("describe", "line-fit").out
    assert "  entry          python 'a b.py'\n" in out
