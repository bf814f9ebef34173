"""The operator goes on when etcd is killed, restarted and compacted, and the API server too."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from typing import Any

import pytest

from paddlecloud.engines.local import remains
from tests import possible
from tests.kube import running
from tests.kube.running import Cluster, until
from tests.kube.test_jobs import paddle_job, role
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.needs("kube")]


def _kill(cluster: Cluster, part: str) -> None:
    pid = int((cluster.state / f"{part}.pid").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
    until(lambda: not remains.is_running(pid), f"the end of {part}")


def _start_again(cluster: Cluster) -> None:
    words = ("--state", cluster.state, "--programs", possible.cluster_programs())
    running.run_tool("start", *words)


def _etcd(cluster: Cluster, path: str, body: dict[str, Any]) -> dict[str, Any]:
    port = json.loads((cluster.state / "plan.json").read_text())["ports"]["etcd"]
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v3/kv/{path}", json.dumps(body).encode()
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        found: dict[str, Any] = json.loads(answer.read())
        return found


def _compact(cluster: Cluster) -> None:
    revision = _etcd(cluster, "range", {"key": "AA=="})["header"]["revision"]
    _etcd(cluster, "compaction", {"revision": revision, "physical": True})


@pytest.mark.parametrize("parts", [("etcd",), ("etcd", "kube-apiserver")])
def test_goes_on_after_a_restart(cluster, namespace, operator, parts):
    namespace.apply(paddle_job("old", worker=role(2)))
    namespace.until_phase("Running", "old")
    before = {name: pod["metadata"]["uid"] for name, pod in namespace.pods().items()}
    for part in parts:
        _kill(cluster, part)
    _start_again(cluster)
    _compact(cluster)  # the history that the operator would go on from is gone
    namespace.kubectl("scale", "pdj/old", "--replicas=3")
    namespace.apply(paddle_job("new", worker=role(2)))
    namespace.until_phase("Running", "new")
    namespace.kubectl("wait", "pdj/old", "--for=jsonpath={.status.ready}=3/3", "--timeout=180s")
    after = {name: pod["metadata"]["uid"] for name, pod in namespace.pods().items()}
    assert before.items() <= after.items()
    assert len(after) == 5
    assert operator.process.poll() is None
