"""A platform of the benchmark's own: the real command line, a temporary state, a free port.

Leaving the `with` block stops it, ends by pid whatever it started, and removes its files.
"""

from __future__ import annotations

import json
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


def _environment() -> dict[str, str]:
    """Ours without the user's own platform and without what changes how Python runs."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PADDLECLOUD_", "PYTHON"))
    }


def compile_package() -> None:
    """An installed package is compiled; a checkout in which nothing may write caches is not."""
    import paddlecloud

    folder = str(Path(paddlecloud.__file__).parent)
    command = [sys.executable, "-m", "compileall", "-q", folder]
    subprocess.run(command, env=_environment(), check=True, stdout=subprocess.DEVNULL)


class Platform:
    """`up` starts it; its folder, variables and client are its own."""

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` is where its temporary home is made, if not where they usually are."""
        self.home = Path(tempfile.mkdtemp(prefix="paddlecloud-bench-", dir=folder))
        # A sandboxed job runs as another user, who has to be able to reach its files.
        self.home.chmod(0o755)
        self.state = self.home / ".paddlecloud"
        self.port = free_port()
        self.mark = Mark()
        compile_package()
        self.env = _environment() | {
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
        try:
            self.run("down", "--kill-jobs", timeout_s=30)
        except subprocess.TimeoutExpired:
            pass  # then the hard way
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

    @property
    def server_pid(self) -> int:
        return int(json.loads((self.state / "run" / "server.json").read_text())["pid"])

    @property
    def file_server_pids(self) -> list[int]:
        found = [
            pid
            for pid in self.mark.pids()
            if b"paddlecloud.pfs.serving" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        if not found:
            raise CannotMeasure("the file server's process was not found")
        return found

    def client(self):
        from paddlecloud.sdk import Client
        from paddlecloud.sdk.config import load_profile

        config = str(self.home / ".paddle" / "config")
        return Client(profile=load_profile(path=config, environ={}))
