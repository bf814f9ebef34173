"""`up`, `down`, `serve`, `runtime install` and login by certificate, with the real server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.cli import local_platform, up
from paddlecloud.cli.session import Session
from paddlecloud.forms.faults import FaultList
from paddlecloud.forms.go_flags import parse
from paddlecloud.testing.ports import free_port
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.e2e, pytest.mark.needs("linux")]

CLI = Path(sys.executable).with_name("paddlecloud")


class Machine:
    """A home, a state and a port of their own; whatever was started ends with the test."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.state = home / ".paddlecloud"
        self.config = home / ".paddle" / "config"
        self.port = free_port()
        self.env = {**os.environ, "USER": "alice", "LOGNAME": "alice"}

    def run(self, *words: str, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(CLI), *words],
            env={**self.env, **env},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    def up(self, *words: str) -> str:
        return self.run("up", "--port", str(self.port), *words).stdout

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture
def machine(isolated_home: Path) -> Iterator[Machine]:
    isolated_home.chmod(0o755)
    made = Machine(isolated_home)
    yield made
    made.run("down")


def test_up_starts_logs_in_and_says_what_to_type_next(machine: Machine) -> None:
    lines = machine.up().splitlines()
    assert lines[0].startswith(f"platform   {machine.url}   (embedded engine, ")
    assert lines[1].split() == [*("account", "alice", "token", "saved", "in", "~/.paddle/config")]
    assert lines[-1] == (
        'next       paddlecloud submit --mode single -entry "python train.py" ./pkg'
    )
    assert machine.config.stat().st_mode & 0o777 == 0o600
    assert "pct_" not in "".join(lines)
    status = json.loads(machine.run("status", "-o", "json").stdout)
    record = json.loads((machine.state / "run" / "server.json").read_text())
    facts = ("pid", "endpoint", "version", "engine")
    assert {key: status[key] for key in facts} == {key: record[key] for key in facts}


def test_up_fits_a_terminal_of_eighty_columns(machine: Machine) -> None:
    lines = machine.up().splitlines()
    assert len(lines) <= 24
    lines = [line for line in lines if not line.startswith("note ")]  # what a machine lacks
    assert max(len(line) for line in lines) <= 80, lines


def test_up_again_changes_nothing(machine: Machine) -> None:
    machine.up()
    pid = json.loads(machine.run("status", "-o", "json").stdout)["pid"]
    before = machine.config.read_text()
    done = machine.run("up", "--port", "1")
    assert "already running" in done.stdout
    assert "--port changes nothing" in done.stderr
    assert machine.config.read_text() == before
    assert json.loads(machine.run("status", "-o", "json").stdout)["pid"] == pid


def test_a_lost_configuration_is_made_anew(machine: Machine) -> None:
    machine.up()
    machine.config.unlink()
    (machine.state / "secrets" / "bootstrap-token").unlink()
    assert "token saved" in machine.up()
    assert machine.run("get", "jobs").returncode == 0


def test_other_datacenters_are_kept_and_named(machine: Machine) -> None:
    machine.config.parent.mkdir()
    machine.config.write_text("dc1:\n  username: me\n  endpoint: dc1.example.org\n")
    out = machine.up()
    assert "before     dc1: paddlecloud config use-datacenter dc1 switches back\n" in out
    assert machine.run("config", "-o", "name").stdout == "dc1\nlocal\n"
    assert machine.run("get", "jobs").returncode == 0


def test_down_ends_it_and_is_content_when_there_is_nothing(machine: Machine) -> None:
    machine.up()
    pid = local_platform.lock_holder(str(machine.state))
    assert machine.run("down").stdout == f"platform   stopped (pid {pid})\n"
    assert machine.run("down").stdout == "platform   not running\n"
    done = machine.run("get", "jobs", code=6)
    assert done.stderr.startswith(f"error: no server answers at {machine.url} (connection refused)")


