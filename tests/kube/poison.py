"""Objects that are wrong in one place each.

`poisoned(body)` takes a whole example and gives, for every field in it and every poison, the
example with that field replaced: other types, nothing, negative, huge, empty, deeply nested.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]

DEEP: Any = "x"
for _ in range(60):
    DEEP = {"a": [DEEP]}

POISONS: dict[str, Any] = {
    "null": None,
    "text": "poison",
    "empty text": "",
    "number text": "7",
    "a number": 7,
    "negative": -1,
    "huge": 2**31 - 1,
    "more than 64 bits": 2**70,
    "a fraction": 1.5,
    "true": True,
    "empty list": [],
    "list": ["poison"],
    "list of null": [None],
    "empty object": {},
    "object": {"poison": "poison"},
    "deep": DEEP,
    "long": "é" * 20_000,
    "control": "a\x00b\n\x7f",
}


def paths(body: Any, here: Path = ()) -> Iterator[Path]:
    """Every field, the inner ones too."""
    if here:
        yield here
    if isinstance(body, dict):
        for key, value in body.items():
            yield from paths(value, (*here, key))
    elif isinstance(body, list):
        for index, value in enumerate(body):
            yield from paths(value, (*here, index))


def with_value(body: Any, path: Path, value: Any) -> Any:
    changed = copy.deepcopy(body)
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = copy.deepcopy(value)
    return changed


def poisoned(body: dict[str, Any], root: str = "spec") -> Iterator[tuple[str, dict[str, Any]]]:
    """(what is wrong, the object) for every field under `root` and every poison."""
    for path in [(root,), *((root, *path) for path in paths(body[root]))]:
        for word, value in POISONS.items():
            name = ".".join(map(str, path))
            yield f"{name}: {word}", with_value(body, path, value)


# --- whole examples ------------------------------------------------------------------------------


def _template() -> dict[str, Any]:
    return {
        "metadata": {
            "name": "n",
            "namespace": "elsewhere",
            "labels": {"a": "b"},
            "annotations": {"c": "d"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}],
            "finalizers": ["example.com/f"],
        },
        "spec": {
            "restartPolicy": "Never",
            "schedulerName": "default-scheduler",
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "hostNetwork": False,
            "dnsPolicy": "ClusterFirst",
            "terminationGracePeriodSeconds": 3,
            "activeDeadlineSeconds": 1000,
            "hostname": "h",
            "subdomain": "s",
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "volumes": [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}],
            "initContainers": [{"name": "i", "image": "i:1", "command": ["true"]}],
            "containers": [
                {
                    "name": "c",
                    "image": "i:1",
                    "command": ["python"],
                    "args": ["a.py"],
                    "env": [{"name": "A", "value": "1"}],
                    "envFrom": [{"configMapRef": {"name": "m", "optional": True}}],
                    "ports": [{"name": "p", "containerPort": 8000}],
                    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                    "resources": {"requests": {"cpu": "100m", "memory": "1Mi"}, "limits": {}},
                }
            ],
        },
    }


def whole_paddlejob(name: str = "job") -> dict[str, Any]:
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name},
        "spec": {
            "worker": {"replicas": 1, "requests": 1, "limits": 2, "template": _template()},
            "ps": {
                "replicas": 1,
                "template": {"spec": {"containers": [{"name": "c", "image": "i:1"}]}},
            },
            "heter": {
                "replicas": 1,
                "template": {"spec": {"containers": [{"name": "c", "image": "i:1"}]}},
            },
            "cleanPodPolicy": "Never",
            "intranet": "PodIP",
            "withGloo": 1,
            "elastic": 0,
            "suspend": False,
            "backoffLimit": 1,
            "restartExitCodes": [1, 2],
            "activeDeadlineSeconds": 100,
            "priority": "normal",
            "schedulingPolicy": {"minAvailable": 1, "queue": "q", "priorityClass": ""},
            "sampleSetRef": {"name": "claim", "mountPath": "/data"},
        },
    }


def whole_trainingjob(name: str = "job") -> dict[str, Any]:
    template = _template()
    return {
        "apiVersion": "paddlepaddle.org/v1",
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": {
            "image": "i:1",
            "host_network": False,
            "port": 7164,
            "ports_num": 1,
            "ports_num_for_sparse": 1,
            "fault_tolerant": True,
            "passes": 2,
            "volumes": [{"name": "w", "emptyDir": {}}],
            "VolumeMounts": [{"name": "w", "mountPath": "/w"}],
            "trainer": {
                "entrypoint": "python a.py",
                "workspace": "/w",
                "min-instance": 1,
                "max-instance": 2,
                "replicas": 1,
                "etcd-endpoint": "",
                "passes": 1,
                "resources": {"requests": {"cpu": "100m", "memory": "1Mi"}, "limits": {}},
            },
            "pserver": {
                "min-instance": 1,
                "max-instance": 1,
                "resources": {"requests": {"cpu": "100m"}},
                "replicaSpec": {"spec": {"template": template}},
            },
            "master": {"entrypoint": "true", "etcd-endpoint": "", "resources": {}},
            "cleanPodPolicy": "Never",
            "backoffLimit": 1,
            "priority": "normal",
            "schedulingPolicy": {"minAvailable": 1, "queue": "q"},
        },
    }


def whole_status() -> dict[str, Any]:
    """As an operator writes it; others may write it too."""
    return {
        "phase": "Running",
        "mode": "Collective",
        "reason": "r",
        "ready": "1/1",
        "replicas": 1,
        "selector": "a=b",
        "worker": {"running": 1},
        "startTime": "2026-11-16T18:00:00Z",
        "observedGeneration": 1,
        "restarts": 1,
        "failures": [
            {
                "role": "worker",
                "index": 0,
                "attempt": 1,
                "cause": "exited",
                "code": 1,
                "signal": 9,
                "message": "m",
                "node": "n",
                "startedAt": "2026-11-16T18:00:00Z",
                "endedAt": "2026-11-16T18:00:00Z",
            }
        ],
        "allocation": {"workers": 1, "revision": 1, "reason": "", "preemptions": 0},
        "conditions": [
            {
                "type": "Valid",
                "status": "True",
                "reason": "Understood",
                "message": "",
                "lastTransitionTime": "2026-11-16T18:00:00Z",
            }
        ],
    }
