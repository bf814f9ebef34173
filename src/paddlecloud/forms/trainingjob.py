"""`TrainingJob` (paddlepaddle.org/v1): the object as JSON in, `ClusterJob` out, and back.

`parse(object)` returns what the object means and the warnings it deserves; it raises InvalidInput
with every fault at once, each by its path as written. Keys are read in every spelling that was
in use (`min-instance`, `min_instance`, `minInstance`, `VolumeMounts`, and the `pservser` of the
first server). `render(job)` writes the object that means this job. The pod templates are made
here: every role runs the entry point in the workspace, and finds its role in its environment.

Differences from the first controller, on purpose: `trainer.replicas` is the wish between min and
max (default min); GPUs asked for by their old name are asked for by today's; `master` is read but
no task master is started.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from paddlecloud.core.jobspec import JobSpec, Role, RoleSpec
from paddlecloud.core.topology import mode_of
from paddlecloud.forms.custom_resources import ClusterJob, Intranet, Reading, Warned
from paddlecloud.forms.fields import MAX_PASSES, MAX_REPLICAS

GROUP, VERSION, KIND, PLURAL = "paddlepaddle.org", "v1", "TrainingJob", "trainingjobs"
DEFAULT_IMAGE = "paddlepaddle/paddlecloud-job"
MAX_NAME = 63 - len(f"-trainer-{MAX_REPLICAS}")
OLD_GPU, GPU = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_SPEC_KEYS = (
    "image host_network port ports_num ports_num_for_sparse fault_tolerant passes volumes "
    "VolumeMounts trainer pserver pservser master"
).split()
_TRAINER_KEYS = (
    "entrypoint workspace min-instance max-instance replicas resources etcd-endpoint passes"
).split()
_PSERVER_KEYS = "min-instance max-instance resources".split()


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
    if spec.get("master") is not None:
        reading.warn("spec.master", "is not started: trainers read their data themselves")
    tolerant = reading.flag(spec.path("fault_tolerant"), spec.get("fault_tolerant"))
    roles = _roles(reading, spec, trainer, tolerant)
    pservers = roles[1].replicas if len(roles) > 1 else 0
    entry = trainer.text("entrypoint")
    if not entry:
        reading.faults.add(trainer.path("entrypoint"), "is missing; write the command to run")
    job = ClusterJob(
        spec=JobSpec(
            name=_name(reading, metadata.get("name")),
            mode=mode_of(roles[0].max_replicas, pservers),
            roles=roles,
            entry=entry,
            package=trainer.text("workspace"),
            runtime=_image(spec),
            passes=spec.whole("passes", 1, 1, MAX_PASSES),
            fault_tolerant=tolerant,
            grace_s=30.0,
        ),
        intranet=Intranet.HOST
        if reading.flag(spec.path("host_network"), spec.get("host_network"))
        else Intranet.POD_IP,
    )
    reading.faults.raise_if_any()
    return job, tuple(reading.warnings)


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
    if kept != wish:
        reading.warn(trainer.path("replicas"), f"is {wish}; min and max make it {kept}")
    roles = [_role(reading, Role.TRAINER, spec, trainer, trainer, (least, kept, max(most, least)))]
    word = "pservser" if spec.get("pserver") is None else "pserver"
    if spec.get(word) is not None:
        body = _Body(reading, spec.path(word), spec.get(word), _PSERVER_KEYS)
        count = body.whole("min-instance", 1, 0, MAX_REPLICAS)
        if body.get("max-instance") not in (None, count):
            reading.warn(body.path("max-instance"), "does nothing; only trainers change in number")
        if count:
            roles.append(_role(reading, Role.PSERVER, spec, trainer, body, (count, count, count)))
    return tuple(roles)


def _role(
    reading: Reading,
    role: Role,
    spec: _Body,
    trainer: _Body,
    body: _Body,
    size: tuple[int, int, int],
) -> RoleSpec:
    asked = reading.mapping(body.path("resources"), body.get("resources"))
    resources = _with_todays_names(reading, body.path("resources"), asked)
    needs = reading.container_needs(body.path("resources"), resources)
    container: dict[str, Any] = {
        "name": role.value,
        "image": _image(spec),
        "command": ["sh", "-c", trainer.text("entrypoint")],
        "resources": resources,
        "volumeMounts": spec.listed("VolumeMounts"),
    }
    workspace = trainer.text("workspace")
    if workspace:
        container["workingDir"] = workspace
    first = spec.whole("port", 7164, 1, 65535)
    count = spec.whole("ports_num", 1, 0, 100) + spec.whole("ports_num_for_sparse", 1, 0, 100)
    if role == Role.PSERVER:
        container["ports"] = [
            {"name": f"jobport-{port}", "containerPort": port}
            for port in range(first, min(first + count, 65536))
        ]
    pod = {"containers": [container], "volumes": spec.listed("volumes")}
    least, wish, most = size
    return RoleSpec(role, wish, needs, least, most, {"spec": pod})


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
    """The object that means this job. What its templates hold beyond this form is not kept."""
    spec, trainer = job.spec, job.spec.trainers
    container, pod = _container(trainer), (trainer.template or {}).get("spec", {})
    body: dict[str, Any] = {
        "image": spec.runtime,
        "fault_tolerant": spec.fault_tolerant,
        "passes": spec.passes,
        "host_network": job.intranet == Intranet.HOST,
        "volumes": pod.get("volumes", []),
        "VolumeMounts": container.get("volumeMounts", []),
        "trainer": {
            "entrypoint": spec.entry,
            "workspace": spec.package,
            "min-instance": trainer.min_replicas,
            "max-instance": trainer.max_replicas,
            "replicas": trainer.replicas,
            "resources": container.get("resources", {}),
        },
    }
    servers = spec.role(Role.PSERVER)
    if servers is not None:
        served = _container(servers)
        ports = [port["containerPort"] for port in served.get("ports", ())]
        if ports:
            body |= {"port": ports[0], "ports_num": len(ports), "ports_num_for_sparse": 0}
        body["pserver"] = {
            "min-instance": servers.replicas,
            "max-instance": servers.replicas,
            "resources": served.get("resources", {}),
        }
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {"name": spec.name},
        "spec": body,
    }


def _container(role: RoleSpec) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (role.template or {}).get("spec", {}).get("containers", [{}])[0]
    return found
