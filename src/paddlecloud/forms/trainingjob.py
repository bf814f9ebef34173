"""`TrainingJob` (paddlepaddle.org/v1): the object as JSON in, `ClusterJob` out, and back.

`parse(object)` returns what the object means and the warnings it deserves; it raises InvalidInput
with every fault at once, each by its path as written. Keys are read in every spelling that was
in use (`min-instance`, `min_instance`, `minInstance`, `VolumeMounts`, and the `pservser` of the
first server). `render(job)` writes the object that means this job; `parse(render(job))` gives it
back. The pod templates are made here: every role runs the entry point in the workspace, and finds
its role in its environment; `replicaSpec` is a template of the user's own.

Differences from the first controller, on purpose: `trainer.replicas` is the wish between min and
max (default min); GPUs asked for by their old name are asked for by today's; all servers run the
entry point too, unless they have an `entrypoint` of their own; a `master` is started if it says
what to run. A fault-tolerant job starts failed trainers again, as often as it has trainers.
The fields about a job's life (`backoffLimit`, `priority` ...) are those of a PaddleJob.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from paddlecloud.core.contract import LEGACY_PORT
from paddlecloud.core.errors import InvalidInput
from paddlecloud.core.jobspec import CleanPolicy, JobSpec, Role, RoleSpec
from paddlecloud.core.topology import mode_of
from paddlecloud.forms import job_policies, start_command
from paddlecloud.forms.custom_resources import ClusterJob, Intranet, Reading, Warned
from paddlecloud.forms.fields import MAX_PASSES, MAX_REPLICAS, MAX_RESTARTS
from paddlecloud.forms.job_policies import first_container

GROUP, VERSION, KIND, PLURAL = "paddlepaddle.org", "v1", "TrainingJob", "trainingjobs"
DEFAULT_IMAGE = "paddlepaddle/paddlecloud-job"
MAX_NAME = 63 - len(f"-trainer-{MAX_REPLICAS}")
OLD_GPU, GPU = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_SPEC_KEYS = [
    *"image host_network port ports_num ports_num_for_sparse fault_tolerant passes".split(),
    *"volumes VolumeMounts trainer pserver pservser master cleanPodPolicy".split(),
    *job_policies.KEYS,
]
_ROLE_KEYS = "entrypoint resources replicaSpec".split()
_SIZE_KEYS = "min-instance max-instance".split()
_TRAINER_KEYS = [*_ROLE_KEYS, *_SIZE_KEYS, "workspace", "replicas", "etcd-endpoint", "passes"]
_MASTER_KEYS = [*_ROLE_KEYS, "etcd-endpoint"]
_MASTER_NEEDS = {
    "requests": {"cpu": "1", "memory": "500Mi"},
    "limits": {"cpu": "2", "memory": "1Gi"},
}


def _squeeze(key: str) -> str:
    return key.replace("-", "").replace("_", "").lower()


class _Body:
    """An object whose keys are found whatever way their words are joined."""

    def __init__(self, reading: Reading, where: str, value: object, known: list[str]) -> None:
        self._reading, self.where = reading, where
        self._rows = {
            _squeeze(key): (key, item) for key, item in reading.mapping(where, value).items()
        }
        spellings = {_squeeze(key) for key in known}
        unknown = {
            key: item for squeezed, (key, item) in self._rows.items() if squeezed not in spellings
        }
        reading.unknown_keys(where, unknown, known)

    def get(self, key: str) -> Any:
        return self._rows.get(_squeeze(key), ("", None))[1]

    def path(self, key: str) -> str:
        return f"{self.where}.{self._rows.get(_squeeze(key), (key, None))[0]}"

    def whole(self, key: str, default: int, low: int, high: int) -> int:
        return self._reading.whole(self.path(key), self.get(key), default, low, high)

    def text(self, key: str) -> str:
        return self._reading.text(self.path(key), self.get(key))

    def listed(self, key: str) -> list[Any]:
        found = self.get(key)
        if found is None or isinstance(found, list):
            return list(found or ())
        self._reading.faults.add(self.path(key), "must be a list")
        return []


def parse(body: object) -> tuple[ClusterJob, tuple[Warned, ...]]:
    """What the object means; raises InvalidInput with every fault there is."""
    reading = Reading()
    whole = reading.mapping("object", body)
    metadata = reading.mapping("metadata", whole.get("metadata"))
    spec = _Body(reading, "spec", whole.get("spec"), _SPEC_KEYS)
    trainer = _Body(reading, spec.path("trainer"), spec.get("trainer"), _TRAINER_KEYS)
    tolerant = reading.flag(spec.path("fault_tolerant"), spec.get("fault_tolerant"))
    roles = _roles(reading, spec, trainer, tolerant)
    if not any(first_container(roles[0].template).get(key) for key in ("command", "args")):
        reading.faults.add(trainer.path("entrypoint"), "is missing; write the command to run")
    counts = {role.role: role.replicas for role in roles}
    restarts = _restarts(tolerant, roles[0].max_replicas)
    policies = job_policies.read(reading, lambda key: (spec.path(key), spec.get(key)), restarts)
    is_on_host = reading.flag(spec.path("host_network"), spec.get("host_network"))
    job = ClusterJob(
        spec=JobSpec(
            name=_name(reading, metadata.get("name")),
            mode=mode_of(roles[0].max_replicas, counts.get(Role.PSERVER, 0)),
            roles=roles,
            entry=trainer.text("entrypoint"),
            package=trainer.text("workspace"),
            runtime=_image(spec),
            passes=spec.whole("passes", 1, 1, MAX_PASSES),
            priority=policies.priority,
            wall_time_s=policies.wall_time_s,
            restart=policies.restart,
            clean=job_policies.read_clean(
                reading,
                spec.path("cleanPodPolicy"),
                spec.get("cleanPodPolicy"),
                CleanPolicy.NEVER,
            ),
            fault_tolerant=tolerant,
            grace_s=job_policies.grace_s([role.template for role in roles]),
            may_borrow=policies.may_borrow,
            group=policies.group,
        ),
        intranet=Intranet.HOST if is_on_host else Intranet.POD_IP,
        suspend=policies.suspend,
        gang=policies.gang,
        port=_first_port(spec),
        v2_ports=_v2_ports(spec),
    )
    reading.faults.raise_if_any()
    return job, tuple(reading.warnings)


def _restarts(is_tolerant: bool, trainers: int) -> int:
    """How often failed pods start again by default: the limits of the first start script."""
    return min(trainers, MAX_RESTARTS) if is_tolerant else 0


def _first_port(spec: _Body) -> int:
    return spec.whole("port", LEGACY_PORT, 1, 65535)


def _v2_ports(spec: _Body) -> tuple[int, int]:
    return spec.whole("ports_num", 1, 0, 100), spec.whole("ports_num_for_sparse", 1, 0, 100)


def _name(reading: Reading, value: object) -> str:
    name = reading.text("metadata.name", value)
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        problem = f"must be at most {MAX_NAME} of a-z, 0-9 and '-': it becomes part of host names"
        reading.faults.add("metadata.name", problem, name)
    return name


def _image(spec: _Body) -> str:
    return spec.text("image") or DEFAULT_IMAGE


def _roles(reading: Reading, spec: _Body, trainer: _Body, tolerant: bool) -> tuple[RoleSpec, ...]:
    least = trainer.whole("min-instance", 1, 1, MAX_REPLICAS)
    most = trainer.whole("max-instance", least, 1, MAX_REPLICAS)
    wish = trainer.whole("replicas", least, 1, MAX_REPLICAS)
    if least > most:
        reading.faults.add(trainer.path("min-instance"), f"is {least}, more than {most}, the most")
    elif least != most and not tolerant:
        problem = "max-instances should equal to min-instances when fault_tolerant is disabled"
        reading.faults.add(trainer.path("max-instance"), problem, most)
    kept = min(max(wish, least), max(most, least))
    if kept != wish and wish != 1:  # 1 is the schema's default, and means the least
        reading.warn(trainer.path("replicas"), f"is {wish}; min and max make it {kept}")
    roles = [_role(reading, Role.TRAINER, spec, trainer, trainer, (least, kept, max(most, least)))]
    word = "pservser" if spec.get("pserver") is None else "pserver"
    if spec.get(word) is not None:
        body = _Body(reading, spec.path(word), spec.get(word), [*_ROLE_KEYS, *_SIZE_KEYS])
        count = body.whole("min-instance", 1, 0, MAX_REPLICAS)
        if body.get("max-instance") not in (None, count):
            reading.warn(body.path("max-instance"), "does nothing; only trainers change in number")
        if count:
            roles.append(_role(reading, Role.PSERVER, spec, trainer, body, (count, count, count)))
    if spec.get("master") is not None:
        roles += _master(reading, spec, trainer)
    return tuple(roles)


def _master(reading: Reading, spec: _Body, trainer: _Body) -> list[RoleSpec]:
    """Of the user's own image: whether it has a task master, and where, only the user knows."""
    body = _Body(reading, spec.path("master"), spec.get("master"), _MASTER_KEYS)
    if not body.text("entrypoint") and body.get("replicaSpec") is None:
        reading.warn(
            spec.path("master"),
            "says nothing to run, so none is started and trainers read their data themselves; "
            "write entrypoint or replicaSpec",
        )
        return []
    return [_role(reading, Role.MASTER, spec, trainer, body, (1, 1, 1))]


