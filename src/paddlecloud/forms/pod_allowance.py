"""What of a pod template a tenant may say through the server: an allow-list, pure.

`allow(template, where)` gives back a template that holds only what is in the table below, and a
fault for everything else, by its path. What is not known is refused, so a field that a later
Kubernetes adds is refused until somebody has thought about it. Null is the same as left out.

Nothing of the node (its files, network, processes, devices), no service account and its token, no
secret, no right beyond those of a plain container, no name or mark that our own programs or those
of the cluster act upon. Jobs made with kubectl do not pass here: what their owner may do is said by
the cluster's own rules, and by the Pod Security level of the namespace (docs/guides/kubernetes.md).
"""

from __future__ import annotations

import re
from typing import Any

from paddlecloud.core.errors import Fault
from paddlecloud.forms.allow_list import (
    NOTHING,
    Refuse,
    choice,
    fields,
    flag,
    listed,
    only,
    pairs,
    path,
    quantity,
    text,
    whole,
)
from paddlecloud.forms.registries import PREFIX as PULL_SECRET_PREFIX

Json = dict[str, Any]

# Volumes of these names are added for a job after it has passed here.
OUR_VOLUMES = "paddlecloud"
RESERVED_KEYS = ("paddle-", "paddlecloud-", "pcloud-")

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_KEY = re.compile(
    r"(?:[a-z0-9]([a-z0-9-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
_QUALIFIED = re.compile(r"(?:[a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_FIELD_PATH = re.compile(r"(metadata|spec|status)\.[A-Za-z.]+(\['[A-Za-z0-9./_-]+'\])?")


# --- keys --------------------------------------------------------------------------------------


def _reserved(key: str) -> bool:
    return key.startswith(RESERVED_KEYS)


def check_mark(key: str) -> str:
    """A label or annotation of one's own. What has a domain before the slash belongs to a program
    that acts upon it."""
    if _reserved(key) or not _KEY.fullmatch(key):
        return "is not a mark of your own: no domain before a slash, and not paddle-…"
    return ""


def _check_label(key: str) -> str:
    return "" if key.startswith("app.kubernetes.io/") and len(key) < 80 else check_mark(key)


def _check_resource(key: str) -> str:
    return "" if _QUALIFIED.fullmatch(key) else "is no name of a resource"


def _port(value: Any, where: str, refuse: Refuse) -> Any:
    """A number, or the name of a port of the container."""
    if isinstance(value, str):
        return text(re.compile(r"[a-z0-9-]{1,15}"))(value, where, refuse)
    return whole(1, 65535)(value, where, refuse)


_name = text(_NAME, "is no name")
_any_text = text()
_count = whole(0, 2**31 - 1)

# --- containers --------------------------------------------------------------------------------

_config_key = fields({"name": _name, "key": _any_text, "optional": flag})
_field_ref = fields({"fieldPath": text(_FIELD_PATH), "apiVersion": choice("v1")})
_resource_ref = fields(
    {"containerName": _name, "resource": text(re.compile(r"[a-z.-]+")), "divisor": quantity}
)
_source = {
    "configMapKeyRef": _config_key,
    "fieldRef": _field_ref,
    "resourceFieldRef": _resource_ref,
}
_env = fields({"name": _any_text, "value": _any_text, "valueFrom": fields(_source)})
_env_from = fields({"prefix": _any_text, "configMapRef": fields({"name": _name, "optional": flag})})
_exec = fields({"command": listed(_any_text)})
# Without a host of their own: the kubelet asks, from the node's network.
_http = fields({"path": _any_text, "port": _port, "scheme": choice("HTTP", "HTTPS")})
_probe = fields(
    {
        "exec": _exec,
        "httpGet": _http,
        "tcpSocket": fields({"port": _port}),
        "initialDelaySeconds": _count,
        "periodSeconds": _count,
        "timeoutSeconds": _count,
        "successThreshold": _count,
        "failureThreshold": _count,
        "terminationGracePeriodSeconds": _count,
    }
)
_handler = fields({"exec": _exec, "sleep": fields({"seconds": _count})})
_seccomp = fields({"type": choice("RuntimeDefault")})
_amounts = pairs(_check_resource, quantity)
_container = fields(
    {
        "name": _name,
        "image": _any_text,
        "imagePullPolicy": choice("Always", "IfNotPresent", "Never"),
        "command": listed(_any_text),
        "args": listed(_any_text),
        "workingDir": path(is_absolute=True),
        "env": listed(_env),
        "envFrom": listed(_env_from),
        "resources": fields({"limits": _amounts, "requests": _amounts}),
        "ports": listed(
            fields(
                {
                    "name": text(re.compile(r"[a-z0-9-]{1,15}")),
                    "containerPort": whole(1, 65535),
                    "protocol": choice("TCP", "UDP", "SCTP"),
                }
            )
        ),
        "volumeMounts": listed(
            fields(
                {
                    "name": _name,
                    "mountPath": path(is_absolute=True),
                    "readOnly": flag,
                    "subPath": path(is_absolute=False),
                }
            )
        ),
        "livenessProbe": _probe,
        "readinessProbe": _probe,
        "startupProbe": _probe,
        "lifecycle": fields({"postStart": _handler, "preStop": _handler}),
        "terminationMessagePath": path(is_absolute=True),
        "terminationMessagePolicy": choice("File", "FallbackToLogsOnError"),
        "stdin": flag,
        "stdinOnce": flag,
        "tty": flag,
        "securityContext": fields(
            {
                "runAsUser": _count,
                "runAsGroup": _count,
                "runAsNonRoot": flag,
                "readOnlyRootFilesystem": flag,
                "allowPrivilegeEscalation": only(False),
                "privileged": only(False),
                "capabilities": fields({"drop": listed(text(re.compile(r"[A-Z_]{1,40}")))}),
                "seccompProfile": _seccomp,
            }
        ),
    }
)

# --- pods --------------------------------------------------------------------------------------

_items = listed(
    fields({"key": _any_text, "path": path(is_absolute=False), "mode": whole(0, 0o777)})
)
_projected_field = fields(
    {
        "path": path(is_absolute=False),
        "fieldRef": _field_ref,
        "resourceFieldRef": _resource_ref,
        "mode": whole(0, 0o777),
    }
)
_volume = fields(
    {
        "name": _name,
        "emptyDir": fields({"medium": choice("", "Memory"), "sizeLimit": quantity}),
        "persistentVolumeClaim": fields({"claimName": _name, "readOnly": flag}),
        "configMap": fields(
            {"name": _name, "items": _items, "defaultMode": whole(0, 0o777), "optional": flag}
        ),
        "downwardAPI": fields({"items": listed(_projected_field), "defaultMode": whole(0, 0o777)}),
    }
)
_matching = listed(
    fields(
        {
            "key": text(_QUALIFIED),
            "operator": choice("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
            "values": listed(text(_LABEL_VALUE)),
        }
    )
)
_term = fields({"matchExpressions": _matching})
_node_affinity = fields(
    {
        "requiredDuringSchedulingIgnoredDuringExecution": fields(
            {"nodeSelectorTerms": listed(_term)}
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": listed(
            fields({"weight": whole(1, 100), "preference": _term})
        ),
    }
)
# Not those of the control plane, and never all at once: a key must be said.
_toleration_key = text(
    re.compile(rf"(?!node-role\.kubernetes\.io/){_QUALIFIED.pattern}"), "may not be tolerated"
)
_toleration = fields(
    {
        "key": _toleration_key,
        "operator": choice("Equal", "Exists"),
        "value": text(_LABEL_VALUE),
        "effect": choice("NoSchedule", "PreferNoSchedule", "NoExecute"),
        "tolerationSeconds": _count,
    }
)
_pull_secret = fields(
    {
        "name": text(
            re.compile(rf"{PULL_SECRET_PREFIX}{_NAME.pattern}"), "is none of your registries"
        )
    }
)
_pod = fields(
    {
        "containers": listed(_container),
        "initContainers": listed(_container),
        "volumes": listed(_volume),
        "restartPolicy": choice("Never", "OnFailure", "Always"),
        "terminationGracePeriodSeconds": whole(0, 86400),
        "activeDeadlineSeconds": whole(1, 2**31 - 1),
        "nodeSelector": pairs(_check_resource, text(_LABEL_VALUE)),
        "affinity": fields({"nodeAffinity": _node_affinity}),
        "tolerations": listed(_toleration),
        "schedulerName": choice("default-scheduler", "volcano"),
        "imagePullSecrets": listed(_pull_secret),
        "dnsPolicy": choice("ClusterFirst", "Default"),
        "enableServiceLinks": flag,
        "automountServiceAccountToken": only(False),
        "hostNetwork": only(False),
        "hostPID": only(False),
        "hostIPC": only(False),
        "shareProcessNamespace": flag,
        "securityContext": fields(
            {
                "runAsUser": _count,
                "runAsGroup": _count,
                "runAsNonRoot": flag,
                "fsGroup": _count,
                "fsGroupChangePolicy": choice("OnRootMismatch", "Always"),
                "seccompProfile": _seccomp,
            }
        ),
    }
)
_template = fields(
    {
        "metadata": fields(
            {
                "labels": pairs(_check_label, text(_LABEL_VALUE)),
                "annotations": pairs(check_mark, _any_text),
            }
        ),
        "spec": _pod,
    }
)


def allow(template: object, where: str = "template") -> tuple[Json, tuple[Fault, ...]]:
    """What may stay of it, and everything that may not, each by its path."""
    faults: list[Fault] = []

    def refuse(place: str, problem: str) -> None:
        faults.append(Fault(place, problem))

    kept = _template(template, where, refuse)
    if kept is NOTHING:
        return {}, tuple(faults)
    pod = kept.get("spec", {})
    place = f"{where}.spec"
    good, named = _declared_volumes(pod, place, refuse, faults)
    for kind in ("containers", "initContainers"):
        for number, container in enumerate(pod.get(kind, ())):
            _keep_mounts(container, good, named, f"{place}.{kind}[{number}]", refuse)
    if "tolerations" in pod:
        pod["tolerations"] = _with_a_key(pod["tolerations"], f"{place}.tolerations", refuse)
    return kept, tuple(faults)


def _declared_volumes(
    pod: Json, where: str, refuse: Refuse, faults: list[Fault]
) -> tuple[set[str], set[str]]:
    """(names of volumes that may be mounted, those that were written); the others are dropped."""
    kept, named = [], set[str]()
    for number, volume in enumerate(pod.get("volumes", ())):
        place, name = f"{where}.volumes[{number}]", volume.get("name", "")
        named.add(name)
        if not name or name.startswith(OUR_VOLUMES):
            refuse(f"{place}.name", f"must be a name that does not begin with {OUR_VOLUMES}")
        elif len(volume) == 2:
            kept.append(volume)
        elif not any(fault.field.startswith(f"{place}.") for fault in faults):
            refuse(place, "must be one of emptyDir, persistentVolumeClaim, configMap, downwardAPI")
    if "volumes" in pod:
        pod["volumes"] = kept
    return {volume["name"] for volume in kept}, named


def _keep_mounts(
    container: Json, good: set[str], named: set[str], where: str, refuse: Refuse
) -> None:
    """A mount of a volume that is not in the template could be of one that is added later."""
    kept = []
    for number, mount in enumerate(container.get("volumeMounts", ())):
        if mount.get("name") in good and "mountPath" in mount:
            kept.append(mount)
        elif mount.get("name") not in named - good:  # that volume has a fault of its own
            place = f"{where}.volumeMounts[{number}]"
            refuse(place, "must name a volume of this template and a mountPath")
    if "volumeMounts" in container:
        container["volumeMounts"] = kept


def _with_a_key(tolerations: list[Json], where: str, refuse: Refuse) -> list[Json]:
    for number, one in enumerate(tolerations):
        if "key" not in one:
            refuse(f"{where}[{number}].key", "is missing: what is tolerated?")
    return [one for one in tolerations if "key" in one]
