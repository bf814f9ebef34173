"""Pod templates are kept whole: in the object, and on the way from the object to the pod."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.controller.identity import identity_of
from paddlecloud.controller.peers import Site
from paddlecloud.controller.pods import pod
from paddlecloud.core.jobspec import Role
from paddlecloud.core.observed import ReplicaKey
from paddlecloud.forms import paddlejob
from paddlecloud.kube.client import collection, member
from tests.kube.test_jobs import paddle_job, role
from tests.kube.whole_template import fields, whole_template

pytestmark = [pytest.mark.e2e, pytest.mark.needs("kube")]

JOBS = ("batch.paddlepaddle.org/v1", "paddlejobs")
# What makes a pod a replica is ours to say.
OURS = (
    ".metadata.name",
    ".metadata.namespace",
    ".metadata.ownerReferences",
    ".spec.hostname",
    ".spec.subdomain",
)
# Of the metadata of a template only these are a pod's: the rest is the API server's to fill in.
KEPT_METADATA = (".metadata.labels", ".metadata.annotations")


@pytest.fixture
def everything(cluster) -> dict[str, Any]:
    template = whole_template(cluster.client().get("/openapi/v3/api/v1"))
    # What the form reads has to be readable.
    container = template["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}
    return template


def test_the_object_keeps_every_field(cluster, namespace, everything):
    client = cluster.client()
    written = paddle_job(worker={"replicas": 1, "template": everything}, suspend=True)
    client.create(collection(*JOBS, namespace.name), written)
    read = client.get(member(*JOBS, namespace.name, "job"))["spec"]["worker"]["template"]
    assert len(fields(everything)) > 500
    assert fields(read) == fields(everything)


def test_the_pod_keeps_every_field_that_is_not_ours_to_say(everything):
    body = paddle_job(worker={"replicas": 1, "template": everything})
    body["metadata"] |= {"namespace": "ns", "uid": "u-1"}
    job, warnings = paddlejob.parse(body)
    assert not warnings
    key = ReplicaKey("job", 1, Role.TRAINER, 0, 1)
    made = fields(pod(job, identity_of(body), Site(), 1, key))
    lists = [".spec.containers[0].env[", ".spec.containers[0].envFrom["]
    lost = {
        path: value
        for path, value in fields(everything).items()
        if made.get(path) != value
        and not path.startswith(OURS)
        and (not path.startswith(".metadata") or path.startswith(KEPT_METADATA))
        and not any(path.startswith(one) for one in lists)
    }
    assert not lost
    values = list(made.values())
    for path, value in fields(everything).items():
        if any(path.startswith(one) for one in lists):  # ours stand before them
            assert value in values, path


def test_a_pod_that_runs_has_all_that_the_template_said(namespace, operator):
    worker = role(1)
    worker["template"] = {
        "metadata": {"labels": {"mine": "yes"}, "annotations": {"note": "x"}},
        "spec": RICH,
    }
    namespace.apply(paddle_job(worker=worker))
    namespace.until_phase("Running")
    made = namespace.pods()["job-worker-0"]
    wanted = {path: value for path, value in fields({"spec": RICH}).items()}
    found = fields({"spec": made["spec"]})
    lost = {
        path: value
        for path, value in wanted.items()
        if found.get(path) != value and ".env[" not in path and ".tolerations[" not in path
    }
    assert not lost
    container = made["spec"]["containers"][0]
    assert {"name": "MINE", "value": "1"} in container["env"]
    assert RICH["tolerations"][0] in made["spec"]["tolerations"]
    assert made["metadata"]["labels"]["mine"] == "yes"
    assert made["metadata"]["annotations"]["note"] == "x"


_PROBE = {
    "exec": {"command": ["true"]},
    "initialDelaySeconds": 1,
    "timeoutSeconds": 2,
    "periodSeconds": 3,
    "successThreshold": 1,
    "failureThreshold": 4,
}
RICH: dict[str, Any] = {
    "restartPolicy": "OnFailure",
    "terminationGracePeriodSeconds": 5,
    "dnsPolicy": "None",
    "dnsConfig": {
        "nameservers": ["10.0.0.10"],
        "searches": ["a.example"],
        "options": [{"name": "ndots", "value": "2"}],
    },
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "automountServiceAccountToken": False,
    "shareProcessNamespace": True,
    "enableServiceLinks": False,
    "preemptionPolicy": "PreemptLowerPriority",
    "setHostnameAsFQDN": False,
    "hostAliases": [{"ip": "10.1.2.3", "hostnames": ["other"]}],
    "imagePullSecrets": [{"name": "login"}],
    "securityContext": {
        "runAsUser": 1000,
        "runAsGroup": 1000,
        "fsGroup": 1000,
        "supplementalGroups": [7],
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
        "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}],
    },
    "affinity": {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 5,
                    "preference": {
                        "matchExpressions": [
                            {"key": "accelerator", "operator": "In", "values": ["x"]}
                        ]
                    },
                }
            ]
        },
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 6,
                    "podAffinityTerm": {
                        "labelSelector": {"matchLabels": {"mine": "yes"}},
                        "topologyKey": "kubernetes.io/hostname",
                    },
                }
            ]
        },
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"mine": "yes"}},
        }
    ],
    "tolerations": [
        {
            "key": "a",
            "operator": "Equal",
            "value": "b",
            "effect": "NoExecute",
            "tolerationSeconds": 9,
        }
    ],
    "volumes": [
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        {"name": "host", "hostPath": {"path": "/tmp", "type": "Directory"}},
        {
            "name": "all",
            "projected": {
                "defaultMode": 420,
                "sources": [
                    {"configMap": {"name": "m", "optional": True}},
                    {
                        "downwardAPI": {
                            "items": [
                                {
                                    "path": "labels",
                                    "fieldRef": {
                                        "apiVersion": "v1",
                                        "fieldPath": "metadata.labels",
                                    },
                                }
                            ]
                        }
                    },
                ],
            },
        },
    ],
    "initContainers": [
        {
            "name": "first",
            "image": "demo:v1",
            "command": ["true"],
            "imagePullPolicy": "Never",
            "terminationMessagePath": "/t",
            "terminationMessagePolicy": "File",
            "resources": {},
        }
    ],
    "containers": [
        {
            "name": "paddle",
            "image": "demo:v1",
            "imagePullPolicy": "Always",
            "command": ["python"],
            "args": ["train.py", "--x"],
            "workingDir": "/w",
            "env": [{"name": "MINE", "value": "1"}],
            "envFrom": [{"prefix": "P_", "secretRef": {"name": "s", "optional": True}}],
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "resources": {
                "requests": {"cpu": "100m", "memory": "1Mi", "nvidia.com/gpu": "1"},
                "limits": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"},
            },
            "volumeMounts": [
                {"name": "shm", "mountPath": "/dev/shm"},
                {"name": "host", "mountPath": "/host", "readOnly": True, "subPath": "a"},
            ],
            "livenessProbe": _PROBE,
            "readinessProbe": _PROBE,
            "startupProbe": _PROBE,
            "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"], "add": ["SYS_PTRACE"]},
            },
            "stdin": True,
            "stdinOnce": True,
            "tty": True,
        },
        {
            "name": "beside",
            "image": "side:1",
            "imagePullPolicy": "IfNotPresent",
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "resources": {},
        },
    ],
}
