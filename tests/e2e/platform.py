"""A real platform for end-to-end tests: started by the real command line, in a state of its own.

Tests drive it through the command line and the SDK only; `kill_9` is how they break it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from paddlecloud.sdk import Client
from paddlecloud.testing.ports import free_port
from tests.patience import PATIENCE_S

CLI = Path(sys.executable).with_name("paddlecloud")
START_TIMEOUT_S = PATIENCE_S


class Platform:
    def __init__(self, home: Path, **env: str) -> None:
        self.home = home
        self.state = home / ".paddlecloud"
        self.port = free_port()
        self.env = {
            **os.environ,
            "HOME": str(home),
            "PADDLECLOUD_HOME": str(self.state),
            "USER": "alice",
            "LOGNAME": "alice",
            **env,
        }

    # --- its life ---------------------------------------------------------------------------

    def up(self, *args: str) -> subprocess.CompletedProcess[str]:
        done = self.run("up", "--port", str(self.port), *args)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def down(self) -> None:
        self.run("down", "--kill-jobs")

    def _fact(self, record: str, key: str) -> int:
        return int(json.loads((self.state / "run" / record).read_text())[key])

    @property
    def pid(self) -> int:
        return self._fact("server.json", "pid")

    @property
    def supervisor_pid(self) -> int:
        return self._fact("supervisor.json", "pid")

    def kill_9(self) -> None:
        """End the whole platform without warning and wait until it is gone."""
        watch = os.pidfd_open(self.pid)
        os.kill(self.supervisor_pid, signal.SIGKILL)
        wait_for_end(watch)  # the server dies with its parent

    def kill_9_server(self) -> None:
        """End the server alone; its supervisor starts another."""
        pid = self.pid
        watch = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        wait_for_end(watch)

    # --- using it ---------------------------------------------------------------------------

    def run(self, *args: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(CLI), *args],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
        )

    def ok(self, *args: str, timeout_s: float = 120) -> str:
        done = self.run(*args, timeout_s=timeout_s)
        assert done.returncode == 0, f"{args}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def json(self, *args: str) -> object:
        return json.loads(self.ok(*args, "-o", "json"))

    def client(self) -> Client:
        config = self.home / ".paddle" / "config"
        previous = os.environ.get("PADDLECLOUD_CONFIG")
        os.environ["PADDLECLOUD_CONFIG"] = str(config)
        try:
            return Client()
        finally:
            if previous is None:
                del os.environ["PADDLECLOUD_CONFIG"]
            else:
                os.environ["PADDLECLOUD_CONFIG"] = previous

    def package(self, name: str, **files: str) -> Path:
        """A folder with these files; `train_py="..."` makes train.py."""
        folder = self.home / "packages" / name
        folder.mkdir(parents=True, exist_ok=True)
        for key, text in files.items():
            stem, _, suffix = key.rpartition("_")
            (folder / f"{stem}.{suffix}").write_text(text)
        return folder


def wait_for_end(watch: int) -> None:
    try:
        assert select.select([watch], [], [], 30)[0], "it did not end"
    finally:
        os.close(watch)


def until(is_so: Callable[[], object], within_s: float = 30) -> None:
    """For what has no event to wait for from outside."""
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def processes_with(cookie: str) -> list[int]:
    """Pids of live processes whose environment has this text: what a job left behind."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environ = (entry / "environ").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if cookie.encode() in environ and state != "Z":
            found.append(int(entry.name))
    return found
