"""kill -9 of the server and of its supervisor: one comes back by itself, both end with one `up`."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.e2e.platform import CLI, Platform, processes_with, until, wait_for_end
from tests.patience import PATIENCE_S

SLEEPER = {"name": "sleeper", "mode": "single", "memory": "32Mi", "entry": "sleep 1000"}


def status(platform: Platform) -> dict:
    return json.loads(platform.ok("status", "-o", "json"))


def come_back(platform: Platform, pid: int) -> dict:
    until(lambda: platform.run("status").returncode == 0 and platform.pid != pid)
    return status(platform)


def platform_processes(platform: Platform) -> list[str]:
    """The command lines of every process of the platform itself, not of its jobs."""
    found = []
    for pid in processes_with(f"PADDLECLOUD_HOME={platform.state}"):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().decode().split("\0")
        for name in ("supervisor.py", "paddlecloud.server"):
            found += [name for word in words if word.endswith(name)]
    return sorted(found)


ONE_OF_EACH = ["paddlecloud.server", "supervisor.py"]


def test_a_killed_server_comes_back_at_its_port_with_its_jobs(breakable):
    with breakable.client() as client:
        job = client.submit(SLEEPER, package=str(breakable.package("none", a_txt="")))
        client.wait(job["id"], "running", timeout_s=30)
    before, running = status(breakable), set(processes_with(job["id"]))
    assert running
    assert (before["restarts"], before["last_restart"]) == (0, None)
    breakable.kill_9_server()
    after = come_back(breakable, before["pid"])
    assert after["endpoint"] == before["endpoint"]
    assert after["supervisor_pid"] == before["supervisor_pid"] == breakable.supervisor_pid
    assert after["restarts"] == 1
    assert after["last_restart"]["reason"] == "killed by signal 9"
    assert "restarted  once, last " in breakable.ok("status")
    assert set(processes_with(job["id"])) == running
    with breakable.client() as client:
        assert client.get(job["id"])["phase"] == "Running"
    assert platform_processes(breakable) == ONE_OF_EACH
    log = (breakable.state / "run" / "server.log").read_text()
    assert "the server ended: killed by signal 9; next start in 0.2 s" in log


def test_a_port_of_any_number_stays_the_same(tmp_path):
    platform = Platform(tmp_path)
    platform.port = 0
    platform.up()
    before = status(platform)
    platform.kill_9_server()
    assert come_back(platform, before["pid"])["endpoint"] == before["endpoint"]
    platform.down()


def test_after_a_killed_supervisor_nothing_is_left_and_up_starts_one_of_each(breakable):
    watch = os.pidfd_open(breakable.pid)
    os.kill(breakable.supervisor_pid, signal.SIGKILL)
    done = breakable.up()
    assert "already running" not in done.stdout
    wait_for_end(watch)
    assert platform_processes(breakable) == ONE_OF_EACH
    assert status(breakable)["supervisor_pid"] == breakable.supervisor_pid
    assert status(breakable)["restarts"] == 0


# Tries to bind each address, as fast as it can, until it has one or is killed.
THIEF = """
import socket, sys
print("ready", flush=True)
while True:
    for port in map(int, sys.argv[1:]):
        for host in ("127.0.0.1", "0.0.0.0"):
            with socket.socket() as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    sock.bind((host, port))
                    sock.listen()
                except OSError:
                    continue
                print("stolen", host, port, flush=True)
                sys.exit(1)
"""


def test_no_restart_leaves_an_address_free(breakable):
    """A job shares the machine's network: were it to answer there, it would be sent tokens."""
    before = status(breakable)
    ports = [str(breakable.port), str(before["pfs"]["port"])]
    with subprocess.Popen(
        [sys.executable, "-c", THIEF, *ports], stdout=subprocess.PIPE, text=True
    ) as thief:
        try:
            assert thief.stdout is not None
            assert thief.stdout.readline() == "ready\n"
            for _ in range(3):
                pid = breakable.pid
                breakable.kill_9_server()
                after = come_back(breakable, pid)
                assert thief.poll() is None, thief.stdout.read()
        finally:
            thief.kill()
    assert after["pfs"]["port"] == before["pfs"]["port"]


def test_who_calls_while_the_server_is_away_waits_for_it(breakable):
    os.kill(breakable.supervisor_pid, signal.SIGSTOP)  # so that it is away for certain
    breakable.kill_9_server()
    with socket.create_connection(("127.0.0.1", breakable.port)) as caller:
        caller.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        os.kill(breakable.supervisor_pid, signal.SIGCONT)
        assert caller.recv(100).startswith(b"HTTP/1.1 200")


def test_keeps_trying_while_the_cause_lasts_and_up_tries_at_once(breakable):
    """Somebody holds the state folder's lock while the server is down."""
    pid = breakable.pid
    os.kill(breakable.supervisor_pid, signal.SIGSTOP)  # so that the lock is free for us
    breakable.kill_9_server()
    with open(breakable.state / "run" / "server.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.kill(breakable.supervisor_pid, signal.SIGCONT)

        def tries() -> int:
            return read_supervisor(breakable)["restarts"]

        until(lambda: tries() >= 2)
    assert read_supervisor(breakable)["last_end"] in ("exited with code 5", "killed by signal 9")
    assert "already running" in breakable.up().stdout
    assert status(breakable)["pid"] != pid
    assert status(breakable)["last_restart"]["reason"] == "exited with code 5"


def read_supervisor(platform: Platform) -> dict:
    return json.loads((platform.state / "run" / "supervisor.json").read_text())["parts"]["server"]


def test_status_tells_of_a_server_that_is_away(breakable):
    os.kill(breakable.supervisor_pid, signal.SIGSTOP)
    try:
        breakable.kill_9_server()
        done = breakable.run("status")
    finally:
        os.kill(breakable.supervisor_pid, signal.SIGCONT)
    assert done.returncode == 6
    assert "is being tried again" in done.stderr
    assert "server.log" in done.stderr


def test_down_ends_all_even_between_two_lives(breakable):
    supervisor = os.pidfd_open(breakable.supervisor_pid)
    breakable.kill_9_server()
    assert breakable.ok("down").startswith("platform   stopped")
    wait_for_end(supervisor)
    assert platform_processes(breakable) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_foreground_supervises_too(tmp_path, number):
    platform = Platform(tmp_path)
    shown = tmp_path / "shown"
    with shown.open("wb") as output:
        child = subprocess.Popen(
            [str(CLI), "up", "--foreground", "--port", str(platform.port)],
            env=platform.env,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    until(lambda: "next   " in shown.read_text())
    pid = platform.pid
    platform.kill_9_server()
    assert come_back(platform, pid)["restarts"] == 1
    assert "the server ended: killed by signal 9" in shown.read_text()
    child.send_signal(number) if number == signal.SIGTERM else os.killpg(child.pid, number)
    assert child.wait(PATIENCE_S) == 0
    assert platform_processes(platform) == []
