"""The second client: its grammar, its help, which server it talks to, and its settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.second_client import ID, TRAIN, full
from tests.scripted_server import Answer, ScriptedServer

pytestmark = pytest.mark.usefixtures("elsewhere")

# --- help and grammar ------------------------------------------------------------------------

JOB_HELP = """\
usage: paddlecloud job [-h] [--debug] [--server <ARG>] [--port <ARG>]
                       [--ak <ARG>] [--sk <ARG>]
                       <action> [options] ...

optional arguments:
  -h, --help          show this help message and exit
  --debug             debug mode, this will print debug message
  --server <ARG>      specify remote server host
  --port <ARG>        specify remote server port
  --ak <ARG>          your access key
  --sk <ARG>          your secret key

Specific job actions:
  <action> [options]
    train             add a new job for training
    state             return the job state
    list              list available jobs
    rerun             run job once again
    info              display the job info
    kill              kill the running job
    delete            delete the remote job
    replace           replace job 例:${JOB_ID}  --pods "pod=job-x-trainer-1,host=host1.yq01.\
baidu.com;pod=job-x-trainer-2,host=host2.yq01.baidu.com"
"""
CONFIG_HELP = """\
usage: paddlecloud config [-h] [--ak <ARG>] [--sk <ARG>] [-t] [-s]

optional arguments:
  -h, --help    show this help message and exit
  --ak <ARG>    your access key
  --sk <ARG>    your secret key
  -t, --token   configure user's access key and secret key (deprecated, will
                be removed in next version)
  -s, --server  configure paddlecloud server host, port
