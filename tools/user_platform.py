"""The platform of a user, in whose way no test may be: `make test` keeps one while the suites run.

It holds port 8000 and has jobs, in the default state folder of a home that the suites take for the
user's own. What a test does to a fixed port, to `~/.paddlecloud` or `~/.paddle`, or to processes
and jobs it did not start, is found at the end. `suites.py` calls it. Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

PORT = 8000
_COMMAND_S = 120
_JOB = ["submit", "--mode", "single", "-cpu", "100m", "-memory", "32Mi", "-o", "json"]


class UserPlatform:
    """Started by `start`; `damage` says what has happened to it since; `stop` ends it."""

    def __init__(self, program: Path, port: int = PORT) -> None:
        self._program = program
        self._port = port
        self.home = Path(tempfile.mkdtemp(prefix="paddlecloud-user-"))
        self.home.chmod(0o755)  # jobs run as other users, and pass through
        self._before: dict[str, object] = {}

    @property
    def env(self) -> dict[str, str]:
        """The environment of a user who has this home; what is cached stays where it is."""
        home, real = str(self.home), Path.home()
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PADDLECLOUD_", "XDG_")) or name in _PASSED
        }
        cache = os.environ.get("XDG_CACHE_HOME") or str(real / ".cache")
        pyenv = os.environ.get("PYENV_ROOT") or str(real / ".pyenv")
        return {**kept, "HOME": home, "XDG_CACHE_HOME": cache, "PYENV_ROOT": pyenv}

    def start(self) -> str:
        """Up, with one job that has ended and one that runs; says where it listens."""
        package = self.home / "package"
        package.mkdir()
        # Somebody's platform may be there already: then that one holds the port.
        port = self._port if _is_free(self._port) else 0
        self.command("up", "--port", str(port))
        for name, entry in (("ended", "true"), ("long", "sleep 100000")):
            self.command(*_JOB, "-jobname", name, "-entry", entry, str(package))
        self.command("wait", "ended")
        self.command("wait", "--for", "running", "long")
        self._before = self._facts()
        endpoint: str = json.loads(self.command("status", "-o", "json"))["endpoint"]
        return endpoint

    def damage(self) -> list[str]:
        """What is not as it was, each in one line; empty when nobody was in its way."""
        try:
            now = self._facts()
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            return [f"the platform of the user does not answer any more: {error}"]
        return [
            f"{what} of the user: was {self._before[what]}, is {now[what]}"
            for what in self._before
            if self._before[what] != now[what]
        ]

    def stop(self) -> None:
        try:
            self.command("down", "--kill-jobs")
        finally:
            shutil.rmtree(self.home, ignore_errors=True)

    def _facts(self) -> dict[str, object]:
        jobs = json.loads(self.command("get", "jobs", "-a", "-o", "json"))["items"]
        config = (self.home / ".paddle" / "config").read_bytes()
        return {
            "the server": json.loads(self.command("status", "-o", "json"))["pid"],
            "the jobs": sorted((job["name"], job["phase"], job["run"]) for job in jobs),
            "the configuration": hashlib.sha256(config).hexdigest()[:12],
            "the home": sorted(path.name for path in self.home.iterdir()),
        }

    def command(self, *words: str) -> str:
        done = subprocess.run(
            [self._program, *words],
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_COMMAND_S,
            cwd=self.home,
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise subprocess.SubprocessError(f"paddlecloud {' '.join(words)}: {said}")
        return done.stdout


_PASSED = {"PADDLECLOUD_RUNTIMES", "PADDLECLOUD_STRICT"}


def _is_free(port: int) -> bool:
    try:
        with socket.create_server(("127.0.0.1", port)):
            return True
    except OSError:
        return False
