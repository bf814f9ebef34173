"""Pod templates for the real node: a shell, and PaddlePaddle without an image of its own.

The runtime of `make runtime` is a folder of this machine, too large for an image per test; pods
mount it, and the Python it was made from, where they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests import possible
from tests.kube.running import RealCluster

Json = dict[str, Any]


def shell_role(cluster: RealCluster, replicas: int, script: str, **container: Any) -> Json:
    """`replicas` pods that run a shell script."""
    return _role(cluster, replicas, ["sh", "-c", script], [], container)


def paddle_role(
    cluster: RealCluster, replicas: int, program: Path, script: str, **container: Any
) -> Json:
    """`replicas` pods that run a script of Python with PaddlePaddle in the folder of `program`.

    What they write to $OUTPUT_PATH lands in the cluster's shared folder.
    """
    python = possible.runtime_python()
    environment = python.parent.parent
    home = next(
        line.partition("=")[2].strip()
        for line in (environment / "pyvenv.cfg").read_text().splitlines()
        if line.startswith("home")
    )
    mounted = [(program, True), (environment, True), (Path(home).parent, True)]
    container = {
        "workingDir": str(program),
        "env": [
            {"name": "OUTPUT_PATH", "value": str(cluster.shared)},
            {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"},
        ],
        **container,
    }
    command = [str(python), "-W", "ignore", "-c", script]
    return _role(cluster, replicas, command, [*mounted, (cluster.shared, False)], container)


def _role(
    cluster: RealCluster,
    replicas: int,
    command: list[str],
    folders: list[tuple[Path, bool]],
    container: Json,
) -> Json:
    volumes = [
        {"name": f"folder-{n}", "hostPath": {"path": str(path), "type": "Directory"}}
        for n, (path, _) in enumerate(folders)
    ]
    mounts = [
        {"name": f"folder-{n}", "mountPath": str(path), "readOnly": is_read_only}
        for n, (path, is_read_only) in enumerate(folders)
    ]
    body = {
        "name": "paddle",
        "image": cluster.image,
        "command": command,
        "volumeMounts": mounts,
        **container,
    }
    spec = {"containers": [body], "volumes": volumes, "terminationGracePeriodSeconds": 2}
    return {"replicas": replicas, "template": {"spec": spec}}