"""


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_helps_in_the_words_of_the_manual(run: Run, word: str) -> None:
    assert run("job", word).out == JOB_HELP
    assert run("config", word).out == CONFIG_HELP


def test_the_help_of_train_names_every_flag(run: Run) -> None:
    from paddlecloud.forms.train_options import FLAGS

    ran = run("job", "train", "-h")
    assert ran.out.startswith("usage: paddlecloud job train --job-name NAME")
    assert all(name in ran.out for flag in FLAGS for name in flag.names)
    assert all(flag.meaning in ran.out for flag in FLAGS)  # none was cut
    assert (
        "--k8s-memory SIZE                     memory per trainer (512Mi, 10Gi; default 1Gi)\n"
        in (ran.out)
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "too few arguments"),
        (
            ("trian",),
            2,
            "Oops, 'trian' is not a valid command or arg. See 'paddlecloud job --help'",
        ),
        (("trian",), 2, "did you mean train?"),
        (("--nonsense", "list"), 1, "--nonsense    unknown option"),
        (("--nonsense", "x", "trian"), 2, "error: 2 problems"),
        (("--compat", "3", "list"), 2, "must be one of 1, 2"),
        (("list", "--nonsense"), 1, "unknown option"),
        (("list", "--nonsense", "--page", "0"), 2, "error: 2 problems"),
        (("state", "--nonsense", ID), 1, "unknown option"),
        (("kill", "--nonsense", ID), 1, "unknown option"),
        (("list", "--page", "0"), 2, "--page 0    must be a whole number"),
        (("list", "--type", "all"), 2, "must be one of normal, favorite, group"),
        (("state",), 2, "state which job?"),
        (("state", "a", "b"), 2, "state takes one job, not 2"),
        (("kill",), 2, "kill which job?"),
        (("kill", ",", " "), 2, "kill which job?"),
        (("replace", ID), 2, "--pods    is needed"),
        (("--ak", "a/b", "--sk", "c", "state", ID), 2, "--ak    must be letters and digits only"),
        (("--server", "h", "--port", "x", "state", ID), 2, "--port x    must be a number from 1"),
    ],
)
def test_refuses_a_command_line(
    server: ScriptedServer, run: Run, words: tuple[str, ...], code: int, said: str
) -> None:
    ran = run("job", *words)
    assert ran.code == code
    assert said in ran.err
    assert server.requests == []


@pytest.mark.parametrize(
    ("words", "faulty"),
    [
        (("train", "--k8s-trainers", "x"), ("--k8s-trainers x", "--job-name", "--start-cmd")),
        (("list", "--size", "0"), ("--size 0",)),
        (("replace", ID, "--pods", "x"), ("--pods x",)),
    ],
)
def test_faults_before_and_behind_the_action_come_together(
    server: ScriptedServer, run: Run, words: tuple[str, ...], faulty: tuple[str, ...]
) -> None:
    before = ("--port", "x", "--ak", "a/b", "--sk", "S3CR3T!", "--compat", "3", "--nonsense")
    ran = run("job", *before, *words)
    assert (ran.code, server.requests) == (2, [])
    assert f"error: {5 + len(faulty)} problems" in ran.err
    for flag in ("--port x", "--ak", "--sk", "--compat 3", "--nonsense", *faulty):
        assert f"  {flag} " in ran.err
    assert "S3CR3T" not in ran.err + ran.out


@pytest.mark.parametrize("action", [TRAIN, ("list",), ("kill", ID)])
def test_connection_flags_behind_the_action_are_told_where_they_stand(
    server: ScriptedServer, run: Run, action: tuple[str, ...]
) -> None:
    ran = run("job", *action, "--ak", "a1", "--sk", "S3CR3T", "--server=h", "--port", "1")
    assert (ran.code, server.requests) == (1, [])
    for flag in ("--ak", "--sk", "--server", "--port"):
        assert f"  {flag:<8}    unknown option here: it stands before the action\n" in ran.err
    assert "S3CR3T" not in ran.out + ran.err


@pytest.mark.parametrize("verb", ["algo", "cluster", "group"])
def test_and_so_they_do_for_the_verbs_that_came_with_it(
    server: ScriptedServer, run: Run, verb: str
) -> None:
    ran = run(verb, "--port", "x", "--nonsense", "list", "--other")
    assert (ran.code, server.requests) == (2, [])
    assert "error: 3 problems" in ran.err


def test_nothing_but_unknown_options_is_exit_code_1(server: ScriptedServer, run: Run) -> None:
    assert run("job", *TRAIN, "--nonsense", "1").code == 1
    assert run("job", *TRAIN, "--nonsense", "1", "--k8s-trainers", "x").code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("--ak", "a1", "--sk", "s1"),
        ("--user-ak=a1", "--user-sk=s1"),
        ("--user_ak", "a1", "--user_sk", "s1", "--debug"),
    ],
)
def test_connection_flags_stand_before_the_action(
    server: ScriptedServer, run: Run, words: tuple[str, ...]
) -> None:
    server.routes[f"GET /api/v2/jobs/{ID}"] = Answer(full(phase="Failed"))
    ran = run("job", *words, "state", ID)
    assert (ran.code, '"jobStatus": "fail"' in ran.out) == (0, True)
    assert ran.err == ""
    header = server.requests[0].headers["authorization"]
    assert header.startswith("paddle-auth-v1/a1/")
    assert "s1" not in header.split("/")


def test_server_and_port_choose_the_server(
    server: ScriptedServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PADDLECLOUD_ENDPOINT", "http://127.0.0.1:1")
    host, _, port = server.url.removeprefix("http://").partition(":")
    server.routes[f"GET /api/v2/jobs/{ID}"] = Answer(full(phase="Failed"))
    assert run("job", "--server", host, "--port", port, "state", ID).code == 0
    ran = run("job", "--server", host, "state", ID)
    assert ran.code == 1
    assert "note: --server is used only together with --port" in ran.err
    assert "Error occurred: no server answers" in ran.err


def test_the_file_of_the_old_client_chooses_the_server(
    server: ScriptedServer, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PADDLECLOUD_ENDPOINT")
    host, _, port = server.url.removeprefix("http://").partition(":")
    folder = tmp_path / "paddlecli"
    folder.mkdir()
    (folder / "config").write_text(f"[server]\nhost = {host}\nport = {port}\n")
    server.routes[f"GET /api/v2/jobs/{ID}"] = Answer(full(phase="Failed"))
    assert run("job", "state", ID).code == 0


# --- config ----------------------------------------------------------------------------------


def stored(tmp_path: Path) -> str:
    return (tmp_path / "paddlecli" / "config").read_text()


def test_keeps_a_key_pair(run: Run, tmp_path: Path) -> None:
    ran = run("config", "--ak", "a1", "--sk", "s1")
    assert (ran.code, ran.out) == (0, "Configure done.\n")
    assert stored(tmp_path) == "[token]\ntoken_name = default\nuser_ak = a1\nuser_sk = s1\n\n"
    assert (tmp_path / "paddlecli" / "config").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--ak", "a1"), "--ak    needs --sk beside it"),
        (("--sk", "s1"), "--sk    needs --ak beside it"),
        (("--ak", "a1", "--sk", "s 1"), "--sk    must be letters and digits only"),
        (("--ak", "", "--sk", "s1"), "--ak    must be letters and digits only"),
        (("--ak", "a/1", "--sk", "s 1", "--port", "x"), "error: 4 problems"),
        (("--host", "h"), "--host    needs --port beside it"),
        (("--host", "h h", "--port", "80"), "--host    must be a name or an address"),
        (("--host", "h", "--port", "0"), "--port    must be a number from 1 to 65535"),
        (("--token-name", "x"), "--token-name    needs the keys it names"),
        (("--token-name", "[x]", "--ak", "a", "--sk", "s"), "--token-name    must be 1 to 64"),
        (("show", "--ak", "a1", "--sk", "s1"), "config cannot do show as well"),
    ],
)
def test_refuses_half_a_key_pair(
    run: Run, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    ran = run("config", *words)
    assert (ran.code, said in ran.err) == (2, True)
    assert not (tmp_path / "paddlecli").exists()


def test_asks_for_what_it_needs(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = iter(["", "a1", "s1", "h", "", "", "", "s2", "", "8080"])
    prompts: list[str] = []

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        return next(typed)

    monkeypatch.setattr("builtins.input", answer)
    assert run("config", "-t", "-s").out == "Configure done.\n"
    assert "host = h\nport = 80\n" in stored(tmp_path)
    # Enter keeps what was there.
    assert run("config", "-t", "--server").code == 0
    assert "user_ak = a1\nuser_sk = s2\n" in stored(tmp_path)
    assert "host = h\nport = 8080\n" in stored(tmp_path)
    assert not any("a1" in prompt or "s1" in prompt for prompt in prompts)


def test_a_file_that_is_no_ini_is_refused_without_being_shown(run: Run, tmp_path: Path) -> None:
    (tmp_path / "paddlecli").mkdir()
    (tmp_path / "paddlecli" / "config").write_text("user_sk = hunter2\n")
    ran = run("config", "-s")
    assert ran.code == 2
    assert "it is not an INI file" in ran.err
    assert "hunter2" not in ran.err