def _role(
    reading: Reading,
    role: Role,
    spec: _Body,
    trainer: _Body,
    body: _Body,
    size: tuple[int, int, int],
) -> RoleSpec:
    """The role with its pod template: the user's own, completed by the fields beside it."""
    given = body.get("replicaSpec")
    template: dict[str, Any] = {}
    if given is not None:
        template = dict(_pod_template(reading, body.path("replicaSpec"), given))
    pod = dict(template["spec"]) if isinstance(template.get("spec"), Mapping) else {}
    container: dict[str, Any] = {"name": role.value, **first_container(template)}
    container.setdefault("image", _image(spec))
    entry = body.text("entrypoint") or trainer.text("entrypoint")
    workspace = trainer.text("workspace")
    if entry and not container.get("command") and not container.get("args"):
        container["command"] = start_command.command(workspace, entry)
    elif workspace and _started(container) is None:
        container.setdefault("workingDir", workspace)
    resources = _resources(reading, role, body, is_own=given is not None)
    if resources is not None:
        container["resources"] = resources
    ports = _ports(role, spec)
    if ports and given is None:
        container["ports"] = ports
    _extend(container, "volumeMounts", spec.listed("VolumeMounts"))
    others = pod.get("containers")
    pod["containers"] = [container, *(others[1:] if isinstance(others, list) else ())]
    _extend(pod, "volumes", spec.listed("volumes"))
    template["spec"] = pod
    needs = reading.needs(body.path("replicaSpec") if given is not None else body.where, template)
    least, wish, most = size
    return RoleSpec(role, wish, needs, least, most, template)


