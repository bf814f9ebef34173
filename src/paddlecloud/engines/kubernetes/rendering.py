"""A run as a custom resource: pure, values in, bodies for the API server out.

`custom_resource(job, config, namespace)` is the object whose pods the operator makes, `secret` what
belongs to the run and nobody else may read. Both have names that are a function of the run, so
making them twice is a refusal. `spec_of` reads an object back into the spec it was made of.

Which kind: what one of the two modes of generation A has (single, parameter servers), without pod
templates of its own, is a `TrainingJob`, if that form can say all of it; everything else is a
`PaddleJob`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from paddlecloud.core import contract
from paddlecloud.core.errors import InvalidInput
from paddlecloud.core.jobspec import JobSpec, Mode, RestartRule, RoleSpec
from paddlecloud.core.names import dns_label, plain_job_name
from paddlecloud.core.resources import Resources, format_cpu, format_memory
from paddlecloud.engines.kubernetes.config import KubernetesConfig
from paddlecloud.engines.protocols import JobRun
from paddlecloud.forms import paddlejob, start_command, trainingjob
from paddlecloud.forms.custom_resources import ClusterJob
from paddlecloud.forms.tenant_objects import OBJECT_KIND, kind_note
from paddlecloud.kube import words

Json = dict[str, Any]

JOB_ACCOUNT = "paddlecloud-job"  # the service account of jobs' pods; it may do nothing
MADE_WITH = "made-with"  # the annotation of a spec that was read from somebody's own object
_HOME, _PUBLIC = "paddlecloud-home", "paddlecloud-public"
_MAX_NAME = min(paddlejob.MAX_NAME, trainingjob.MAX_NAME)
_ID_DIGITS = 8
# What all replicas of a run have in common. The operator knows the rest of the contract.
_OF_THE_JOB = (
    "PADDLE_JOB_NAME ENTRY TOPOLOGY TRAINER_PACKAGE NAMESPACE PADDLE_CLOUD_CURRENT_DATACENTER "
    "PADDLE_CLOUD_USERNAME JOB_ID OUTPUT_PATH LOCAL_LOG_PATH LOCAL_MOUNT_PATH "
    "PADDLE_INIT_NUM_PASSES"
).split()


def object_name(job: JobRun) -> str:
    """`<name>-<part of the id>`, and the number of a re-run."""
    suffix = job.job_id.removeprefix("job-")[:_ID_DIGITS]
    suffix += f"-{job.run}" if job.run > 1 else ""
    slug = plain_job_name(job.spec.name, "x").removesuffix("-x")
    return f"{slug[: _MAX_NAME - len(suffix) - 1].rstrip('-')}-{suffix}"


def secret_name(name: str) -> str:
    return f"{name}.env"


# --- the object --------------------------------------------------------------------------------


def custom_resource(job: JobRun, config: KubernetesConfig, namespace: str) -> Json:
    name = object_name(job)
    wanted = ClusterJob(_with_templates(job, config, name, namespace))
    body = _as_training_job(wanted, job.spec) or paddlejob.render(wanted)
    body["metadata"] = {
        "name": name,
        "namespace": namespace,
        "labels": {words.JOB_ID_LABEL: job.job_id, words.RUN_LABEL: str(job.run)},
        "annotations": {
            words.ACCOUNT_ANNOTATION: job.account,
            words.JOB_NAME_ANNOTATION: job.spec.name,
            words.SUBMITTED_ANNOTATION: repr(job.submitted_at),
            **({words.ARCHIVE_ANNOTATION: "true"} if config.archive_logs else {}),
        },
    }
    return body


def _as_training_job(job: ClusterJob, asked: JobSpec) -> Json | None:
    """The object, if it is one of generation A, or came as such an object, and that form can say
    all of it."""
    came_as_one = asked.annotations.get(OBJECT_KIND) == trainingjob.KIND
    has_templates = any(role.template is not None for role in asked.roles)
    is_of_its_time = asked.mode in (Mode.SINGLE, Mode.PS) and not has_templates
    if not (came_as_one or is_of_its_time):
        return None
    # The templates enter the package themselves: see `start_command`.
    body = trainingjob.render(replace(job, spec=replace(job.spec, package="")))
    try:
        again, warnings = trainingjob.parse(body)
    except InvalidInput:
        return None
    return body if not warnings and _life(again.spec) == _life(job.spec) else None


def _life(spec: JobSpec) -> tuple[object, ...]:
    """What an operator needs to know of a spec; all else is in the templates."""
    size = (spec.mode, spec.roles, spec.priority, spec.group, spec.may_borrow)
    return (*size, spec.wall_time_s, spec.restart, spec.clean, spec.grace_s, spec.fault_tolerant)


def _countable(rule: RestartRule) -> RestartRule:
    """No object says how long to wait between restarts."""
    return RestartRule(rule.max_restarts, rule.exit_codes)


def secret(job: JobRun, body: Json) -> Json | None:
    """The run's own variables; None if there are none. The object gets to own it: `owned_patch`."""
    if not job.secret_env:
        return None
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": secret_name(body["metadata"]["name"]),
            "namespace": body["metadata"]["namespace"],
            "labels": dict(body["metadata"]["labels"]),
        },
        "type": "Opaque",
        "stringData": dict(job.secret_env),
    }


