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


# Where what stands in a pod: the words that mean something there.
_LEVELS: dict[tuple[Any, ...], tuple[str, ...]] = {
    ("metadata",): ("namespace", "ownerReferences", "finalizers", "generateName", "uid"),
    ("metadata", "labels"): ("paddlepaddle.org/job", "paddle-res-name", "a.b/c"),
    ("metadata", "annotations"): ("paddlepaddle.org/stopped", "sidecar.istio.io/inject"),
    ("spec",): (
        *("hostNetwork", "hostPID", "hostIPC", "hostUsers", "hostAliases", "nodeName", "hostname"),
        *("serviceAccountName", "serviceAccount", "automountServiceAccountToken", "dnsConfig"),
        *("priorityClassName", "priority", "runtimeClassName", "ephemeralContainers", "overhead"),
        *("schedulerName", "resourceClaims", "readinessGates", "topologySpreadConstraints"),
    ),
    ("spec", "securityContext"): ("sysctls", "supplementalGroups", "seLinuxOptions"),
    ("spec", "affinity"): ("podAffinity", "podAntiAffinity"),
    ("spec", "volumes", 0): ("hostPath", "secret", "projected", "csi", "nfs", "ephemeral", "iscsi"),
    ("spec", "tolerations", 0): ("key",),
    ("spec", "imagePullSecrets", 0): ("name",),
    CONTAINER: ("volumeDevices", "resizePolicy", "volumeMounts"),
    (*CONTAINER, "securityContext"): (
        *("privileged", "allowPrivilegeEscalation", "procMount", "capabilities"),
        *("seLinuxOptions", "appArmorProfile", "windowsOptions"),
    ),
    (*CONTAINER, "ports", 0): ("hostPort", "hostIP"),
    (*CONTAINER, "volumeMounts", 1): ("name", "subPath", "subPathExpr", "mountPropagation"),
    (*CONTAINER, "env", 1, "valueFrom"): ("secretKeyRef",),
    (*CONTAINER, "envFrom", 0): ("secretRef",),
    (*CONTAINER, "readinessProbe", "tcpSocket"): ("host", "port"),
}
_SPOTS = [(*path, key) for path, keys in _LEVELS.items() for key in keys]
_TELLING: Any = st.sampled_from(
    [
        *(True, 1, "x", "..", "../x", "/etc", "paddlecloud-home", "node-role.kubernetes.io/master"),
        *({"path": "/"}, {"name": "x", "key": "y"}, {"add": ["SYS_ADMIN"]}, ["x"]),
        [{"name": "paddlecloud-home", "mountPath": "/all"}],
    ]
)

_FITTING: dict[str, Any] = {
    "hostPath": {"path": "/"},
    "secret": {"secretName": "x"},
    "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]},
    "csi": {"driver": "x"},
    "nfs": {"server": "s", "path": "/"},
    "capabilities": {"add": ["SYS_ADMIN"]},
    "secretKeyRef": {"name": "x", "key": "y"},
    "secretRef": {"name": "x"},
    "hostPort": 22,
    "ownerReferences": [{"kind": "Node", "name": "n", "uid": "u"}],
    "finalizers": ["paddlepaddle.org/log"],
    "volumeMounts": [{"name": "paddlecloud-home", "mountPath": "/all"}],
    "subPath": "../../etc",
    "schedulerName": "mine",
    "supplementalGroups": [0],
}


@st.composite
def _spoilt(draw: st.DrawFn) -> Any:
    """A good template with something put where it would do harm, in one to four places, on init
    containers as well as on the others."""
    template: Any = copy.deepcopy(GOOD)
    spots = draw(st.lists(st.sampled_from(_SPOTS), min_size=1, max_size=4))
    for spot in sorted(spots, key=len, reverse=True):  # what is inside before what is around it
        place = template
        for step in spot[:-1]:
            place = place[step] if isinstance(step, int) else place.setdefault(step, {})
        if spot[1] == "volumes":
            del place[next(iter(place.keys() - {"name"}))]  # a volume is of one kind
        fitting = st.just(_FITTING.get(spot[-1], True))
        place[spot[-1]] = draw(st.one_of(fitting, _TELLING, _ANY))
    if draw(st.booleans()):
        template["spec"]["initContainers"] = template["spec"]["containers"]
    return template


def _check(template: Any) -> None:
    kept, _ = allow(template)
    assert dangers(kept) == []
    assert allow(kept)[0] == kept  # what stays is allowed


@settings(max_examples=400, deadline=None)
@given(_spoilt())
def test_whatever_harm_goes_in_nothing_dangerous_comes_out(template: Any) -> None:
    _check(template)


@settings(max_examples=100, deadline=None)
@given(_ANY)
def test_whatever_nonsense_goes_in_nothing_dangerous_comes_out(template: Any) -> None:
    _check(template)