def test_what_a_kill_left_behind_is_no_obstacle(machine: Machine) -> None:
    machine.up()
    pid = local_platform.lock_holder(str(machine.state), "supervisor")
    os.kill(pid, signal.SIGKILL)
    wait_until_free(machine)
    record = machine.state / "run" / "server.json"
    # The file now names a pid that is somebody else's: ours.
    record.write_text(json.dumps({**json.loads(record.read_text()), "pid": os.getpid()}))
    assert local_platform.running(str(machine.state)) is None
    assert machine.run("down").stdout == "platform   not running\n"
    assert "already running" not in machine.up()


def wait_until_free(machine: Machine) -> None:
    import fcntl

    with (machine.state / "run" / "server.lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


def test_a_port_that_is_taken_is_said_with_a_way_out(machine: Machine) -> None:
    with socket.create_server(("127.0.0.1", machine.port)):
        done = machine.run("up", "--port", str(machine.port), code=5)
    assert f"cannot listen on 127.0.0.1:{machine.port}" in done.stderr
    assert "--port" in done.stderr.split("hint:")[1]
    assert not machine.config.exists()


def test_takes_the_next_port_where_nobody_asked_for_the_one_that_is_taken(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, with another default: a test may not want the real one."""
    monkeypatch.setattr(up, "DEFAULT_PORT", machine.port)
    session = Session(parse([], up.FLAGS, FaultList()))
    with socket.create_server(("127.0.0.1", machine.port)):
        chosen = up._port(session)
        assert chosen is not None
        assert machine.port < chosen < machine.port + 100
        said = f"note: port {machine.port} is taken, so it is {chosen} (--port N)\n"
        assert capsys.readouterr().err == said
        asked = Session(parse(["--port", str(machine.port)], up.FLAGS, FaultList()))
        assert up._port(asked) == machine.port
        monkeypatch.setenv("PADDLECLOUD_PORT", str(machine.port))
        assert up._port(session) is None


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--kubeconfig", "f"), 2, "--kubeconfig is for a cluster"),
        (("--engine", "kubernets"), 2, "kubernetes"),
        (("--engine", "kubernetes"), 5, "outside a cluster say which one: --kubeconfig FILE"),
        (("--engine", "kubernetes", "--kubeconfig", "nowhere"), 5, "there is no kubeconfig /"),
        (
            ("--engine", "kubernetes", "--kubeconfig", "x", "--pfs-volume", "nfs"),
            5,
            "PADDLECLOUD_KUBE_PFS_VOLUME is 'nfs'; write one volume",
        ),
    ],
)
def test_up_says_what_is_wrong_with_the_choice_of_an_engine(
    machine: Machine, words: tuple[str, ...], code: int, said: str
) -> None:
    assert said in machine.run("up", "--port", "0", *words, code=code).stderr


def test_jobs_go_on_after_down_and_kill_jobs_ends_them(machine: Machine, tmp_path: Path) -> None:
    machine.up()
    (tmp_path / "pkg").mkdir()
    words = ("submit", "--mode", "single", "-memory", "32Mi", "-entry", "sleep 1000")
    machine.run(*words, str(tmp_path / "pkg"))
    machine.run("wait", "--for", "running", "paddle-cluster-job")
    assert "jobs       1 job goes on" in machine.run("down").stdout
    machine.up()
    assert "paddle-cluster-job" in machine.run("get", "jobs", "-o", "name").stdout
    assert machine.run("down", "--kill-jobs").stdout.startswith("jobs       1 killed\n")


def test_foreground_stays_until_ctrl_c(machine: Machine) -> None:
    child = subprocess.Popen(
        [str(CLI), "up", "--foreground", "--port", str(machine.port)],
        env=machine.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline().startswith("platform")
    os.killpg(child.pid, signal.SIGINT)
    child.stdout.read()
    assert child.wait(PATIENCE_S) == 0
    for role in ("server", "supervisor"):
        assert local_platform.lock_holder(str(machine.state), role) == 0


def test_a_certificate_logs_in_over_tls_and_runs_a_job(machine: Machine, tmp_path: Path) -> None:
    machine.up("--tls")
    machine.run("account", "add", "bob@example.org")
    folder = machine.home / "certs"
    out = machine.run("account", "cert", "bob@example.org", "--dir", str(folder)).stdout
    form_1 = machine.home / "form-1"
    form_1.write_text(out.partition("\n")[2])
    status = machine.run("status", "-o", "json", PADDLECLOUD_CONFIG=str(form_1)).stdout
    assert json.loads(status)["account"] == "bob@example.org"
    # The file server's own port knows tokens only: packages and files go another way.
    (tmp_path / "train.py").write_text("print('trained')\n")
    words = ("submit", "--mode", "single", "-memory", "64Mi", "-entry", "python train.py")
    out = machine.run(*words, "--follow", str(tmp_path), PADDLECLOUD_CONFIG=str(form_1)).stdout
    assert "trainer-0   | trained\n" in out
    listed = machine.run("pfs", "ls", "-r", PADDLECLOUD_CONFIG=str(form_1)).stdout
    assert "jobs/paddle-cluster-job/train.py" in listed
    # Another CA is not trusted, whatever the address says.
    (folder / "ca.pem").unlink()
    done = machine.run("status", code=6, PADDLECLOUD_CONFIG=str(form_1))
    assert "cannot trust the server" in done.stderr


def test_installs_a_runtime_and_runs_a_job_in_it(machine: Machine, tmp_path: Path) -> None:
    machine.up()
    out = machine.run("runtime", "install", "mine").stdout
    assert str(machine.state / "runtimes" / "mine" / "bin" / "python") in out
    (tmp_path / "train.py").write_text("import sys; print(sys.prefix)\n")
    words = ("submit", "--mode", "single", "-memory", "64Mi", "--runtime", "mine", "--wait")
    machine.run(*words, "-entry", "python train.py", str(tmp_path))
    assert machine.run("logs", "-w", "trainer-0").stdout.strip().endswith("runtimes/mine")
    assert machine.run("runtime", "install", "mine", code=5).stderr.startswith("error: ")


def test_a_new_password_account_can_log_in_and_work(machine: Machine, tmp_path: Path) -> None:
    machine.up()
    done = subprocess.run(
        [str(CLI), "account", "add", "bob", "--password-stdin"],
        env=machine.env,
        input="correct horse battery\n",
        text=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    form_2 = tmp_path / "config"
    form_2.write_text(
        "datacenters:\n- name: here\n  active: true\n  username: bob\n"
        f"  password: correct horse battery\n  endpoint: {machine.url}\n"
    )
    first = machine.run("get", "jobs", PADDLECLOUD_CONFIG=str(form_2))
    fetched = "previous token not found, fetching a new one...\n"
    assert first.stderr.startswith(fetched)
    assert fetched not in machine.run("get", "jobs", PADDLECLOUD_CONFIG=str(form_2)).stderr
    form_2.write_text(form_2.read_text().replace("horse", "mule"))
    (machine.home / ".paddle" / "token_cache").unlink()
    assert machine.run("get", "jobs", PADDLECLOUD_CONFIG=str(form_2), code=3).stdout == ""


def test_puts_lists_and_gets_files(machine: Machine, tmp_path: Path) -> None:
    machine.up()
    (tmp_path / "data" / "sub").mkdir(parents=True)
    (tmp_path / "data" / "a.bin").write_bytes(bytes(range(256)) * 4000)
    (tmp_path / "data" / "sub" / "b c").write_text("b")
    home = "/pfs/local/home/alice"
    machine.run("file", "put", f"{tmp_path}/data", home)
    assert machine.run("file", "ls", f"{home}/data").stdout.split() == ["a.bin", "sub"]
    machine.run("file", "get", f"{home}/data", f"{tmp_path}/back/")
    back = tmp_path / "back" / "data"
    assert (back / "a.bin").read_bytes() == bytes(range(256)) * 4000
    assert (back / "sub" / "b c").read_text() == "b"
    machine.run("file", "get", "/pfs/local/home/bob/x", f"{tmp_path}/x", code=3)
