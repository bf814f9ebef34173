"""The whole program: verbs, flags before and after, help, exit codes, pipes, and no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

import pytest

import paddlecloud
from paddlecloud.cli import helping
from paddlecloud.cli.verbs import DAILY, TOPICS, VERBS
from paddlecloud.core import errors
from tests.cli.conftest import Run
from tests.cli.shapes import job, page
from tests.patience import PATIENCE_S
from tests.scripted_server import Answer, Request, ScriptedServer

CLI = Path(sys.executable).with_name("paddlecloud")


@pytest.mark.parametrize("word", ["--version", "-version", "version"])
def test_prints_its_version(run: Run, word: str) -> None:
    assert run(word).out == f"paddlecloud {paddlecloud.__version__}\n"


def test_prints_its_version_as_the_second_client_did(run: Run) -> None:
    assert run("-v").out == f"paddle cloud platform v{paddlecloud.__version__}\n"


def test_alone_it_shows_one_screen_that_ends_with_what_to_type_next(run: Run) -> None:
    ran = run()
    lines = ran.out.splitlines()
    assert ran.code == 0
    assert lines[0] == "Usage: paddlecloud <flags> <subcommand> <subcommand args>"
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[2 : 2 + len(DAILY)]] == list(DAILY)
    assert lines[-2] == "next: paddlecloud up"
    assert lines[-1].startswith("then: paddlecloud submit ")


def test_verbs_of_every_day_come_first_and_those_of_older_clients_last(run: Run) -> None:
    listed = run("help").out
    places = [listed.index(f"\t{verb} ") for verb in ("submit", "outputs", "pfs", "up", "job")]
    assert places == sorted(places)
    assert "\nSubcommands for PFS:\n" in listed
    assert listed.index("Subcommands for scripts of the older clients:") < listed.index("\tls ")


@pytest.mark.parametrize("words", [("help",), ("help", "all"), ("--help",), ("-h",)])
def test_explains_itself(run: Run, words: tuple[str, ...]) -> None:
    ran = run(*words)
    assert ran.code == 0
    assert ran.out.startswith("Usage: paddlecloud <flags> <subcommand> <subcommand args>\n\n")
    assert "\nSubcommands:\n" in ran.out
    for verb in VERBS:
        assert f"\t{verb} " in ran.out


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples(run: Run, verb: str) -> None:
    module = import_module(f"paddlecloud.cli.{VERBS[verb][0]}")
    if hasattr(module, "show_help"):  # the words of an older program; tests/cli/test_job.py
        helping.about(verb)
        first = run("version")
        assert first.out.startswith(f"Usage: paddlecloud {verb}")
        assert "\nExamples:\n  " in first.out
        return
    for words in ((verb, "--help"), (verb, "-h"), ("help", verb)):
        if words[0] == "help" and verb in TOPICS:
            continue
        ran = run(*words)
        assert ran.code == 0
        assert ran.out.startswith(f"Usage: paddlecloud {verb}")
        assert "\nExamples:\n  " in ran.out
        assert f"paddlecloud {verb}" in ran.out.split("Examples:")[1]
    for flag in module.FLAGS:
        assert flag.names[0] in ran.out
        assert flag.meaning


@pytest.mark.parametrize("topic", TOPICS)
def test_every_topic_is_explained(run: Run, topic: str) -> None:
    ran = run("help", topic)
    assert ran.code == 0
    assert len(ran.out) > 200


def test_help_lists_every_exit_code_there_is(run: Run) -> None:
    text = run("help", "exit-codes").out
    listed = {int(line.split()[0]) for line in text.splitlines()[1:] if line.split()[0].isdigit()}
    used = {cls.exit_code for cls in (*errors.ERROR_CLASSES.values(), errors.InvalidInput)}
    assert listed == used | {0, 10, 130}


def test_commands_and_flags_are_verbs_of_the_first_client(run: Run) -> None:
    assert run("commands").out.split() == list(VERBS)
    assert "-config PATH" in run("flags").out


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("sumbit", "Did you mean submit?"),
        ("log", "paddlecloud logs JOB"),
        ("sync", "paddlecloud pfs sync FROM TO"),
        ("xyzzy", "paddlecloud help lists the verbs"),
    ],
)
def test_an_unknown_verb_is_met_with_advice(run: Run, word: str, advice: str) -> None:
    for words in ((word,), ("help", word)):
        ran = run(*words)
        assert ran.code == 2
        assert ran.err.startswith(f"error: unknown verb {word}")
        assert advice in ran.err


@pytest.mark.parametrize(
    "words",
    [
        ("-endpoint", "{url}", "get", "jobs"),
        ("--endpoint={url}", "get", "jobs"),
        ("get", "-endpoint={url}", "jobs"),
        ("get", "jobs", "--endpoint", "{url}"),
    ],
)
def test_general_flags_stand_before_or_after_the_verb(
    server: ScriptedServer, run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PADDLECLOUD_ENDPOINT", "http://127.0.0.1:1")
    server.routes["GET /api/v2/jobs"] = page(job())
    assert run(*(word.format(url=server.url) for word in words)).code == 0


def test_no_server_is_said_in_two_lines(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLECLOUD_ENDPOINT", "http://127.0.0.1:1")
    ran = run("get", "jobs")
    assert ran.code == 6
    assert ran.err == (
        "error: no server answers at http://127.0.0.1:1 (connection refused)\n"
        "hint:  start the embedded platform with: paddlecloud up\n"
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidInput("bad"), 2),
        (errors.NotLoggedIn("who?"), 3),
        (errors.NotAllowed("no"), 3),
        (errors.NotFound("none"), 4),
        (errors.Conflict("twice"), 5),
        (errors.CannotFit("too big"), 1),
        (errors.RateLimited("later"), 1),
        (errors.InternalError("oops"), 1),
    ],
)
def test_the_exit_code_says_what_went_wrong(
    server: ScriptedServer, run: Run, error: errors.PaddleCloudError, code: int
) -> None:
    server.routes["GET /api/v2/status"] = Answer(error.to_json(), error.http_status)
    ran = run("status")
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith(f"error: {error.message}\n")


def test_the_unforeseen_is_one_line_without_a_traceback(server: ScriptedServer, run: Run) -> None:
    server.routes["GET /api/v2/status"] = Answer({"strange": True})
    ran = run("status")
    assert ran.code == 1
    assert ran.err.startswith("error: KeyError: ")
    assert "PADDLECLOUD_DEBUG=1" in ran.err


def test_debug_shows_the_traceback(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from paddlecloud.cli.main import main

    monkeypatch.setenv("PADDLECLOUD_DEBUG", "1")
    server.routes["GET /api/v2/status"] = Answer({"strange": True})
    assert main(["status"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_status_at_a_glance(server: ScriptedServer, run: Run) -> None:
    import json

    status = {
        "version": "0.1.0",
        "pid": 77,
        "supervisor_pid": 76,
        "restarts": 2,
        "last_restart": {"at": "2026-11-15T07:57:00.000Z", "reason": "killed by signal 9"},
        "endpoint": "http://127.0.0.1:8000",
        "engine": "embedded",
        "cluster": "local",
        "account": "alice",
        "capacity": {
            **{"cpu": "8", "memory": "24537Mi", "gpu": 0, "cores": 2},
            "free": {"cpu": "3", "memory": "20Gi", "gpu": 0},
        },
        "notes": ["memory is not enforced"],
        "jobs": {"live": 3, "queued": 1, "running": 2},
    }
    server.routes["GET /api/v2/status"] = Answer(status)
    assert run("status").out == (
        "platform   http://127.0.0.1:8000   (embedded engine, 2 cores, 24Gi, 0 gpu)\n"
        "server     0.1.0, pid 77, cluster local\n"
        "restarted  2 times, last 3m ago: killed by signal 9\n"
        "account    alice\n"
        "free       3 of 8 cpu (4 per core), 20Gi of 24Gi, 0 of 0 gpu\n"
        "jobs       3 live: 2 running, 1 queued\n"
        "note       memory is not enforced\n"
    )
    assert json.loads(run("status", "-o", "json").out) == status


# --- as a process ----------------------------------------------------------------------------


def start(*words: str, **kwargs: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(CLI), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **kwargs,  # type: ignore[call-overload]
    )


def test_a_reader_that_leaves_early_is_no_error(server: ScriptedServer) -> None:
    server.routes["GET /api/v2/jobs"] = page(*(job(f"job-{n}") for n in range(5000)))
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(
        [str(CLI), "get", "jobs"], stdout=writing, stderr=subprocess.PIPE, text=True
    ) as child:
        os.close(writing)
        _, err = child.communicate(timeout=PATIENCE_S)
    assert err == ""
    assert child.returncode == 1


def test_ctrl_c_ends_it_without_a_traceback(server: ScriptedServer) -> None:
    asked = threading.Event()

    def hold(request: Request) -> Answer:
        asked.set()
        released.wait(PATIENCE_S)
        return page()

    released = threading.Event()
    server.routes["GET /api/v2/jobs"] = hold
    with start("get", "jobs") as child:
        assert asked.wait(PATIENCE_S)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=PATIENCE_S)
    released.set()
    assert (child.returncode, out, err) == (130, "", "\ninterrupted\n")


def test_output_that_a_terminal_cannot_show_is_no_error(server: ScriptedServer) -> None:
    server.routes["GET /api/v2/jobs"] = page(job("naïve-中文"))
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    with start("get", "jobs", env=env) as child:
        out, err = child.communicate(timeout=PATIENCE_S)
    assert (child.returncode, err) == (0, "")
    assert "na?ve-??" in out
