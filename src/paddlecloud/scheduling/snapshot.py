"""The planner's input: what a cluster has, who holds it, who wants it. Plain values.

The local engine, the EDL controller and the simulator all build this; `plan` only reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paddlecloud.core.jobspec import JobSpec, Role
from paddlecloud.core.resources import Resources


@dataclass(frozen=True, slots=True)
class Quota:
    """An amount of everything that is counted: as a limit None is none, as a guarantee nothing."""

    cpu_milli: int | None = None
    memory_bytes: int | None = None
    gpu: int | None = None
    replicas: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Whose jobs they are: what is theirs, what they may hold at most, their share of the rest."""

    name: str
    guarantee: Quota = Quota()
    limit: Quota = Quota()
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Node:
    """A place for replicas. The embedded engine has one; placement is per replica."""

    name: str
    total: Resources


@dataclass(frozen=True, slots=True)
class Placed:
    """So many replicas of one role on one node."""

    role: Role
    node: str
    count: int


@dataclass(frozen=True, slots=True)
class JobView:
    """One live job as the planner sees it.

    What it holds is `placed` if given, else `used`, else what its grant says. An engine with one
    node need not give `placed`; one with several gives back what `Plan.placements` said, or where
    the replicas really went.
    """

    job_id: str
    spec: JobSpec
    account_id: int
    account: str
    submitted_at: float
    granted: int = 0  # trainers granted now; 0 = waiting
    used: Resources | None = None  # what it holds now if other than the grant says
    replicas_used: int | None = None
    started_at: float | None = None
    remaining_s: float | None = None  # reported by the job or bounded by its wall time
    released: bool = False  # being ended: still holds what it holds, wants nothing more
    placed: tuple[Placed, ...] = ()  # where its replicas are, those still to be made included
    where: Mapping[Role, frozenset[str]] = field(default_factory=dict)  # roles not on every node

    @property
    def group(self) -> str:
        return self.spec.group

    @property
    def is_leaving(self) -> bool:
        """Holds something that it gives back soon: it is being ended, or was preempted."""
        return self.released or (not self.granted and (self.used is not None or bool(self.placed)))


@dataclass(frozen=True, slots=True)
class Snapshot:
    now: float
    nodes: tuple[Node, ...]
    jobs: tuple[JobView, ...]
    quotas: Mapping[int, Quota] = field(default_factory=dict)  # by account id
    groups: Mapping[str, Group] = field(default_factory=dict)  # by name; empty: there are none
    revision: int = 0
    private: bool = False  # True: no account is told the names of another's jobs
