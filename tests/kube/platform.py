"""`paddlecloud up --engine kubernetes` on the cluster of a test, with an operator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddlecloud.testing.ports import free_port
from tests.kube import running
from tests.kube.running import Cluster
from tests.patience import PATIENCE_S
from tests.server.running import Caller

CLI = Path(sys.executable).with_name("paddlecloud")
HOME = "paddlecloud-alice"  # the namespace of the account


@dataclass
class Platform:
    cluster: Cluster
    env: dict[str, str]
    folder: Path
    state: Path
    port: int

    def run(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [str(CLI), *words],
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == code, f"{words}: {done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "-o", "json"))

    def kubectl(self, *words: str, **more: Any) -> str:
        return self.cluster.kubectl("-n", HOME, *words, **more)

    def objects(self, what: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = json.loads(self.kubectl("get", what, "-o", "json"))["items"]
        return items

    @property
    def caller(self) -> Caller:
        token = (self.state / "secrets" / "bootstrap-token").read_text()
        return Caller(self.port, f"Token {token}")

    @property
    def log(self) -> str:
        return (self.state / "run" / "server.log").read_text()


@contextmanager
def platform_of_alice(
    cluster: Cluster, kubeconfig: Path, folder: Path, state: Path, *words: str, **env: str
) -> Iterator[Platform]:
    """Her platform, and an operator for her namespace; `folder` is her home and has a package."""
    (folder / "package").mkdir()
    (folder / "package" / "train.py").write_text("print('hello')\n")
    names = {"USER": "alice", "LOGNAME": "alice", "HOME": str(folder)}
    made = Platform(cluster, {**os.environ, **names, **env}, folder, state, free_port())
    where = ("--port", str(made.port), "--state", str(state), "--kubeconfig", str(kubeconfig))
    try:
        assert "kubernetes engine" in made.run("up", *where, "--engine", "kubernetes", *words)
        log = folder / "operator.log"
        with running.operator(cluster, log, "--namespace", HOME, "--no-lease"):
            yield made
    finally:
        made.run("down", "--state", str(state))
        cluster.kubectl("delete", "namespace", HOME, "--wait=false", "--ignore-not-found")
