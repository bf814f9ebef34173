"""Starting and stopping: one server per state, nothing secret by default, quick to go."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys

from tests.patience import PATIENCE_S
from tests.server.running import Running


def test_writes_where_it_listens_and_removes_it_at_the_end(make_server) -> None:
    server: Running = make_server().start()
    run_file = server.state / "run" / "server.json"
    facts = json.loads(run_file.read_text())
    assert facts["pid"] == server.process.pid
    assert facts["endpoint"] == f"http://127.0.0.1:{server.port}"
    assert facts["engine"] == "fake"
    status = server.admin.get("/api/v2/status").json
    assert (status["pid"], status["endpoint"]) == (facts["pid"], facts["endpoint"])
    assert (status["supervisor_pid"], status["restarts"], status["last_restart"]) == (None, 0, None)
    assert server.stop() == 0
    assert not run_file.exists()


def test_refuses_a_second_server_on_the_same_state(make_server) -> None:
    server: Running = make_server().start()
    second = server.launch("--port", "0")
    assert second.wait(PATIENCE_S) == 5
    said = server.log.read_text()
    assert f"already runs on {server.state} (pid {server.process.pid})" in said
    assert "Traceback" not in said
    assert server.admin.get("/api/v2/whoami").status == 200


def test_starts_after_a_kill_9_left_its_files(make_server) -> None:
    server: Running = make_server().start()
    server.kill_9()
    assert (server.state / "run" / "server.json").exists()
    server.start()
    assert server.admin.get("/api/v2/whoami").json["name"] == "root"


def test_says_so_when_the_port_is_taken(make_server) -> None:
    server: Running = make_server()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server.port = taken.getsockname()[1]
        assert server.launch().wait(PATIENCE_S) == 5
    said = server.log.read_text()
    assert f"cannot listen on 127.0.0.1:{server.port}" in said
    assert "--port" in said
    assert "Traceback" not in said


def test_keeps_secrets_and_rows_to_itself(make_server) -> None:
    server: Running = make_server()
    (server.state / "secrets").mkdir(parents=True, mode=0o755)
    server.start()
    state = server.state
    for name in ("secrets", "run"):
        assert stat.S_IMODE((state / name).stat().st_mode) == 0o700
    for path in (state / "secrets").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for path in state.glob("server.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_every_state_has_a_key_of_its_own(make_server) -> None:
    one: Running = make_server().start()
    two: Running = make_server().start()
    keys = {(server.state / "secrets" / "django-key").read_text() for server in (one, two)}
    assert len(keys) == 2
    assert all(len(key) >= 50 for key in keys)
    assert two.caller(one.admin_token).get("/api/v2/whoami").status == 401


def test_makes_the_first_administrator_once(make_server) -> None:
    server: Running = make_server().start()
    token = server.admin_token
    (server.state / "secrets" / "bootstrap-token").unlink()
    server.stop()
    server.start()
    assert not (server.state / "secrets" / "bootstrap-token").exists()
    assert server.caller(token).get("/api/v2/whoami").json["admin"] is True


def test_gives_a_lost_administrator_a_new_token_without_printing_it(make_server) -> None:
    server: Running = make_server().start()
    old = server.admin_token
    command = [sys.executable, "-m", "paddlecloud.server.bootstrap"]
    command += ["--state", str(server.state), "--account", "root"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=os.environ | {"PADDLECLOUD_ENGINE": "fake"},
        check=True,
    )
    assert server.admin_token != old
    assert server.admin_token not in done.stdout + done.stderr
    known = server.admin.get("/api/v2/whoami").json
    assert (known["name"], known["id"], known["admin"]) == ("root", 1, True)


def test_refuses_bad_settings_by_name(make_server) -> None:
    for variable, value in (
        ("PADDLECLOUD_ENGINE_TIMEOUT_S", "soon"),
        ("PADDLECLOUD_TLS", "maybe"),
        ("PADDLECLOUD_DATABASE_URL", "mysql://x"),
    ):
        server: Running = make_server(**{variable: value})
        assert server.launch().wait(PATIENCE_S) == 2
        said = server.log.read_text()
        assert variable in said
        assert "Traceback" not in said


def test_refuses_an_unknown_engine(make_server) -> None:
    server: Running = make_server("quantum")
    assert server.launch().wait(PATIENCE_S) == 2
    assert "no engine called 'quantum'" in server.log.read_text()


def test_health_has_no_lock_on_the_door(server: Running) -> None:
    for path in ("/healthz", "/healthz/"):
        answer = server.anonymous.get(path)
        assert (answer.status, answer.body) == (200, b"OK")


def test_a_mistake_of_ours_is_a_number_not_a_traceback(make_server) -> None:
    server: Running = make_server("tests.server.broken_engines:Raising").start()
    answer = server.admin.get("/api/v2/status")
    assert answer.status == 500
    assert answer.json["code"] == "internal"
    number = answer.json["message"].split("number ")[1].rstrip(")")
    assert "Traceback" not in answer.body.decode()
    assert number in server.log.read_text()
    assert server.admin.get("/api/v2/whoami").status == 200
