"""Pod templates for the real node: a shell, PaddlePaddle and our operator without their images.

The runtime of `make runtime` is a folder of this machine, too large for an image per test; pods
mount it, and the Python it was made from, where they are. So does the operator with this checkout.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from paddlecloud.controller import manifests
from tests import possible
from tests.kube.running import ROOT, RealCluster

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
    volumes, mounts = _host_folders(folders)
    body = {
        "name": "paddle",
        "image": cluster.image,
        "command": command,
        "volumeMounts": mounts,
        **container,
    }
    spec = {"containers": [body], "volumes": volumes, "terminationGracePeriodSeconds": 2}
    return {"replicas": replicas, "template": {"spec": spec}}


def _host_folders(folders: list[tuple[Path, bool]]) -> tuple[list[Json], list[Json]]:
    """Volumes and their mounts, each folder where it is on this machine."""
    volumes: list[Json] = [
        {"name": f"folder-{n}", "hostPath": {"path": str(path), "type": "Directory"}}
        for n, (path, _) in enumerate(folders)
    ]
    mounts: list[Json] = [
        {"name": f"folder-{n}", "mountPath": str(path), "readOnly": is_read_only}
        for n, (path, is_read_only) in enumerate(folders)
    ]
    return volumes, mounts


def operator_manifests(cluster: RealCluster, home: str, watched: str) -> list[Json]:
    """What `paddlecloud manifests` prints, less the definitions, for an operator that looks after
    one namespace."""
    objects = [
        one
        for one in manifests.everything(home, cluster.image)
        if one["kind"] != "CustomResourceDefinition"
    ]
    mount_our_program(objects)
    (deployment,) = [one for one in objects if one["kind"] == "Deployment"]
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["command"] += ["--namespace", watched, "--lease-namespace", home]
    return objects


def mount_our_program(objects: list[Json]) -> None:
    """Have what runs `paddlecloud` find it, since no image has it. Nothing else is changed."""
    tools = Path(sys.prefix).resolve()
    folders = [(tools, True), (Path(sys.base_prefix), True), (ROOT / "src", True)]
    volumes, mounts = _host_folders(folders)
    for one in objects:
        if one["kind"] not in ("Deployment", "StatefulSet"):
            continue
        pod = one["spec"]["template"]["spec"]
        pod["volumes"] = [*pod["volumes"], *volumes]
        for container in pod["containers"]:
            container["volumeMounts"] = [*container["volumeMounts"], *mounts]
            container["env"] = [
                *container.get("env", ()),
                {"name": "PATH", "value": f"{tools}/bin:/usr/bin:/bin"},
                {"name": "PYTHONPATH", "value": str(ROOT / "src")},
                {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"},
            ]
