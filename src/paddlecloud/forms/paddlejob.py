"""`PaddleJob` (batch.paddlepaddle.org/v1): the object as JSON in, `ClusterJob` out, and back.

`parse(object)` returns what the object means and the warnings it deserves; it raises InvalidInput
with every fault at once, each by its path in the object (`spec.worker.replicas`). Pod templates
travel through whole. `render(job)` writes the `metadata.name` and `spec` that mean this job, and
`parse(render(job))` gives the same job without a warning. The operator and the engine for
Kubernetes call both; `controller.statuses` has the other half, the words of `status`.

What the fields of the old operator lacked: `worker.requests` and `worker.limits` are read, as the
least and the most workers; `backoffLimit`, `restartExitCodes`, `activeDeadlineSeconds`,
`priority`, `suspend` and, in `schedulingPolicy`, `group` and `mayBorrow` are new. `cleanPolicy`,
which a published example writes, is taken for `cleanPodPolicy`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from paddlecloud.core.jobspec import CleanPolicy, JobSpec, Mode, Role, RoleSpec
from paddlecloud.core.topology import PADDLEJOB_WORDS, mode_of
from paddlecloud.forms import job_policies
from paddlecloud.forms.custom_resources import ClusterJob, Intranet, Reading, SampleSet, Warned
from paddlecloud.forms.fields import MAX_REPLICAS

GROUP, VERSION, KIND, PLURAL = "batch.paddlepaddle.org", "v1", "PaddleJob", "paddlejobs"
# Pods are called <job>-worker-<index> and that is their host name too, at most 63 characters.
MAX_NAME = 63 - len(f"-worker-{MAX_REPLICAS}")

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_SPEC_KEYS = (
    *"worker ps heter cleanPodPolicy intranet withGloo elastic sampleSetRef".split(),
    *job_policies.KEYS,
)
_ROLE_KEYS = ("replicas", "requests", "limits", "template")
_INTRANET = {kind.value: kind for kind in Intranet}


def parse(body: object) -> tuple[ClusterJob, tuple[Warned, ...]]:
    """What the object means; raises InvalidInput with every fault there is."""
    reading = Reading()
    whole = reading.mapping("object", body)
    metadata = reading.mapping("metadata", whole.get("metadata"))
    spec = reading.mapping("spec", whole.get("spec"))
    name = _name(reading, metadata.get("name"))
    clean = _clean_key(reading, spec)
    reading.unknown_keys("spec", spec, (*_SPEC_KEYS, "cleanPolicy"))
    roles = _roles(reading, spec)
    policies = job_policies.read(reading, lambda key: (f"spec.{key}", spec.get(key)))
    job = ClusterJob(
        spec=JobSpec(
            name=name,
            mode=_mode(roles),
            roles=roles,
            runtime=_image(roles),
            priority=policies.priority,
            wall_time_s=policies.wall_time_s,
            restart=policies.restart,
            clean=job_policies.read_clean(
                reading, f"spec.{clean}", spec.get(clean), CleanPolicy.ON_COMPLETION
            ),
            grace_s=job_policies.grace_s([role.template for role in roles]),
            may_borrow=policies.may_borrow,
            group=policies.group,
        ),
        intranet=reading.choice("spec.intranet", spec.get("intranet"), _INTRANET, "PodIP"),
        with_gloo=_gloo(reading, spec, roles),
        elastic=spec.get("elastic") is not None,
        suspend=policies.suspend,
        gang=policies.gang,
        samples=_samples(reading, spec.get("sampleSetRef")),
    )
    reading.faults.raise_if_any()
    return job, tuple(reading.warnings)


def _name(reading: Reading, value: object) -> str:
    name = reading.text("metadata.name", value)
    if len(name) > MAX_NAME:
        problem = f"is {len(name)} characters long; at most {MAX_NAME} leave room for pod names"
        reading.faults.add("metadata.name", problem, name)
    elif not _NAME.fullmatch(name):
        problem = "may contain a-z, 0-9 and '-' only: it becomes part of host names"
        reading.faults.add("metadata.name", problem, name)
    return name


def _clean_key(reading: Reading, spec: Mapping[str, Any]) -> str:
    if "cleanPolicy" not in spec:
        return "cleanPodPolicy"
    if spec.get("cleanPodPolicy"):
        reading.warn("spec.cleanPolicy", "is ignored, since cleanPodPolicy is there")
        return "cleanPodPolicy"
    reading.warn("spec.cleanPolicy", "is read as cleanPodPolicy")
    return "cleanPolicy"


# --- roles -----------------------------------------------------------------------------------


def _roles(reading: Reading, spec: Mapping[str, Any]) -> tuple[RoleSpec, ...]:
    roles = []
    for role, word in PADDLEJOB_WORDS.items():
        if spec.get(word) is None:
            if role == Role.TRAINER:
                reading.faults.add("spec.worker", "is missing; every job has workers")
            continue
        found = _role(reading, role, f"spec.{word}", spec[word])
        if found.replicas > 0:
            roles.append(found)
    if len(roles) == 2 and roles[1].role == Role.HETER:
        reading.faults.add("spec.heter", "needs parameter servers as well; write spec.ps")
    return tuple(roles)


def _role(reading: Reading, role: Role, where: str, value: object) -> RoleSpec:
    body = reading.mapping(where, value)
    reading.unknown_keys(where, body, _ROLE_KEYS)
    is_worker = role == Role.TRAINER
    wish = reading.whole(f"{where}.replicas", body.get("replicas"), 1, 0, MAX_REPLICAS)
    if wish == 0:
        if is_worker:
            reading.faults.add(f"{where}.replicas", "must be at least 1 (suspend: true pauses)")
        else:
            reading.warn(f"{where}.replicas", "is 0, as if the role were not there")
    least = reading.whole(f"{where}.requests", body.get("requests"), wish, 1, MAX_REPLICAS)
    most = reading.whole(f"{where}.limits", body.get("limits"), wish, 1, MAX_REPLICAS)
    if is_worker:
        least, wish, most = _in_range(reading, where, body, least, wish, most)
    else:
        for key in ("requests", "limits"):
            if body.get(key) not in (None, wish):
                reading.warn(f"{where}.{key}", "does nothing; only workers change in number")
        least = most = wish
    template = reading.template(f"{where}.template", body.get("template"))
    needs = reading.needs(f"{where}.template", template)
    return RoleSpec(role, wish, needs, least, most, template)


def _in_range(
    reading: Reading, where: str, body: Mapping[str, Any], least: int, wish: int, most: int
) -> tuple[int, int, int]:
    """Least, wish and most with least <= wish <= most: min and max hold."""
    if body.get("requests") is not None and body.get("limits") is not None and least > most:
        problem = f"is {least}, more than limits, {most}"
        reading.faults.add(f"{where}.requests", problem, least)
        return wish, wish, wish
    # One of the two alone bounds that side only.
    kept = max(least, wish) if body.get("requests") is not None else wish
    kept = min(most, kept) if body.get("limits") is not None else kept
    if kept != wish and wish > 0:
        bound = "requests" if kept > wish else "limits"
        reading.warn(f"{where}.replicas", f"is {wish}; {bound} makes it {kept}")
    return min(least, kept), kept, max(most, kept)


def _mode(roles: tuple[RoleSpec, ...]) -> Mode:
    counts = {role.role: role.replicas for role in roles}
    most = max((role.max_replicas for role in roles if role.role == Role.TRAINER), default=1)
    return mode_of(most, counts.get(Role.PSERVER, 0), counts.get(Role.HETER, 0))


def _image(roles: tuple[RoleSpec, ...]) -> str:
    image = job_policies.first_container(roles[0].template).get("image") if roles else None
    return image if isinstance(image, str) else ""


# --- the rest --------------------------------------------------------------------------------


def _gloo(reading: Reading, spec: Mapping[str, Any], roles: tuple[RoleSpec, ...]) -> int:
    where, value = "spec.withGloo", spec.get("withGloo")
    words = {"0": 0, "1": 1, "2": 2}
    if isinstance(value, bool) or (isinstance(value, str) and value.lower() in ("true", "false")):
        meant = int(str(value).lower() == "true")
        reading.warn(where, f"is {str(value).lower()}, read as {meant}; the words are 0, 1, 2")
        return meant
    text = None if value is None else str(value) if isinstance(value, int | str) else "?"
    level: int = reading.choice(where, text, words, "0")
    if level and all(role.role != Role.PSERVER for role in roles):
        reading.warn(where, "has no effect without parameter servers")
    return level


def _samples(reading: Reading, value: object) -> SampleSet | None:
    where = "spec.sampleSetRef"
    if value is None:
        return None
    body = reading.mapping(where, value)
    reading.unknown_keys(where, body, ("name", "namespace", "mountPath"))
    claim = reading.text(f"{where}.name", body.get("name"))
    path = reading.text(f"{where}.mountPath", body.get("mountPath"))
    if not claim or not path:
        reading.faults.add(where, "needs a name and a mountPath")
    if body.get("namespace"):
        reading.warn(f"{where}.namespace", "is ignored: a pod mounts claims of its own namespace")
    return SampleSet(claim, path)


# --- and back --------------------------------------------------------------------------------


def render(job: ClusterJob) -> dict[str, Any]:
    """The object that means this job, without the metadata that is not its own."""
    spec = job.spec
    body: dict[str, Any] = {"cleanPodPolicy": spec.clean.value, "intranet": job.intranet.value}
    for role in spec.roles:
        written: dict[str, Any] = {"replicas": role.replicas, "template": role.template}
        if role.role == Role.TRAINER:
            written |= {"requests": role.min_replicas, "limits": role.max_replicas}
        body[PADDLEJOB_WORDS[role.role]] = written
    optional = {
        "withGloo": job.with_gloo,
        "elastic": int(job.elastic),
        "sampleSetRef": job.samples
        and {"name": job.samples.claim, "mountPath": job.samples.mount_path},
    }
    body |= {key: value for key, value in optional.items() if value}
    body |= job_policies.written(job)
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {"name": spec.name},
        "spec": body,
    }