def owned_patch(owner: Json) -> Json:
    """What makes something go with the object."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    return {"metadata": {"ownerReferences": [reference]}}


def cancel_patch(reason: str) -> Json:
    return {"metadata": {"annotations": {words.CANCEL_ANNOTATION: reason or "killed"}}}


def moves_patch(rows: list[Json], version: str) -> Json:
    """For the object of this version alone: an order given meanwhile must not be lost."""
    text = json.dumps(rows, separators=(",", ":"))
    return {"metadata": {"resourceVersion": version, "annotations": {words.MOVES_ANNOTATION: text}}}


# --- templates ---------------------------------------------------------------------------------


def _with_templates(job: JobRun, config: KubernetesConfig, name: str, namespace: str) -> JobSpec:
    roles = tuple(
        replace(role, template=_template(job, role, config, name, namespace))
        for role in job.spec.roles
    )
    return replace(
        job.spec,
        name=name,
        roles=roles,
        runtime=image_of(job.spec.runtime, config),
        restart=_countable(job.spec.restart),
        group=job.spec.group and dns_label(job.spec.group),
        grace_s=float(_whole_grace(job.spec)),
    )


def image_of(runtime: str, config: KubernetesConfig) -> str:
    return (config.images or {}).get(runtime) or runtime or config.image


def _whole_grace(spec: JobSpec) -> int:
    return max(1, round(spec.grace_s))


def _template(
    job: JobRun, role: RoleSpec, config: KubernetesConfig, name: str, namespace: str
) -> Json:
    template: Json = copy.deepcopy(dict(role.template or {}))
    pod: Json = template.setdefault("spec", {})
    if role.template is None:
        pod["containers"] = [_container(job, role, config)]
        pod["terminationGracePeriodSeconds"] = _whole_grace(job.spec)
    container = pod["containers"][0]
    _add_environment(container, job, config, name, namespace)
    if config.pfs_volume is not None:
        _mount_files(pod, container, job, config)
    pod["serviceAccountName"] = JOB_ACCOUNT
    pod["automountServiceAccountToken"] = False
    if job.spec.registry:
        known = [one for one in pod.get("imagePullSecrets") or ()]
        pod["imagePullSecrets"] = [*known, {"name": job.spec.registry}]
    return template


def _container(job: JobRun, role: RoleSpec, config: KubernetesConfig) -> Json:
    return {
        "name": role.role.value,
        "image": image_of(job.spec.runtime, config),
        "command": start_command.command(job.spec.package, job.spec.entry),
        "resources": resources(role.resources, config.gpu_resource),
        # The log is kept by us; a sentence in the status stays a sentence.
        "terminationMessagePolicy": "File",
    }


def resources(needs: Resources, gpu: str) -> Json:
    """CPU is shared by weight, memory is what was asked for and no more."""
    memory = {"memory": format_memory(needs.memory_bytes)} if needs.memory_bytes else {}
    cpu = {"cpu": format_cpu(needs.cpu_milli)} if needs.cpu_milli else {}
    cards = {gpu: str(needs.gpu)} if needs.gpu else {}
    found = {"requests": cpu | memory | cards, "limits": memory | cards}
    return {kind: amounts for kind, amounts in found.items() if amounts}


def _add_environment(
    container: Json, job: JobRun, config: KubernetesConfig, name: str, namespace: str
) -> None:
    written = container.get("env") or []
    taken = {one.get("name") for one in written}
    ours = platform_environment(job, config, namespace) | dict(job.spec.env)
    added: list[Json] = [
        {"name": key, "value": start_command.literal(value)}
        for key, value in ours.items()
        if key not in taken
    ]
    attempt = {"fieldRef": {"fieldPath": f"metadata.labels['{words.ATTEMPT_LABEL}']"}}
    added.append({"name": "PADDLECLOUD_ATTEMPT", "valueFrom": attempt})
    container["env"] = [*written, *added]
    if job.secret_env:
        reference = {"secretRef": {"name": secret_name(name)}}
        container["envFrom"] = [*(container.get("envFrom") or ()), reference]


def platform_environment(job: JobRun, config: KubernetesConfig, namespace: str) -> dict[str, str]:
    spec, files = job.spec, _files(job, config)
    facts = contract.JobFacts(
        job_id=job.job_id,
        name=spec.name,
        mode=spec.mode.value,
        datacenter=spec.cluster or config.cluster,
        user=job.account,
        trainers=[contract.Peer("", 0)],
        namespace=namespace,
        entry=spec.entry,
        topology=spec.topology,
        package=spec.package,
        output=f"{spec.package}/output" if spec.package else "",
        passes=spec.passes,
    )
    known = contract.environment(facts, contract.ReplicaFacts(contract.TRAINER, 0))
    found = {name: known[name] for name in _OF_THE_JOB if name in known}
    if files:
        found |= {
            "HOME": files[_HOME],
            "PADDLECLOUD_PFS_HOME": files[_HOME],
            "PADDLECLOUD_PFS_PUBLIC": files[_PUBLIC],
        }
    return found | {
        "USER": job.account,
        "LOGNAME": job.account,
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",  # so that a log shows a line when it is printed
        "PADDLECLOUD_ROOT_FILES": "/",
        "PADDLECLOUD_TERMINATION_LOG": "/dev/termination-log",
        "PADDLECLOUD_RUN": str(job.run),
    }


def _files(job: JobRun, config: KubernetesConfig) -> dict[str, str]:
    """Where a pod finds the files, by the name of the mount."""
    if config.pfs_volume is None:
        return {}
    root = f"/pfs/{job.spec.cluster or config.cluster}"
    return {_HOME: f"{root}/home/{job.account}", _PUBLIC: f"{root}/public"}


def _mount_files(pod: Json, container: Json, job: JobRun, config: KubernetesConfig) -> None:
    """The account's own home, and what is everybody's to read; nothing else of the volume."""
    files = _files(job, config)
    pod["volumes"] = [
        *(pod.get("volumes") or ()),
        {"name": _HOME, **(config.pfs_volume or {})},
    ]
    container["volumeMounts"] = [
        *(container.get("volumeMounts") or ()),
        {"name": _HOME, "mountPath": files[_HOME], "subPath": f"home/{job.account}"},
        {"name": _HOME, "mountPath": files[_PUBLIC], "subPath": "public", "readOnly": True},
    ]


# --- and back ----------------------------------------------------------------------------------


def parse(body: Mapping[str, Any]) -> ClusterJob:
    """The job an object of either kind means; raises InvalidInput."""
    form = trainingjob if body.get("kind") == trainingjob.KIND else paddlejob
    return form.parse(body)[0]


def spec_of(body: Mapping[str, Any], config: KubernetesConfig) -> JobSpec:
    """The spec an object was made of, as far as it says it; raises InvalidInput.

    Of an object that somebody wrote for kubectl the templates are kept whole.
    """
    found = parse(body).spec
    metadata = body["metadata"]
    notes = metadata.get("annotations") or {}
    found = replace(
        found,
        name=notes.get(words.JOB_NAME_ANNOTATION) or found.name,
        cluster=config.cluster,
        runtime="" if found.runtime == config.image else found.runtime,
    )
    if words.JOB_ID_LABEL not in (metadata.get("labels") or {}):
        return replace(found, annotations={MADE_WITH: "kubectl", **kind_note(body)})
    return _as_submitted(found)


def _as_submitted(spec: JobSpec) -> JobSpec:
    """Without what rendering added: templates, the platform's variables."""
    container: Mapping[str, Any] = (spec.trainers.template or {})["spec"]["containers"][0]
    package, entry = start_command.read(container.get("command") or ()) or ("", "")
    secrets = (spec.trainers.template or {})["spec"].get("imagePullSecrets") or [{}]
    roles = tuple(replace(role, template=None) for role in spec.roles)
    return replace(
        spec,
        roles=roles,
        package=package,
        entry=entry,
        registry=str(secrets[-1].get("name") or ""),
        env=_users_environment(container),
        passes=_passes(container),
    )


_PLATFORMS = frozenset(_OF_THE_JOB) | {
    "HOME", "PADDLECLOUD_PFS_HOME", "PADDLECLOUD_PFS_PUBLIC", "USER", "LOGNAME", "LANG",
    "PYTHONUNBUFFERED", "PADDLECLOUD_ROOT_FILES", "PADDLECLOUD_TERMINATION_LOG", "PADDLECLOUD_RUN",
}  # fmt: skip


def _users_environment(container: Mapping[str, Any]) -> dict[str, str]:
    """What is neither ours nor a reference."""
    return {
        one["name"]: start_command.meant(one["value"])
        for one in container.get("env") or ()
        if "value" in one and one["name"] not in _PLATFORMS
    }


def _passes(container: Mapping[str, Any]) -> int:
    for one in container.get("env") or ():
        if one["name"] == "PADDLE_INIT_NUM_PASSES" and str(one.get("value")).isdecimal():
            return int(one["value"])
    return 1
