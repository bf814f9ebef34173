"""A platform of the benchmark's own: the real command line, a temporary state, a free port.

Leaving the `with` block stops it, ends by pid whatever it started, and removes its files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _children import Mark, end, free_port
from _report import CannotMeasure

CLI = Path(sys.executable).with_name("paddlecloud")
# Everything of the user's own platform that must not leak into ours.
_NOT_OURS = ("PADDLECLOUD_CONFIG", "PADDLECLOUD_ENDPOINT", "PADDLECLOUD_TOKEN")


class Platform:
    """`up` starts it; its folder, variables and client are its own."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="paddlecloud-bench-"))
        # A sandboxed job runs as another user, who has to be able to reach its files.
        self.home.chmod(0o755)
        self.state = self.home / ".paddlecloud"
        self.port = free_port()
        self.mark = Mark()
        self.env = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
        self.env |= {
            "HOME": str(self.home),
            "PADDLECLOUD_HOME": str(self.state),
            "USER": "alice",
            "LOGNAME": "alice",
            **self.mark.env,
        }
        self.package = self.home / "package"
        self.package.mkdir()
        (self.package / "train.py").write_text("print('hello')\n")

    def __enter__(self) -> Platform:
        return self

    def __exit__(self, *exc: object) -> None:
        self.run("down", "--kill-jobs")
        for pid in self.mark.pids():
            end(pid)
        shutil.rmtree(self.home, ignore_errors=True)

    def run(self, *args: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(CLI), *args],
            env=self.env,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
        )

    def ok(self, *args: str) -> str:
        done = self.run(*args)
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise CannotMeasure(f"paddlecloud {' '.join(args)}: {said}")
        return done.stdout

    def up(self) -> float:
        """Start it; how long it took until the command said it was healthy, in seconds."""
        started_at_s = time.perf_counter()
        self.ok("up", "--port", str(self.port))
        return time.perf_counter() - started_at_s

    def client(self):
        from paddlecloud.sdk import Client
        from paddlecloud.sdk.config import load_profile

        config = str(self.home / ".paddle" / "config")
        return Client(profile=load_profile(path=config, environ={}))
