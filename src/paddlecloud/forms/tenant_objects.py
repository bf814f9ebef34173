"""`PaddleJob` and `TrainingJob` objects that come through the server: read, and held to the
allow-list.

`parse(body)` gives the spec such an object means, with pod templates that hold only what a tenant
may say (`pod_allowance`); it raises InvalidInput with every fault at once, by its path in the
object. What only `kubectl apply` can say (how pods reach each other, gangs, Paddle's own elastic
launcher) is refused by name rather than forgotten. Pure; the server calls it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from paddlecloud.core.contract import LEGACY_PORT
from paddlecloud.core.errors import Fault, InvalidInput
from paddlecloud.core.jobspec import JobSpec, RoleSpec
from paddlecloud.core.topology import PADDLEJOB_WORDS
from paddlecloud.forms import paddlejob, pod_allowance, trainingjob
from paddlecloud.forms.custom_resources import ClusterJob, Intranet

_FORMS: Mapping[str, Any] = {paddlejob.KIND: paddlejob, trainingjob.KIND: trainingjob}
# Written by an API server into what it gives out; a copy of such an object may be sent here.
_OF_THE_API_SERVER = (
    "creationTimestamp deletionTimestamp generation managedFields resourceVersion selfLink uid"
).split()
# The annotation of a spec that came as an object of this kind and is to be one again.
OBJECT_KIND = "object-kind"
_WITH_KUBECTL = "is for objects made with kubectl; jobs of the server do without it"


def is_object(body: object) -> bool:
    """Whether a submit body is a custom resource, not a form."""
    return isinstance(body, Mapping) and ("kind" in body or "apiVersion" in body)


def parse(body: Mapping[str, Any]) -> JobSpec:
    form = _FORMS.get(str(body.get("kind")))
    if form is None:
        problem = f"must be one of {', '.join(_FORMS)}"
        raise InvalidInput(faults=[Fault("kind", problem, str(body.get("kind"))[:60])])
    faults = _check_frame(body, f"{form.GROUP}/{form.VERSION}")
    job: ClusterJob
    try:
        job, _ = form.parse(body)
    except InvalidInput as error:
        raise InvalidInput(faults=[*faults, *error.faults]) from None
    faults += _check_extras(job, is_training_job=form is trainingjob)
    roles = []
    for role in job.spec.roles:
        kept, found = _allowed(role, is_training_job=form is trainingjob)
        roles.append(kept)
        faults += [fault for fault in found if fault not in faults]
    registry = _take_registry(roles, faults)
    if faults:
        raise InvalidInput(faults=faults)
    metadata = body.get("metadata") or {}
    notes = dict(metadata.get("annotations") or {})
    return replace(
        job.spec,
        roles=tuple(roles),
        package="",  # the templates say where they work
        registry=registry,
        labels=dict(metadata.get("labels") or {}),
        annotations={**notes, **kind_note(body)},
    )


def kind_note(body: Mapping[str, Any]) -> dict[str, str]:
    """What has a spec rendered as the kind of object it came as: a PaddleJob is, unasked."""
    return {OBJECT_KIND: trainingjob.KIND} if body.get("kind") == trainingjob.KIND else {}


def _check_frame(body: Mapping[str, Any], api_version: str) -> list[Fault]:
    """What stands around the spec: whose it is, is for the server to say."""
    faults = []
    if body.get("apiVersion", api_version) != api_version:
        shown = str(body["apiVersion"])[:60]
        faults.append(Fault("apiVersion", f"must be {api_version}", shown))
    for key in body:
        if key not in ("apiVersion", "kind", "metadata", "spec", "status"):
            faults.append(Fault(str(key)[:60], "is no part of such an object"))
    metadata = body.get("metadata")
    if not isinstance(metadata, Mapping):
        return faults  # the form says so
    for key in metadata:
        if key in ("name", *_OF_THE_API_SERVER):
            continue
        if key in ("labels", "annotations"):
            faults += _check_marks(f"metadata.{key}", metadata[key])
        elif key == "namespace":
            faults.append(Fault("metadata.namespace", "is the account's own; leave it out"))
        else:
            faults.append(Fault(f"metadata.{str(key)[:60]}", "is not yours to set; leave it out"))
    return faults


def _check_marks(where: str, marks: object) -> list[Fault]:
    if marks is None:
        return []
    if not isinstance(marks, Mapping) or not all(isinstance(v, str) for v in marks.values()):
        return [Fault(where, "must be an object of texts")]
    found = ((key, pod_allowance.check_mark(str(key))) for key in marks)
    return [Fault(f"{where}[{str(key)[:60]}]", problem) for key, problem in found if problem]


def _check_extras(job: ClusterJob, *, is_training_job: bool) -> list[Fault]:
    said = {
        "spec.host_network" if is_training_job else "spec.intranet": job.intranet
        != Intranet.POD_IP,
        "spec.withGloo": bool(job.with_gloo),
        "spec.elastic": job.elastic,
        "spec.suspend": job.suspend,
        "spec.schedulingPolicy": job.gang is not None,
        "spec.sampleSetRef": job.samples is not None,
        "spec.port": job.port not in (0, LEGACY_PORT),
        "spec.ports_num": job.v2_ports[0] != 1,
        "spec.ports_num_for_sparse": job.v2_ports[1] != 1,
    }
    return [Fault(field, _WITH_KUBECTL) for field, is_said in said.items() if is_said]


def _allowed(role: RoleSpec, *, is_training_job: bool) -> tuple[RoleSpec, list[Fault]]:
    where = f"spec.{PADDLEJOB_WORDS[role.role]}.template"
    template, faults = pod_allowance.allow(role.template, where)
    found = [_in_its_words(fault, where) if is_training_job else fault for fault in faults]
    return replace(role, template=template), found


def _in_its_words(fault: Fault, where: str) -> Fault:
    """A fault of a template that was made from a TrainingJob, by what was written in it."""
    field = fault.field.replace(f"{where}.spec.volumes", "spec.volumes")
    field = field.replace(f"{where}.spec.containers[0].volumeMounts", "spec.VolumeMounts")
    return Fault(field, fault.problem, fault.value)


def _take_registry(roles: list[RoleSpec], faults: list[Fault]) -> str:
    """The one registry the pods pull from, taken out of the templates: a job names it."""
    names: dict[str, None] = {}
    for number, role in enumerate(roles):
        template = dict(role.template or {})
        pod = dict(template.get("spec") or {})
        secrets = pod.pop("imagePullSecrets", ())
        names |= {secret["name"]: None for secret in secrets if "name" in secret}
        roles[number] = replace(role, template={**template, "spec": pod})
    if len(names) > 1:
        faults.append(Fault("imagePullSecrets", "names several registries; a job has one"))
    return next(iter(names), "")
