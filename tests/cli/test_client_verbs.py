"""`config`, `completion`, `file`, `account`, `runtime`: against files and scripted servers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from paddlecloud.cli.verbs import VERBS
from tests.cli.conftest import Run
from tests.cli.shapes import job, page
from tests.scripted_server import Answer, Request, ScriptedServer

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
    done = subprocess.run([bash, "-c", lines], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("workers\n", "")


# --- file ------------------------------------------------------------------------------------


class Store:
    """Files of a server, by path."""

    def __init__(self, server: ScriptedServer, **files: bytes) -> None:
        self.files = {f"/pfs/local/home/alice/{name}": data for name, data in files.items()}
        server.routes["GET /api/v1/file/"] = self.get
        server.routes["POST /api/v1/file/"] = self.put
        server.routes["GET /api/v1/filelist/"] = self.names

    def put(self, request: Request) -> Answer:
        body = request.body.partition(b"\r\n\r\n")[2].rpartition(b"\r\n--")[0]
        self.files[request.query["path"]] = body
        return Answer({"code": 200, "msg": ""})

    def get(self, request: Request) -> Answer:
        if request.query["path"] in self.files:
            return Answer(self.files[request.query["path"]])
        message = "file not exist"
        body = {"code": 404, "error": "not_found", "message": message, "msg": message}
        return Answer(body, 404)

    def names(self, request: Request) -> Answer:
        folder = request.query["path"].rstrip("/") + "/"
        inside = {p[len(folder) :].split("/")[0] for p in self.files if p.startswith(folder)}
        if not inside:
            message = "dir not exist"
            body = {"code": 404, "error": "not_found", "message": message, "msg": message}
            return Answer(body, 404)
        return Answer({"msg": "", "items": sorted(inside)})


HOME = "/pfs/local/home/alice"


def test_put_a_file_and_a_folder_both_ways(
    server: ScriptedServer, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(server)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "sub").mkdir(parents=True)
    (tmp_path / "data" / "a").write_bytes(b"A")
    (tmp_path / "data" / "sub" / "b").write_bytes(b"")
    assert run("file", "put", "data/a", f"{HOME}/x").out == f"Uploading ... data/a {HOME}/x\n"
    run("file", "put", "data/a", f"{HOME}/y/")
    run("file", "put", "data", f"{HOME}/one")
    run("file", "put", "data/", f"{HOME}/two")
    assert store.files == {
        f"{HOME}/x": b"A",
        f"{HOME}/y/a": b"A",
        f"{HOME}/one/data/a": b"A",
        f"{HOME}/one/data/sub/b": b"",
        f"{HOME}/two/a": b"A",
        f"{HOME}/two/sub/b": b"",
    }


def test_get_a_file_and_a_folder(server: ScriptedServer, run: Run, tmp_path: Path) -> None:
    Store(server, **{"model/w": b"W", "model/sub/v": b"V", "log": b"L"})
    assert run("file", "get", f"{HOME}/log", f"{tmp_path}/").code == 0
    assert run("file", "get", f"{HOME}/model", f"{tmp_path}/").code == 0
    found = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert found == {"log", "model/w", "model/sub/v"}
    assert (tmp_path / "model" / "w").read_bytes() == b"W"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("get", f"{HOME}/log", "{tmp}/there"), 5, "file already exist"),
        (("get", f"{HOME}/none", "{tmp}/new"), 4, "file not exist"),
        (("get", "/etc/passwd", "{tmp}/new"), 2, "path must start with /pfs"),
        (("put", "../x", f"{HOME}/x"), 2, "'..'"),
        (("put", "{tmp}/none", f"{HOME}/x"), 2, "there is no"),
        (("put", "{tmp}/there", f"{HOME}/../bob"), 2, ".."),
        (("mv", "a", "b"), 2, "usage: paddlecloud file"),
    ],
)
def test_file_refuses(
    server: ScriptedServer,
    run: Run,
    tmp_path: Path,
    words: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    Store(server, log=b"L")
    (tmp_path / "there").write_text("mine")
    ran = run("file", *(word.format(tmp=tmp_path) for word in words))
    assert ran.code == code
    assert message in ran.err
    assert (tmp_path / "there").read_text() == "mine"


@pytest.mark.parametrize("name", ["..", "a/b", "x\\y", ""])
def test_get_never_writes_where_a_server_would_like(
    server: ScriptedServer, run: Run, tmp_path: Path, name: str
) -> None:
    Store(server)
    server.routes["GET /api/v1/filelist/"] = Answer({"msg": "", "items": [name]})
    ran = run("file", "get", f"{HOME}/model", f"{tmp_path}/m")
    assert (ran.code, "not safe" in ran.err) == (2, True)


@pytest.mark.parametrize("action", [("ls", "/pfs/dc/home/u/x"), ("get", "/pfs/dc/home/u/x", "y")])
def test_what_is_not_there_is_named(
    server: ScriptedServer, run: Run, action: tuple[str, ...]
) -> None:
    missing = {
        "code": 404,
        "error": "not_found",
        "message": "dir not exist",
        "msg": "dir not exist",
    }
    for path in ("/api/v1/file", "/api/v1/filelist"):
        server.routes[f"GET {path}"] = server.routes[f"GET {path}/"] = Answer(missing, 404)
    done = run("file", *action)
    assert (done.err, done.code) == ("error: dir not exist: /pfs/dc/home/u/x\n", 4)


def test_an_unknown_action_on_accounts_is_met_with_the_known_ones(run: Run) -> None:
    done = run("account", "remove", "bob")
    assert done.code == 2
    assert "account cannot remove; it can add, list, quota, token, cert, tokens," in done.err


def test_ls_prints_one_name_per_line(server: ScriptedServer, run: Run) -> None:
    Store(server, a=b"", b=b"")
    assert run("file", "ls", HOME).out == "a\nb\n"


# --- account and runtime ---------------------------------------------------------------------

LIMITS = {"cpu": None, "memory": "8Gi", "gpu": None, "replicas": None}
BOB = {
    "name": "bob",
    "id": 2,
    "admin": False,
    "created_at": "2026-11-15T07:00:00Z",
    "limits": LIMITS,
}


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

    for verb, (name, _, summary) in VERBS.items():
        module = import_module(f"paddlecloud.cli.{name}")
        assert callable(module.run), verb
        assert module.USAGE.startswith(f"paddlecloud {verb}"), verb
        assert summary