def _started(container: Mapping[str, Any]) -> tuple[str, str] | None:
    """The workspace and the entry point of a command made here; None for one of the user's own."""
    command = container.get("command")
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        return None
    return start_command.read(command)


def _pod_template(reading: Reading, where: str, value: object) -> Mapping[str, Any]:
    """The template in a set or job of Kubernetes, as the first controller kept it, or alone."""
    body = reading.mapping(where, value)
    inner = body.get("spec")
    if isinstance(inner, Mapping) and "template" in inner:
        where, body = f"{where}.spec", inner
    if "template" in body:
        return reading.template(f"{where}.template", body["template"])
    return reading.template(where, body)


def _resources(reading: Reading, role: Role, body: _Body, *, is_own: bool) -> dict[str, Any] | None:
    """What the role asks for; None leaves what a template of its own says."""
    asked = reading.mapping(body.path("resources"), body.get("resources"))
    if asked or not is_own:
        given = asked or (_MASTER_NEEDS if role == Role.MASTER else {})
        return _with_todays_names(reading, body.path("resources"), given)
    return None


def _ports(role: Role, spec: _Body) -> list[dict[str, Any]]:
    """Ports of old servers. On a host's network the operator chooses and names them."""
    if spec.get("host_network"):
        return []
    if role == Role.MASTER:
        named = (("master-port", 8080), ("etcd-port", 2379))
        return [{"name": name, "containerPort": port} for name, port in named]
    if role == Role.PSERVER:
        first, count = _first_port(spec), sum(_v2_ports(spec))
        return [
            {"name": f"jobport-{port}", "containerPort": port}
            for port in range(first, min(first + count, 65536))
        ]
    return []


