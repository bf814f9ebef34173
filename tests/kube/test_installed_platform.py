"""What `paddlecloud manifests` prints, running: operator, server and file server in real pods."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlecloud.controller import manifests
from paddlecloud.controller.platform_manifests import SERVER
from tests import possible
from tests.kube.real_pods import mount_our_program
from tests.kube.running import RealCluster, until
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.e2e, pytest.mark.needs("kube", "node")]

HERE, ACCOUNTS = "paddlecloud", "paddlecloud-admin"
CLI = Path(sys.executable).with_name("paddlecloud")
TRAIN = """
import os
print("trainer", os.environ["PADDLE_TRAINER_ID"], "of", os.environ["PADDLE_TRAINERS_NUM"])
open(os.path.join(os.environ["OUTPUT_PATH"], "model"), "w").write("trained")
"""


def _volume(name: str, folder: Path) -> dict[str, Any]:
    """By hand, since nothing in the test cluster makes volumes for claims."""
    folder.mkdir(exist_ok=True)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": str(folder)},
            "claimRef": {"namespace": HERE, "name": SERVER},
        },
    }


def _objects(cluster: RealCluster) -> list[dict[str, Any]]:
    files = {"hostPath": {"path": str(cluster.shared / "files"), "type": "DirectoryOrCreate"}}
    words = ("--image", cluster.image, "--job-image", cluster.image)
    done = subprocess.run(
        [str(CLI), "manifests", *words, "--pfs-volume", json.dumps(files)],
        capture_output=True,
        text=True,
        check=True,
    )
    objects = list(yaml.safe_load_all(done.stdout))
    mount_our_program(objects)
    (server,) = [one for one in objects if one["kind"] == "StatefulSet"]
    # Pod Security has to let a folder of the node through.
    server["spec"]["template"]["spec"]["containers"][0]["env"].append(
        {"name": "PADDLECLOUD_KUBE_POD_SECURITY", "value": "privileged"}
    )
    return [_volume("installed-state", cluster.shared / "state"), *objects]


@pytest.fixture(scope="module")
def installed(real_cluster: RealCluster) -> Iterator[RealCluster]:
    objects = _objects(real_cluster)
    real_cluster.kubectl("apply", "-f", "-", text=manifests.as_yaml(objects))
    try:
        for what in (f"statefulset/{SERVER}", f"deployment/{manifests.NAME}"):
            real_cluster.kubectl("-n", HERE, "rollout", "status", what, "--timeout=180s")
        yield real_cluster
    finally:
        # The definitions stay: other tests use them.
        mine = [one for one in objects if one["kind"] != "CustomResourceDefinition"]
        text = manifests.as_yaml(mine)
        real_cluster.kubectl("delete", "namespace", ACCOUNTS, "--wait=false", "--ignore-not-found")
        real_cluster.kubectl("delete", "-f", "-", "--timeout=180s", text=text)


@contextmanager
def _forwarded(cluster: RealCluster) -> Iterator[str]:
    """The server's address on this machine, as the guide says."""
    kubectl = [str(possible.cluster_programs() / "controlplane"), "kubectl"]
    words = ["-n", HERE, "port-forward", f"service/{SERVER}", ":80"]
    process = subprocess.Popen(
        [*kubectl, f"--kubeconfig={cluster.kubeconfig}", *words], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        found = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
        assert found is not None
        yield f"http://127.0.0.1:{found[1]}"
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def test_leads_from_the_manifests_to_the_first_job(installed, tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "train.py").write_text(TRAIN)
    secret = "/var/lib/paddlecloud/secrets/bootstrap-token"
    asked = ("exec", f"{SERVER}-0", "-c", "server", "--", "cat", secret)
    token = until(lambda: installed.kubectl("-n", HERE, *asked), "the token").strip()

    with _forwarded(installed) as address:
        env = {**os.environ, "PADDLECLOUD_ENDPOINT": address, "PADDLECLOUD_TOKEN": token}

        def paddlecloud(*words: str) -> str:
            done = subprocess.run(
                [str(CLI), *words], capture_output=True, text=True, env=env, cwd=tmp_path
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        size = ("-p", "2", "-cpu", "100m", "-memory", "64Mi", "--mode", "collective")
        paddlecloud("submit", "-jobname", "first", *size, "-entry", "python3 train.py", "package")
        paddlecloud("wait", "--timeout", "120s", "first")
        assert "trainer 1 of 2" in paddlecloud("logs", "first")
        where = "/pfs/local/home/admin/jobs/first/output/model"
        assert paddlecloud("pfs", "cat", where) == "trained"
    logs = installed.kubectl("-n", HERE, "logs", f"deployment/{manifests.NAME}")
    assert "forbidden" not in logs
    assert "forbidden" not in installed.kubectl("-n", HERE, "logs", f"{SERVER}-0", "-c", "server")
