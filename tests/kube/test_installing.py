"""From an empty cluster to a job, to a newer version, and back to the empty cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from paddlecloud.controller import manifests, platform_manifests
from paddlecloud.kube.client import collection
from tests.kube.running import Cluster, Namespace, OperatorProcess, until
from tests.kube.test_jobs import paddle_job, role
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.e2e, pytest.mark.needs("kube")]

HERE = "paddlecloud"
# Made by the cluster for itself, at times of its own.
_NOT_OURS = ("events", "leases", "endpointslices", "endpoints")


def _printed(*words: str) -> str:
    """What `paddlecloud manifests` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "paddlecloud", "manifests", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _everything(cluster: Cluster) -> set[str]:
    """Every object of every kind the cluster knows, and the kinds themselves."""
    client = cluster.client()
    groups = client.get("/apis")["groups"]
    versions = ["v1", *(group["preferredVersion"]["groupVersion"] for group in groups)]
    found = set()
    for version in versions:
        for kind in client.get(collection(version, "").rstrip("/"))["resources"]:
            if "list" not in kind["verbs"] or kind["name"] in _NOT_OURS:
                continue
            found.add(f"{version}/{kind['name']}")
            for one in client.get(collection(version, kind["name"]))["items"]:
                where = one["metadata"].get("namespace", "")
                found.add(f"{kind['kind']}/{where}/{one['metadata']['name']}")
    return found


def _limited(cluster: Cluster, path: Path) -> Path:
    """A kubeconfig with the rights the manifests give to the operator, and no others."""
    token = cluster.kubectl("-n", HERE, "create", "token", manifests.NAME).strip()
    config = json.loads(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    path.write_text(json.dumps(config))
    return path


def _run_jobs(namespace: Namespace) -> None:
    """A life with everything in it: names, scaling, a retry, a failure, an end."""
    failing = role(1, {"pretend/fail-after": "100ms"})
    namespace.apply(paddle_job("fails", worker=failing, backoffLimit=1))
    namespace.apply(paddle_job(worker=role(2), ps=role(1), intranet="Service"))
    namespace.until_phase("Running")
    namespace.kubectl("scale", "pdj/job", "--replicas=3")
    namespace.kubectl("wait", "pdj/job", "--for=jsonpath={.status.ready}=4/4", "--timeout=180s")
    namespace.finish()
    namespace.until_phase("Completed")
    namespace.until_phase("Failed", "fails")


def test_installs_upgrades_and_leaves_nothing_behind(bare_cluster, tmp_path):
    before = _everything(bare_cluster)
    text = _printed("--image", "none:1")
    bare_cluster.kubectl("apply", "-f", "-", text=text)
    bare_cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=180s")
    team = Namespace(bare_cluster, "team")
    config = _limited(bare_cluster, tmp_path / "kubeconfig")
    words = ("--lease-namespace", HERE, "--log-wait", "1")
    operator = OperatorProcess(config, tmp_path / "operator.log", *words)
    try:
        _run_jobs(team)
        again = bare_cluster.kubectl("apply", "-f", "-", text=text).splitlines()
        assert [line for line in again if not line.endswith(" unchanged")] == []
        newer = bare_cluster.kubectl("apply", "-f", "-", text=_printed("--image", "none:2"))
        changed = [line for line in newer.splitlines() if not line.endswith(" unchanged")]
        assert changed == [
            f"deployment.apps/{manifests.NAME} configured",
            f"statefulset.apps/{platform_manifests.SERVER} configured",
        ]
        assert team.status()["phase"] == "Completed"  # objects outlive an upgrade
        held = paddle_job("left", worker=role(1))
        held["metadata"]["annotations"] = {"paddlepaddle.org/archive": "true"}
        team.apply(held)
        team.until_phase("Running", "left")
        # Who deletes the operator next must not find that a pod still waits for it.
        gone = ("--all", "-A", "--cascade=foreground", "--timeout=85s")
        bare_cluster.kubectl("delete", "pdj,tj", *gone)
        assert team.pods() == {}
    finally:
        operator.stop()
    assert [row for row in operator.lines if row["level"] == "error"] == []
    assert [row for row in operator.lines if "forbidden" in row["message"]] == []
    team.remove()
    bare_cluster.kubectl("delete", "-f", "-", "--timeout=180s", text=text)
    until(lambda: _everything(bare_cluster) == before, "the cluster to be as it was")


def test_is_removed_although_nobody_looks_after_its_jobs(bare_cluster, tmp_path):
    """Who forgets to delete the jobs first, or has lost the operator, is not stuck either."""
    before = _everything(bare_cluster)
    text = _printed("--image", "none:1")
    bare_cluster.kubectl("apply", "-f", "-", text=text)
    bare_cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=180s")
    team = Namespace(bare_cluster, "team-2")
    config = _limited(bare_cluster, tmp_path / "kubeconfig")
    operator = OperatorProcess(config, tmp_path / "operator.log", "--lease-namespace", HERE)
    try:
        team.apply(paddle_job(worker=role(2)))
        team.until_phase("Running")
    finally:
        operator.stop()
    bare_cluster.kubectl("delete", "-f", "-", "--timeout=180s", text=text)
    team.remove()
    until(lambda: _everything(bare_cluster) == before, "the cluster to be as it was")
