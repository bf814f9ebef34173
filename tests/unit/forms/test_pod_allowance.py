"""The allow-list of pod templates: what stays, and that all else is refused by name."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.forms.pod_allowance import allow
from tests.unit.forms.strict_pods import NEVER, VOLUME_KINDS, dangers

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "paddlejob"
GOOD: dict[str, Any] = {
    "metadata": {
        "labels": {"team": "ads", "app.kubernetes.io/name": "x"},
        "annotations": {"a": "b"},
    },
    "spec": {
        "containers": [
            {
                "name": "trainer",
                "image": "hub.example.com/train:1",
                "command": ["python", "train.py"],
                "args": ["--epochs", "3"],
                "workingDir": "/work",
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                ],
                "envFrom": [{"configMapRef": {"name": "settings"}}],
                "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "10Gi"}},
                "ports": [{"containerPort": 2379, "name": "client"}],
                "volumeMounts": [
                    {"name": "shm", "mountPath": "/dev/shm"},
                    {"name": "data", "mountPath": "/data", "subPath": "train/v1", "readOnly": True},
                ],
                "readinessProbe": {"tcpSocket": {"port": 2379}, "periodSeconds": 3},
                "securityContext": {
                    "runAsUser": 1000,
                    "privileged": False,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        ],
        "nodeSelector": {"gpu": "a100"},
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "schedulerName": "volcano",
        "imagePullSecrets": [{"name": "pcloud-registry-hub"}],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 30,
        "hostNetwork": False,
    },
}
CONTAINER = ("spec", "containers", 0)


def _with(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    template = copy.deepcopy(GOOD)
    place: Any = template
    for step in path[:-1]:
        place = place[step] if isinstance(step, int) else place.setdefault(step, {})
    if isinstance(place, list):
        place.append(value)
    else:
        place[path[-1]] = value
    return template


def test_keeps_an_ordinary_template_as_it_is() -> None:
    assert allow(GOOD) == (GOOD, ())
    assert dangers(GOOD) == []


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_keeps_the_templates_of_the_examples(path: Path) -> None:
    for body in yaml.safe_load_all(path.read_text()):
        for role in (body or {}).get("spec", {}).values():
            if isinstance(role, dict) and "template" in role:
                kept, faults = allow(role["template"])
                assert (kept["spec"], faults) == (role["template"]["spec"], ())


HOSTILE = [
    (("spec", "volumes", 9), {"name": "n", "hostPath": {"path": "/"}}, "spec.volumes[2].hostPath"),
    (("spec", "volumes", 9), {"name": "n", "secret": {"secretName": "x"}}, "volumes[2].secret"),
    (("spec", "volumes", 9), {"name": "n", "projected": {"sources": []}}, "volumes[2].projected"),
    (("spec", "volumes", 9), {"name": "n", "csi": {"driver": "x"}}, "volumes[2].csi"),
    (("spec", "volumes", 9), {"name": "n", "nfs": {"server": "s", "path": "/"}}, "volumes[2].nfs"),
    (("spec", "volumes", 9), {"name": "n", "ephemeral": {}}, "volumes[2].ephemeral"),
    (("spec", "volumes", 9), {"name": "n"}, "spec.volumes[2]"),
    (("spec", "volumes", 9), {"name": "paddlecloud-home", "emptyDir": {}}, "spec.volumes[2].name"),
    (("spec", "hostNetwork"), True, "spec.hostNetwork"),
    (("spec", "hostPID"), True, "spec.hostPID"),
    (("spec", "hostIPC"), True, "spec.hostIPC"),
    (("spec", "hostUsers"), True, "spec.hostUsers"),
    (("spec", "hostAliases"), [{"ip": "10.0.0.1"}], "spec.hostAliases"),
    (("spec", "serviceAccountName"), "admin", "spec.serviceAccountName"),
    (("spec", "serviceAccount"), "admin", "spec.serviceAccount"),
    (("spec", "automountServiceAccountToken"), True, "spec.automountServiceAccountToken"),
    (("spec", "nodeName"), "master", "spec.nodeName"),
    (("spec", "priorityClassName"), "system-node-critical", "spec.priorityClassName"),
    (("spec", "priority"), 2000001000, "spec.priority"),
    (("spec", "schedulerName"), "mine", "spec.schedulerName"),
    (("spec", "runtimeClassName"), "kata", "spec.runtimeClassName"),
    (("spec", "dnsConfig"), {"nameservers": ["6.6.6.6"]}, "spec.dnsConfig"),
    (("spec", "ephemeralContainers"), [], "spec.ephemeralContainers"),
    (("spec", "affinity"), {"podAffinity": {}}, "spec.affinity.podAffinity"),
    (("spec", "tolerations", 9), {"operator": "Exists"}, "spec.tolerations[1].key"),
    (
        ("spec", "tolerations", 9),
        {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"},
        "spec.tolerations[1].key",
    ),
    (("spec", "imagePullSecrets", 9), {"name": "other"}, "spec.imagePullSecrets[1].name"),
    (("spec", "securityContext", "sysctls"), [], "spec.securityContext.sysctls"),
    (("spec", "securityContext", "supplementalGroups"), [0], "securityContext.supplementalGroups"),
    (
        ("spec", "securityContext", "seccompProfile"),
        {"type": "Unconfined"},
        "spec.securityContext.seccompProfile.type",
    ),
    (
        (*CONTAINER, "securityContext", "privileged"),
        True,
        "containers[0].securityContext.privileged",
    ),
    (
        (*CONTAINER, "securityContext", "allowPrivilegeEscalation"),
        True,
        "securityContext.allowPrivilegeEscalation",
    ),
    (
        (*CONTAINER, "securityContext", "capabilities"),
        {"add": ["SYS_ADMIN"]},
        "securityContext.capabilities.add",
    ),
    ((*CONTAINER, "securityContext", "procMount"), "Unmasked", "securityContext.procMount"),
    ((*CONTAINER, "ports", 9), {"containerPort": 1, "hostPort": 22}, "ports[1].hostPort"),
    ((*CONTAINER, "volumeDevices"), [{"name": "n", "devicePath": "/dev/sda"}], "volumeDevices"),
    (
        (*CONTAINER, "volumeMounts", 9),
        {"name": "data", "mountPath": "/x", "subPath": "../../etc"},
        "volumeMounts[2].subPath",
    ),
    (
        (*CONTAINER, "volumeMounts", 9),
        {"name": "data", "mountPath": "/x", "subPath": "/etc"},
        "volumeMounts[2].subPath",
    ),
    (
        (*CONTAINER, "volumeMounts", 9),
        {"name": "data", "mountPath": "/x", "subPathExpr": "$(HOME)"},
        "volumeMounts[2].subPathExpr",
    ),
    (
        (*CONTAINER, "volumeMounts", 9),
        {"name": "data", "mountPath": "/x", "mountPropagation": "Bidirectional"},
        "volumeMounts[2].mountPropagation",
    ),
    # Added later, with everybody's files in it.
    (
        (*CONTAINER, "volumeMounts", 9),
        {"name": "paddlecloud-home", "mountPath": "/x"},
        "containers[0].volumeMounts[2]",
    ),
    (
        (*CONTAINER, "env", 9),
        {"name": "S", "valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}},
        "env[2].valueFrom.secretKeyRef",
    ),
    ((*CONTAINER, "envFrom", 9), {"secretRef": {"name": "x"}}, "envFrom[1].secretRef"),
    (
        (*CONTAINER, "livenessProbe"),
        {"httpGet": {"host": "10.0.0.1", "port": 80}},
        "livenessProbe.httpGet.host",
    ),
    (
        ("spec", "initContainers"),
        [{"name": "i", "image": "x", "securityContext": {"privileged": True}}],
        "initContainers[0].securityContext.privileged",
    ),
    (("metadata", "namespace"), "kube-system", "metadata.namespace"),
    (("metadata", "name"), "x", "metadata.name"),
    (("metadata", "ownerReferences"), [{"uid": "x"}], "metadata.ownerReferences"),
    (("metadata", "finalizers"), ["paddlepaddle.org/log"], "metadata.finalizers"),
    (("metadata", "labels", "paddlepaddle.org/job"), "x", "labels[paddlepaddle.org/job]"),
    (("metadata", "labels", "paddle-res-name"), "x", "labels[paddle-res-name]"),
    (("metadata", "annotations", "paddlepaddle.org/stopped"), "x", "[paddlepaddle.org/stopped]"),
    (("metadata", "annotations", "sidecar.istio.io/inject"), "x", "[sidecar.istio.io/inject]"),
    (("spec", "somethingNew"), 1, "spec.somethingNew"),
    (("status",), {}, "template.status"),
]


@pytest.mark.parametrize(("path", "value", "field"), HOSTILE, ids=[row[2] for row in HOSTILE])
def test_refuses_by_name_and_leaves_out(path: tuple[Any, ...], value: Any, field: str) -> None:
    template = _with(path, value)
    before = copy.deepcopy(template)
    kept, faults = allow(template)
    assert [fault.field for fault in faults] == [
        fault.field for fault in faults if field in fault.field
    ]
    assert faults
    assert dangers(kept) == []
    assert template == before  # it is the caller's


def test_null_is_left_out() -> None:
    kept, faults = allow({"metadata": {"creationTimestamp": None}, "spec": {"hostPID": None}})
    assert (kept, [fault.field for fault in faults]) == (
        {"metadata": {}, "spec": {}},
        ["template.metadata.creationTimestamp"],
    )


@pytest.mark.parametrize("value", [None, [], "x", 7, {"spec": []}, {"spec": {"containers": {}}}])
def test_refuses_what_has_another_shape(value: Any) -> None:
    kept, faults = allow(value)
    assert faults
    assert dangers(kept) == []


# --- whatever goes in ---------------------------------------------------------------------------

_WORDS = sorted(
    NEVER
    | VOLUME_KINDS
    | set(
        "metadata spec labels annotations name image command env value valueFrom volumeMounts "
        "mountPath subPath volumes containers initContainers securityContext privileged "
        "capabilities add drop allowPrivilegeEscalation automountServiceAccountToken tolerations "
        "key operator ports containerPort claimName readinessProbe httpGet exec path port "
        "imagePullSecrets schedulerName nodeSelector resources limits lifecycle preStop".split()
    )
)
_TEXTS = st.sampled_from(
    [
        *("", "x", "data", "..", "../x", "/", "/etc", "a/../b", "paddlecloud-home", "volcano"),
        *("paddlepaddle.org/job", "paddle-res-name", "Exists", "pcloud-registry-a", "10Gi"),
        *("$(A)", "a\0b", "a:b"),
    ]
)
_LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-1, 70000), _TEXTS)
_ANY = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(_WORDS), _TEXTS), inner, max_size=5),
    ),
    max_leaves=25,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key, item in value.items():
            found += _places(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            found += _places(item, (*path, number))
    return found


@st.composite
def _spoilt(draw: st.DrawFn) -> Any:
    """A good template with something else put into it, here and there."""
    template: Any = copy.deepcopy(GOOD)
    for _ in range(draw(st.integers(1, 4))):
        path = draw(st.sampled_from(_places(template)))
        place = template
        for step in path:
            place = place[step]
        if isinstance(place, dict):
            place[draw(st.one_of(st.sampled_from(_WORDS), _TEXTS))] = draw(_ANY)
        elif isinstance(place, list):
            place.append(draw(_ANY))
    return template


@settings(max_examples=300, deadline=None)
@given(st.one_of(_spoilt(), _ANY))
def test_whatever_goes_in_nothing_dangerous_comes_out(template: Any) -> None:
    kept, faults = allow(template)
    assert dangers(kept) == []
    again, none = allow(kept)
    assert (again, none) == (kept, ()) or faults  # what stays is allowed
    assert again == kept