def _extend(body: dict[str, Any], key: str, more: list[Any]) -> None:
    if more:
        have = body.get(key)
        body[key] = [*(have if isinstance(have, list) else ()), *more]


def _with_todays_names(
    reading: Reading, where: str, resources: Mapping[str, Any]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, amounts in resources.items():
        if isinstance(amounts, Mapping) and OLD_GPU in amounts:
            reading.warn(f"{where}.{kind}", f"{OLD_GPU} is read as {GPU}")
            amounts = {GPU if name == OLD_GPU else name: n for name, n in amounts.items()}
        found[kind] = amounts
    return found


# --- and back --------------------------------------------------------------------------------


def render(job: ClusterJob) -> dict[str, Any]:
    """The object that means this job; with whole templates where the short fields do not do."""
    short = _render(job, is_whole=False)
    try:
        means = parse(short)[0]
    except InvalidInput:
        means = None
    return short if means == job else _render(job, is_whole=True)


def _render(job: ClusterJob, *, is_whole: bool) -> dict[str, Any]:
    spec, trainer = job.spec, job.spec.trainers
    body: dict[str, Any] = {"image": spec.runtime, "passes": spec.passes}
    body |= {"fault_tolerant": True} if spec.fault_tolerant else {}
    body |= {"host_network": True} if job.intranet == Intranet.HOST else {}
    body |= {"port": job.port or LEGACY_PORT}
    body |= {"ports_num": job.v2_ports[0], "ports_num_for_sparse": job.v2_ports[1]}
    if not is_whole:
        pod = (trainer.template or {}).get("spec") or {}
        shared = {
            "volumes": pod.get("volumes"),
            "VolumeMounts": first_container(trainer.template).get("volumeMounts"),
        }
        body |= {key: value for key, value in shared.items() if value}
    for role in spec.roles:
        written: dict[str, Any] = {}
        if role.role != Role.MASTER:
            written |= {"min-instance": role.min_replicas, "max-instance": role.max_replicas}
        body[role.role.value] = {**written, **_rendered_pod(role, spec.entry, is_whole=is_whole)}
    body["trainer"] |= {"entrypoint": spec.entry, "replicas": trainer.replicas}
    body["trainer"] |= {"workspace": spec.package} if spec.package else {}
    if spec.clean != CleanPolicy.NEVER:
        body["cleanPodPolicy"] = spec.clean.value
    body |= job_policies.written(job, _restarts(spec.fault_tolerant, trainer.max_replicas))
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {"name": spec.name},
        "spec": body,
    }


def _rendered_pod(role: RoleSpec, entry: str, *, is_whole: bool) -> dict[str, Any]:
    if is_whole:
        return {"replicaSpec": {"template": role.template}}
    container = first_container(role.template)
    found = {"resources": container["resources"]} if container.get("resources") else {}
    own = _started(container)
    if own is not None and own[1] != entry:
        found["entrypoint"] = own[1]
    return found
