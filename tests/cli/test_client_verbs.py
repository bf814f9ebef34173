"""`config`, `completion`, `account`, `runtime`: against files and scripted servers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from paddlecloud.cli.verbs import VERBS
from tests.cli.conftest import Run
from tests.cli.shapes import job, page
from tests.patience import PATIENCE_S
from tests.scripted_server import Answer, ScriptedServer

CONFIG = """\
current-datacenter: a
datacenters:
- name: a
  username: alice
  password: my-secret
  endpoint: http://a.example.org
- name: b
  username: bob
  token: pct_secret
  endpoint: https://b.example.org
"""


@pytest.fixture
def config(isolated_home: Path) -> Path:
    (isolated_home / ".paddle").mkdir()
    path = isolated_home / ".paddle" / "config"
    path.write_text(CONFIG)
    return path


# --- config ----------------------------------------------------------------------------------


def test_config_shows_who_and_where_but_no_secret(config: Path, run: Run) -> None:
    ran = run("config")
    assert ran.out == (
        "    NAME   USERNAME   ENDPOINT                LOGIN\n"
        "*   a      alice      http://a.example.org    password\n"
        "    b      bob        https://b.example.org   token\n"
    )
    assert "secret" not in run("config", "-o", "json").out


def test_config_switches_the_datacenter(config: Path, run: Run) -> None:
    assert run("config", "use-datacenter", "b").out == "using b   https://b.example.org\n"
    assert "*   b" in run("config").out
    ran = run("config", "use-datacenter", "c")
    assert (ran.code, "it has a, b" in ran.err) == (2, True)


def test_a_malformed_config_is_refused_by_line(config: Path, run: Run) -> None:
    config.write_text("datacenters:\n- name: a\n  endpoint: nonsense://\n")
    ran = run("get", "jobs")
    assert ran.code == 2
    assert ran.err.startswith(f"error: {config}, line 3: endpoint: ")


# --- completion ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["sub"], ["submit"]),
        (["get", ""], ["jobs", "workers", "quota"]),
        (["get", "w"], ["workers"]),
        (["get", "-w"], ["-watch"]),
        (["get", "--wa"], ["--watch"]),
        (["get", "jobs", "-o", ""], ["table", "wide", "json", "yaml", "name"]),
        (["get", "jobs", "-o", "j"], ["json"]),
        (["logs", "wi"], ["wide-deep"]),
        (["get", "workers", ""], ["resnet", "wide-deep"]),
        (["submit", "--dry"], ["--dry-run"]),
        (["submit", "./"], []),
        (["nonsense", ""], []),
        (["help", "exit"], ["exit-codes"]),
    ],
)
def test_completes_verbs_flags_values_and_jobs(
    server: ScriptedServer, run: Run, line: list[str], words: list[str]
) -> None:
    server.routes["GET /api/v2/jobs"] = page(job(), job("resnet"), job())
    assert run("completion", "words", "--", *line).out.split() == words


def test_completing_without_a_server_is_silent(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLECLOUD_ENDPOINT", "http://127.0.0.1:1")
    ran = run("completion", "words", "--", "logs", "")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_call_back(run: Run, shell: str) -> None:
    out = run("completion", shell).out
    assert "paddlecloud completion words -- " in out
    assert "paddlectl" in out


def test_the_bash_script_works_in_bash(run: Run, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    (tmp_path / "script").write_text(run("completion", "bash").out)
    import sys

    lines = (
        f"PATH={Path(sys.executable).parent}:$PATH; source {tmp_path}/script\n"
        "COMP_WORDS=(paddlecloud get w); COMP_CWORD=2; _paddlecloud; echo ${COMPREPLY[@]}\n"
    )
    done = subprocess.run([bash, "-c", lines], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.stdout, done.stderr) == ("workers\n", "")


# --- account and runtime ---------------------------------------------------------------------

LIMITS = {"cpu": None, "memory": "8Gi", "gpu": None, "replicas": None}
BOB = {
    "name": "bob",
    "id": 2,
    "admin": False,
    "created_at": "2026-11-15T07:00:00Z",
    "limits": LIMITS,
}


def test_an_unknown_action_on_accounts_is_met_with_the_known_ones(run: Run) -> None:
    done = run("account", "remove", "bob")
    assert done.code == 2
    assert "account cannot remove; it can add, list, quota, token, cert, tokens," in done.err


def test_account_add_reads_a_password_from_the_standard_input(
    server: ScriptedServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    server.routes["POST /api/v2/accounts"] = Answer(BOB, 201)
    monkeypatch.setattr("sys.stdin", io.StringIO("pass word\n"))
    ran = run("account", "add", "bob", "--password-stdin")
    assert ran.out == "account    bob added\n"
    assert server.requests[0].json == {"name": "bob", "admin": False, "password": "pass word"}
    assert run("account", "add", "bob").out.endswith("next       paddlecloud account token bob\n")


def test_account_quota_keeps_what_is_not_named(server: ScriptedServer, run: Run) -> None:
    server.routes["GET /api/v2/accounts"] = Answer({"items": [BOB]})
    new = {**LIMITS, "cpu": "4", "memory": None}
    server.routes["PUT /api/v2/accounts/bob/quota"] = Answer({"limits": new, "used": {}})
    ran = run("account", "quota", "bob", "-cpu", "4", "-memory", "none")
    assert ran.out == "bob   cpu 4\n"
    assert server.requests[-1].json == new
    assert run("account", "quota", "bob").out == "bob   memory 8Gi\n"
    assert run("account", "quota", "eve").code == 4
    assert run("account", "quota", "bob", "-gpu", "many").code == 2


def test_account_quota_leaves_storage_to_the_default_unless_it_is_named(
    server: ScriptedServer, run: Run
) -> None:
    limits = {**LIMITS, "storage": "1Gi", "files": None}
    server.routes["GET /api/v2/accounts"] = Answer({"items": [{**BOB, "limits": limits}]})
    server.routes["PUT /api/v2/accounts/bob/quota"] = Answer({"limits": limits, "used": {}})
    run("account", "quota", "bob", "-cpu", "4")
    assert server.requests[-1].json == {**LIMITS, "cpu": "4"}
    ran = run("account", "quota", "bob", "--storage", "1Gi", "--files", "none")
    assert ran.out == "bob   memory 8Gi, storage 1Gi\n"
    assert server.requests[-1].json == {**LIMITS, "storage": "1Gi", "files": None}
    assert "--files many" in run("account", "quota", "bob", "--files", "many").err
    wide = run("account", "list", "-o", "wide").out.splitlines()
    assert wide[0].split()[-3:] == ["STORAGE", "FILES", "AGE"]


def test_account_list_is_a_table(server: ScriptedServer, run: Run) -> None:
    server.routes["GET /api/v2/accounts"] = Answer({"items": [BOB]})
    assert run("account", "list").out == (
        "NAME   ADMIN   ENABLED   CPU     MEMORY   GPU     REPLICAS   AGE\n"
        "bob    no      yes       <nil>   8Gi      <nil>   <nil>      1h\n"
    )


def test_account_token_prints_just_the_token(server: ScriptedServer, run: Run) -> None:
    server.routes["POST /api/v2/accounts/bob/token"] = Answer({"token": "pct_new"}, 201)
    assert run("account", "token", "bob", "--expires-in", "1h").out == "pct_new\n"
    assert server.requests[0].json == {"expires_in_s": 3600}


def test_account_cert_writes_three_files(server: ScriptedServer, run: Run, tmp_path: Path) -> None:
    made = {"cert_pem": "CERT", "key_pem": "KEY", "ca_pem": "CA"}
    server.routes["POST /api/v2/accounts/bob/cert"] = Answer(made, 201)
    folder = tmp_path / "new"
    ran = run("account", "cert", "bob", "--dir", str(folder))
    assert {p.name: p.read_text() for p in folder.iterdir()} == {
        "bob.pem": "CERT",
        "bob-key.pem": "KEY",
        "ca.pem": "CA",
    }
    assert "KEY" not in ran.out
    assert f"  usercert: {folder}/bob.pem\n" in ran.out
    if os.name == "posix":
        assert os.stat(folder / "bob-key.pem").st_mode & 0o777 == 0o600
    assert run("account", "cert", "bob", "--dir", str(folder)).code == 5


def test_runtime_list_and_add(server: ScriptedServer, run: Run) -> None:
    runtime = {"name": "np", "python": "/x/bin/python", "default": True, "has_paddle_train": False}
    server.routes["GET /api/v2/runtimes"] = Answer({"items": [runtime]})
    server.routes["POST /api/v2/runtimes"] = Answer(runtime, 201)
    assert run("runtime", "list").out == (
        "NAME   DEFAULT   PADDLE-TRAIN   PYTHON\nnp     yes       no             /x/bin/python\n"
    )
    assert run("runtime", "add", "np", "/x").out == "runtime    np (default)   /x/bin/python\n"
    assert server.requests[-1].json == {"name": "np", "python": "/x"}
    run("runtime", "add", "np", "/x", "--default")
    assert server.requests[-1].json["default"] is True


def test_runtime_install_is_for_the_servers_own_machine(server: ScriptedServer, run: Run) -> None:
    ran = run("runtime", "install", "np", "numpy")
    assert ran.code == 3
    assert "does not run on this machine" in ran.err


def test_the_verbs_table_names_modules_that_run() -> None:
    from importlib import import_module

    from paddlecloud.cli.failures import usage_of

    for verb, (name, _, summary) in VERBS.items():
        module = import_module(f"paddlecloud.cli.{name}")
        assert callable(module.run), verb
        assert usage_of(verb).startswith(f"paddlecloud {verb}"), verb
        assert summary
