"""Custom resources sent through the server: what they mean, and what of them is refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from paddlecloud.core.errors import InvalidInput
from paddlecloud.core.jobspec import JobSpec, Mode, Role
from paddlecloud.forms import tenant_objects
from tests.unit.forms.test_pod_allowance import GOOD, HOSTILE, _with

TRAINING: dict[str, Any] = {
    "apiVersion": "paddlepaddle.org/v1",
    "kind": "TrainingJob",
    "metadata": {"name": "fit"},
    "spec": {
        "image": "hub.example.com/fit:1",
        "volumes": [{"name": "data", "emptyDir": {}}],
        "VolumeMounts": [{"name": "data", "mountPath": "/data"}],
        "trainer": {"entrypoint": "python train.py", "min-instance": 2, "max-instance": 2},
        "pserver": {"min-instance": 1, "max-instance": 1},
    },
}


def _paddle_job(template: dict[str, Any] = GOOD, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "wide", **metadata},
        "spec": {"worker": {"replicas": 2, "template": template}},
    }


def _changed(body: dict[str, Any], *path: str, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(body)
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return changed


def _faults(body: dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        tenant_objects.parse(body)
    return [fault.field for fault in refused.value.faults]


def test_tells_an_object_from_a_form() -> None:
    assert tenant_objects.is_object(TRAINING)
    assert not tenant_objects.is_object({"name": "x", "entry": "y"})
    assert not tenant_objects.is_object([])


def test_reads_a_paddle_job_with_its_templates() -> None:
    labelled = _paddle_job(labels={"team": "ads"}, creationTimestamp=None, uid="x")
    spec: JobSpec = tenant_objects.parse(labelled)
    assert (spec.name, spec.mode, spec.trainers.replicas) == ("wide", Mode.COLLECTIVE, 2)
    assert (spec.package, spec.labels) == ("", {"team": "ads"})
    assert spec.registry == "pcloud-registry-hub"
    wanted = copy.deepcopy(GOOD)
    del wanted["spec"]["imagePullSecrets"]  # the job names it
    assert spec.trainers.template == wanted


def test_reads_a_training_job() -> None:
    spec = tenant_objects.parse(TRAINING)
    assert (spec.name, spec.mode, spec.entry) == ("fit", Mode.PS, "python train.py")
    server = spec.role(Role.PSERVER)
    assert server is not None
    assert server.template is not None
    assert server.template["spec"]["volumes"] == [{"name": "data", "emptyDir": {}}]


@pytest.mark.parametrize(("path", "value", "field"), HOSTILE, ids=[row[2] for row in HOSTILE])
def test_refuses_a_hostile_template_by_its_path(
    path: tuple[Any, ...], value: Any, field: str
) -> None:
    found = _faults(_paddle_job(_with(path, value)))
    assert all(one.startswith("spec.worker.template") for one in found)
    assert field.removeprefix("template.") in found[0]


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (_paddle_job(namespace="kube-system"), ["metadata.namespace"]),
        (_paddle_job(ownerReferences=[{}]), ["metadata.ownerReferences"]),
        (_paddle_job(finalizers=["x"]), ["metadata.finalizers"]),
        (
            _paddle_job(labels={"paddlepaddle.org/job-id": "job-1"}),
            ["metadata.labels[paddlepaddle.org/job-id]"],
        ),
        (
            _paddle_job(annotations={"paddlepaddle.org/account": "bob"}),
            ["metadata.annotations[paddlepaddle.org/account]"],
        ),
        (_changed(_paddle_job(), "kind", value="Pod"), ["kind"]),
        (_changed(_paddle_job(), "apiVersion", value="v1"), ["apiVersion"]),
        (_changed(_paddle_job(), "spec", "intranet", value="Host"), ["spec.intranet"]),
        (_changed(_paddle_job(), "spec", "worker", "replicas", value=0), ["spec.worker.replicas"]),
        (_changed(TRAINING, "spec", "host_network", value=True), ["spec.host_network"]),
        (_changed(TRAINING, "spec", "port", value=7170), ["spec.port"]),
        (_changed(TRAINING, "spec", "ports_num", value=2), ["spec.ports_num"]),
        (
            _changed(TRAINING, "spec", "ports_num_for_sparse", value=2),
            ["spec.ports_num_for_sparse"],
        ),
        (
            _changed(TRAINING, "spec", "volumes", value=[{"name": "d", "hostPath": {"path": "/"}}]),
            ["spec.volumes[0].hostPath", "spec.VolumeMounts[0]"],
        ),
        (
            _changed(
                TRAINING,
                "spec",
                "VolumeMounts",
                value=[{"name": "data", "mountPath": "/d", "subPath": "../.."}],
            ),
            ["spec.VolumeMounts[0].subPath"],
        ),
    ],
)
def test_refuses_what_is_not_the_tenants_to_say(body: dict[str, Any], fields: list[str]) -> None:
    assert _faults(body) == fields


def test_says_what_is_wrong_around_and_inside_at_once() -> None:
    body = _changed(_paddle_job(namespace="x"), "spec", "worker", "replicas", value="many")
    assert _faults(body) == ["metadata.namespace", "spec.worker.replicas"]
