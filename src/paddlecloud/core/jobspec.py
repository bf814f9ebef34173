"""`JobSpec`: what the user wants, in one shape whatever form it was written in.

A spec is a wish and never changes after it was accepted; what the planner grants and what was
observed live elsewhere. Forms build specs and have checked them; engines and planners read them.
`to_json`/`from_json` are the one stored and sent spelling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any

from paddlecloud.core.resources import Resources


class Mode(StrEnum):
    SINGLE = "single"
    COLLECTIVE = "collective"
    PS = "ps"
    HETER = "heter"


class Role(StrEnum):
    TRAINER = "trainer"
    PSERVER = "pserver"
    HETER = "heter"
    MASTER = "master"


class Priority(IntEnum):
    LOW = -1
    NORMAL = 0
    HIGH = 1
    VERY_HIGH = 2

    @property
    def word(self) -> str:
        return self.name.lower()


class CleanPolicy(StrEnum):
    """When the replicas' remains (on Kubernetes the pods) are removed after the end."""

    ALWAYS = "Always"
    NEVER = "Never"
    ON_FAILURE = "OnFailure"
    ON_COMPLETION = "OnCompletion"


@dataclass(frozen=True, slots=True)
class RoleSpec:
    """One role of a job: how many replicas are wished for and what each needs."""

    role: Role
    replicas: int  # the wish; the planner may grant 0 or min..max
    resources: Resources
    min_replicas: int = -1  # -1: the same as replicas
    max_replicas: int = -1
    template: Mapping[str, Any] | None = None  # a pod template, carried whole and opaque

    def __post_init__(self) -> None:
        if self.min_replicas < 0:
            object.__setattr__(self, "min_replicas", self.replicas)
        if self.max_replicas < 0:
            object.__setattr__(self, "max_replicas", self.replicas)


@dataclass(frozen=True, slots=True)
class RestartRule:
    """How often and on which exits replicas are started again.

    `exit_codes` empty means every failure may be retried. A signal n counts as 128 + n.
    Which replicas restart together is decided by topology (core.restart), not here.
    """

    max_restarts: int = 0
    exit_codes: frozenset[int] = frozenset()
    backoff_s: float = 1.0  # doubles with each restart
    backoff_cap_s: float = 60.0


@dataclass(frozen=True, slots=True)
class JobSpec:
    name: str
    mode: Mode
    roles: tuple[RoleSpec, ...]
    entry: str = ""  # shell command, run by `sh -c` in the package directory
    topology: str = ""  # v1 config file; only a runtime with `paddle train` can run it
    package: str = ""  # /pfs/<dc>/home/<user>/... : the working directory of every replica
    package_digest: str = ""  # the pinned snapshot the directory was filled from, if any
    cluster: str = ""  # the <datacenter>
    runtime: str = ""  # what `image` / `--runtime` names; empty = the cluster's default
    registry: str = ""  # pull secret, Kubernetes only
    env: Mapping[str, str] = field(default_factory=dict)
    passes: int = 1
    priority: Priority = Priority.NORMAL
    wall_time_s: int = 0  # 0 = no limit
    restart: RestartRule = RestartRule()
    clean: CleanPolicy = CleanPolicy.ON_COMPLETION
    fault_tolerant: bool = False
    grace_s: float = 10.0  # between TERM and KILL
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)  # free text; no planner reads it
    may_borrow: bool = False  # may run on what others leave idle, and is preempted first
    group: str = ""  # whose quota it counts against; empty = the account's own group

    def role(self, role: Role) -> RoleSpec | None:
        return next((spec for spec in self.roles if spec.role == role), None)

    @property
    def trainers(self) -> RoleSpec:
        """Every job has trainers; a plain program is a job of one."""
        spec = self.role(Role.TRAINER)
        if spec is None:
            raise ValueError("a job without trainers was built; forms refuse this")
        return spec

    def resources_at(self, trainers: int) -> Resources:
        """What the whole job needs with that many trainers, all other roles at their wish."""
        total = Resources()
        for spec in self.roles:
            total += spec.resources * (trainers if spec.role == Role.TRAINER else spec.replicas)
        return total

    def replicas_at(self, trainers: int) -> int:
        return sum(trainers if r.role == Role.TRAINER else r.replicas for r in self.roles)


def to_json(spec: JobSpec) -> dict[str, Any]:
    """Plain JSON values only; `from_json(to_json(spec)) == spec`."""
    return {
        "name": spec.name,
        "mode": spec.mode.value,
        "roles": [
            {
                "role": r.role.value,
                "replicas": r.replicas,
                "min_replicas": r.min_replicas,
                "max_replicas": r.max_replicas,
                "cpu_milli": r.resources.cpu_milli,
                "memory_bytes": r.resources.memory_bytes,
                "gpu": r.resources.gpu,
                **({"template": dict(r.template)} if r.template is not None else {}),
            }
            for r in spec.roles
        ],
        "entry": spec.entry,
        "topology": spec.topology,
        "package": spec.package,
        "package_digest": spec.package_digest,
        "cluster": spec.cluster,
        "runtime": spec.runtime,
        "registry": spec.registry,
        "env": dict(spec.env),
        "passes": spec.passes,
        "priority": spec.priority.word,
        "wall_time_s": spec.wall_time_s,
        "restart": {
            "max_restarts": spec.restart.max_restarts,
            "exit_codes": sorted(spec.restart.exit_codes),
            "backoff_s": spec.restart.backoff_s,
            "backoff_cap_s": spec.restart.backoff_cap_s,
        },
        "clean": spec.clean.value,
        "fault_tolerant": spec.fault_tolerant,
        "grace_s": spec.grace_s,
        "labels": dict(spec.labels),
        "annotations": dict(spec.annotations),
        "may_borrow": spec.may_borrow,
        "group": spec.group,
    }


def _role_from_json(row: Mapping[str, Any]) -> RoleSpec:
    return RoleSpec(
        role=Role(row["role"]),
        replicas=row["replicas"],
        min_replicas=row["min_replicas"],
        max_replicas=row["max_replicas"],
        resources=Resources(row["cpu_milli"], row["memory_bytes"], row["gpu"]),
        template=row.get("template"),
    )


def from_json(body: Mapping[str, Any]) -> JobSpec:
    """The spec stored by `to_json`. Written by us, so a wrong shape is a plain exception."""
    restart = body["restart"]
    return JobSpec(
        name=body["name"],
        mode=Mode(body["mode"]),
        roles=tuple(_role_from_json(row) for row in body["roles"]),
        entry=body["entry"],
        topology=body["topology"],
        package=body["package"],
        package_digest=body["package_digest"],
        cluster=body["cluster"],
        runtime=body["runtime"],
        registry=body["registry"],
        env=dict(body["env"]),
        passes=body["passes"],
        priority=Priority[body["priority"].upper()],
        wall_time_s=body["wall_time_s"],
        restart=RestartRule(
            max_restarts=restart["max_restarts"],
            exit_codes=frozenset(restart["exit_codes"]),
            backoff_s=restart["backoff_s"],
            backoff_cap_s=restart["backoff_cap_s"],
        ),
        clean=CleanPolicy(body["clean"]),
        fault_tolerant=body["fault_tolerant"],
        grace_s=body["grace_s"],
        labels=dict(body["labels"]),
        # Specs stored before these existed have none of them.
        annotations=dict(body.get("annotations", {})),
        may_borrow=body.get("may_borrow", False),
        group=body.get("group", ""),
    )
