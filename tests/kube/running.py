"""A real control plane for tests, and kubectl and operators to use it with.

The programs come from the user's cache (`make cluster-programs`); the cluster lives in a folder
of the test run, on ports that were free, and ends with it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddlecloud.controller import manifests
from paddlecloud.kube import kubeconfig
from paddlecloud.kube.client import Client, collection
from paddlecloud.kube.informers import Informer, Watched
from tests import possible
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "paddlejob"


@dataclass(frozen=True)
class Cluster:
    state: Path
    kubeconfig: Path

    def client(self) -> Client:
        return Client(kubeconfig.from_file(self.kubeconfig), "tests")

    def kubectl(self, *words: str, text: str = "", ok: bool = True) -> str:
        """What kubectl prints; with `ok=False` it must fail, and what it complains is returned."""
        done = subprocess.run(
            [
                str(possible.cluster_programs() / "controlplane"),
                "kubectl",
                f"--kubeconfig={self.kubeconfig}",
                *words,
            ],
            input=text,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S + 30,
        )
        assert (done.returncode == 0) == ok, f"kubectl {' '.join(words)}: {done.stderr}"
        return done.stdout if ok else done.stderr


def run_tool(*words: str | Path) -> str:
    tool = ROOT / "tools" / "cluster" / "run.py"
    done = subprocess.run(
        [sys.executable, str(tool), *map(str, words)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def start(state: Path, nodes: int) -> Cluster:
    found = run_tool(
        "start", "--state", state, "--programs", possible.cluster_programs(), "--nodes", str(nodes)
    )
    return Cluster(state, Path(found))


def add_to(cluster: Cluster, *words: str) -> None:
    """More nodes, or another part, for a cluster that runs."""
    programs = possible.cluster_programs()
    run_tool("start", "--state", cluster.state, "--programs", programs, *words)


@dataclass(frozen=True)
class RealCluster(Cluster):
    """A cluster with one node whose pods really run. It has no other node."""

    node: str = "real-0"
    image: str = "localhost/paddlecloud/base:1"  # sh, the usual tools, python3

    @property
    def shared(self) -> Path:
        """A folder of this machine that pods may mount (hostPath), writable for all."""
        return self.state / "shared"


_real: RealCluster | None = None
_real_users = 0


@contextmanager
def real_cluster(folder: Callable[[], Path]) -> Iterator[RealCluster]:
    """The test session's one cluster with a real node: started for the first who asks, stopped by
    the last. Our definitions are in it; operators are the tests' to start."""
    global _real, _real_users
    _real_users += 1
    try:
        if _real is None:
            state = folder()
            _real = RealCluster(state, state / "kubeconfig")
            words = ("--real-node", possible.node_files())
            run_tool("start", "--state", state, "--programs", possible.cluster_programs(), *words)
            _real.shared.mkdir()
            _real.shared.chmod(0o1777)
            install_definitions(_real)
        yield _real
    finally:
        _real_users -= 1
        if not _real_users and _real is not None:
            run_tool("stop", "--state", _real.state)
            _real = None


def install_definitions(cluster: Cluster) -> None:
    cluster.kubectl("apply", "-f", "-", text=manifests.as_yaml(manifests.definitions()))
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=180s")


class Namespace:
    """One namespace of the cluster: each test has its own."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        cluster.kubectl("create", "namespace", name)

    def kubectl(self, *words: str, **more: Any) -> str:
        return self.cluster.kubectl("-n", self.name, *words, **more)

    def apply(self, body: dict[str, Any] | Path) -> None:
        if isinstance(body, Path):
            self.kubectl("apply", "-f", str(body))
        else:
            self.kubectl("apply", "-f", "-", text=json.dumps(body))

    def get(self, what: str, *words: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", what, *words, "-o", "json"))
        return found

    def status(self, job: str = "job") -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"pdj/{job}").get("status", {})
        return found

    def pods(self, *words: str) -> dict[str, dict[str, Any]]:
        return {pod["metadata"]["name"]: pod for pod in self.get("pods", *words)["items"]}

    def until_phase(self, phase: str, job: str = "job") -> None:
        self.kubectl(
            "wait",
            f"pdj/{job}",
            "--for=jsonpath={.status.phase}=" + phase,
            f"--timeout={PATIENCE_S:.0f}s",
        )

    def finish(self, *words: str) -> None:
        """Let the workers end well."""
        self.kubectl(
            "annotate", "pods", "-l", "paddle-res-type=worker", "pretend/complete-after=0s", *words
        )

    def remove(self) -> None:
        self.cluster.kubectl("delete", "namespace", self.name, "--wait=false")


def until(true: Callable[[], Any], what: str, within_s: float = PATIENCE_S) -> Any:
    """Ask until the answer is a true one. For what no event tells of."""
    deadline = time.monotonic() + within_s
    while not (answer := true()):
        assert time.monotonic() < deadline, f"{what}: not within {within_s:.0f} s"
        time.sleep(0.1)
    return answer


class OperatorProcess:
    """`paddlecloud controller` as users start it."""

    def __init__(self, config: Path, log: Path, *words: str) -> None:
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "paddlecloud", "controller"),
                    *("--kubeconfig", str(config), "--metrics-port", "0", *words),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            )

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines() if line]

    def ask(self, path: str) -> str:
        def address() -> str:
            return next(
                (
                    row["message"].removeprefix("listening on ")
                    for row in self.lines
                    if row["message"].startswith("listening on ")
                ),
                "",
            )

        found = until(address, "its address")
        with urllib.request.urlopen(f"http://{found}{path}", timeout=PATIENCE_S) as answer:
            text: str = answer.read().decode()
            return text

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


@contextmanager
def operator(cluster: Cluster, log: Path, *words: str) -> Iterator[OperatorProcess]:
    one = OperatorProcess(cluster.kubeconfig, log, *words)
    try:
        yield one
    finally:
        one.stop()


class PodHistory:
    """Watches the pods of a namespace and remembers how many there ever were at once."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._lock = threading.Lock()
        self.most = 0
        self.names: set[str] = set()
        what = Watched(collection("v1", "pods", namespace))
        self._informer = Informer(cluster.client(), what, self._changed)
        self._informer.start()
        assert self._informer.listed.wait(PATIENCE_S)

    def _changed(self, body: dict[str, Any]) -> None:
        with self._lock:
            self.names.add(body["metadata"]["name"])
            self.most = max(self.most, len(self._informer.all()))

    def stop(self) -> None:
        self._informer.stop()
        self._informer.join(PATIENCE_S)
