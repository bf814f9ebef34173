"""A second opinion about a pod template: `dangers(template)` knows what is dangerous, not what is
allowed, and was written without looking at the allow-list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

NEVER = set(
    "hostPath hostPort hostIP hostNetwork hostPID hostIPC hostAliases hostUsers nodeName "
    "serviceAccount serviceAccountName serviceAccountToken priorityClassName priority "
    "preemptionPolicy runtimeClassName ephemeralContainers volumeDevices devicePath csi nfs iscsi "
    "rbd cephfs glusterfs flexVolume azureFile secret secretRef secretKeyRef projected ephemeral "
    "subPathExpr mountPropagation ownerReferences finalizers namespace generateName uid "
    "capabilitiesAdd procMount seLinuxOptions appArmorProfile windowsOptions sysctls "
    "supplementalGroups resourceClaims claims dnsConfig readinessGates overhead podAffinity "
    "podAntiAffinity topologySpreadConstraints hostname subdomain setHostnameAsFQDN host "
    "localhostProfile gitRepo resizePolicy schedulingGates httpHeaders grpc".split()
)
MUST_BE_FALSE = {"privileged", "allowPrivilegeEscalation", "automountServiceAccountToken"}
VOLUME_KINDS = {"emptyDir", "persistentVolumeClaim", "configMap", "downwardAPI"}
# Their keys are a tenant's own words, judged apart.
OWN_KEYS = {"labels", "annotations", "nodeSelector", "limits", "requests"}


def dangers(template: Mapping[str, Any]) -> list[str]:
    return list(_walk(template, "")) + list(_of_the_pod(template))


def _walk(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            place = f"{where}.{key}"
            if where.rsplit(".", 1)[-1] in OWN_KEYS:
                continue
            if key in NEVER and item is not False:
                yield place
            if key in MUST_BE_FALSE and item is not False:
                yield place
            if key == "capabilities" and set(item) - {"drop"}:
                yield place
            if key in ("subPath", "mountPath", "path", "workingDir") and _leads_away(key, item):
                yield f"{place}={item!r}"
            if item is None:
                yield f"{place} is null"
            yield from _walk(item, place)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _walk(item, f"{where}[{number}]")


def _leads_away(key: str, value: Any) -> bool:
    if not isinstance(value, str):
        return True
    if key == "path" and value.startswith("/"):
        return False  # of a probe: asked by HTTP
    return ".." in value.split("/") or (key == "subPath" and value.startswith("/"))


def _of_the_pod(template: Mapping[str, Any]) -> Iterator[str]:
    metadata, pod = template.get("metadata", {}), template.get("spec", {})
    if set(template) - {"metadata", "spec"} or set(metadata) - {"labels", "annotations"}:
        yield "more than marks and a spec"
    for key in (*metadata.get("labels", {}), *metadata.get("annotations", {})):
        domain = key.partition("/")[0] if "/" in key else ""
        if ("." in domain and domain != "app.kubernetes.io") or key.startswith("paddle"):
            yield f"the mark {key}"
    volumes = {}
    for volume in pod.get("volumes", []):
        kinds = set(volume) - {"name"}
        if len(kinds) != 1 or not kinds <= VOLUME_KINDS or volume["name"].startswith("paddlecloud"):
            yield f"the volume {volume}"
        volumes[volume["name"]] = volume
    for container in (*pod.get("containers", []), *pod.get("initContainers", [])):
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes or not mount["mountPath"].startswith("/"):
                yield f"the mount {mount}"
    if pod.get("schedulerName", "volcano") not in ("volcano", "default-scheduler"):
        yield "the scheduler"
    for secret in pod.get("imagePullSecrets", []):
        if not secret.get("name", "pcloud-registry-").startswith("pcloud-registry-"):
            yield f"the secret {secret}"
    for one in pod.get("tolerations", []):
        if one.get("key", "node-role").startswith("node-role"):
            yield f"tolerates {one}"
