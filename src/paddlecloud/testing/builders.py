"""Small jobs, nodes and snapshots for tests, written as a person would say them.

Amounts are texts as users write them (`"8"`, `"500m"`, `"10Gi"`). Nothing is random and nothing is
read from the machine, so a test says everything that matters to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paddlecloud.core.jobspec import JobSpec, Mode, Priority, Role, RoleSpec
from paddlecloud.core.resources import Resources, parse_cpu, parse_memory
from paddlecloud.scheduling.snapshot import Group, JobView, Node, Placed, Quota, Snapshot

NOW = 1_000_000.0  # every snapshot's "now" unless a test moves it


def make_resources(cpu: str = "0", memory: str = "0", gpu: int = 0) -> Resources:
    return Resources(parse_cpu(cpu), parse_memory(memory), gpu)


def make_spec(
    name: str = "job",
    *,
    trainers: int = 1,
    cpu: str = "1",
    memory: str = "0",
    gpu: int = 0,
    least: int = -1,
    most: int = -1,
    pservers: int = 0,
    pscpu: str = "1",
    psmemory: str = "0",
    priority: str = "normal",
    wall_time_s: int = 0,
    group: str = "",
    may_borrow: bool = False,
) -> JobSpec:
    """A job of `trainers`, or elastic from `least` to `most`, and perhaps parameter servers."""
    roles = [
        RoleSpec(Role.TRAINER, trainers, make_resources(cpu, memory, gpu), least, most),
    ]
    if pservers:
        roles.append(RoleSpec(Role.PSERVER, pservers, make_resources(pscpu, psmemory)))
    mode = Mode.PS if pservers else Mode.COLLECTIVE if max(trainers, most) > 1 else Mode.SINGLE
    return JobSpec(
        name=name,
        mode=mode,
        roles=tuple(roles),
        entry="python train.py",
        priority=Priority[priority.upper()],
        wall_time_s=wall_time_s,
        group=group,
        may_borrow=may_borrow,
    )


def make_job(
    name: str = "job",
    *,
    job_id: str = "",
    account: str = "alice",
    account_id: int = 0,
    age_s: float = 60.0,
    granted: int = 0,
    ran_s: float | None = None,
    remaining_s: float | None = None,
    released: bool = False,
    used: Resources | None = None,
    placed: Mapping[str, int] | None = None,
    spec: JobSpec | None = None,
    **spec_words: object,
) -> JobView:
    """A live job, submitted `age_s` ago; `granted` makes it a running one (for `ran_s`).

    Its id is its name unless told, and an account's id follows from its name. `placed` says how
    many trainers are on which node.
    """
    if spec is None:
        spec = make_spec(name, **spec_words)  # type: ignore[arg-type]
    started_at = None
    if granted:
        started_at = NOW - (age_s if ran_s is None else ran_s)
    return JobView(
        job_id=job_id or spec.name,
        spec=spec,
        account_id=account_id or account_number(account),
        account=account,
        submitted_at=NOW - age_s,
        granted=granted,
        used=used,
        started_at=started_at,
        remaining_s=remaining_s,
        released=released,
        placed=tuple(Placed(Role.TRAINER, node, n) for node, n in (placed or {}).items()),
    )


def account_number(account: str) -> int:
    """A number of its own for every name (the same one each time)."""
    return int.from_bytes(account.encode(), "big")


def make_node(cpu: str = "8", memory: str = "64Gi", gpu: int = 0, *, name: str = "node") -> Node:
    return Node(name, make_resources(cpu, memory, gpu))


def make_quota(
    cpu: str | None = None,
    memory: str | None = None,
    gpu: int | None = None,
    replicas: int | None = None,
) -> Quota:
    return Quota(
        None if cpu is None else parse_cpu(cpu),
        None if memory is None else parse_memory(memory),
        gpu,
        replicas,
    )


def make_group(
    name: str,
    guarantee: Quota | None = None,
    limit: Quota | None = None,
    weight: int = 1,
) -> Group:
    return Group(name, guarantee or Quota(), limit or Quota(), weight)


def make_snapshot(
    *jobs: JobView,
    cpu: str = "8",
    memory: str = "64Gi",
    gpu: int = 0,
    nodes: Sequence[Node] = (),
    quotas: Mapping[str, Quota] | None = None,
    groups: Sequence[Group] = (),
    now: float = NOW,
    private: bool = False,
) -> Snapshot:
    """One node of that size, or the given nodes. Quotas are by account name."""
    return Snapshot(
        now=now,
        nodes=tuple(nodes) or (make_node(cpu, memory, gpu),),
        jobs=jobs,
        quotas={account_number(name): quota for name, quota in (quotas or {}).items()},
        groups={group.name: group for group in groups},
        private=private,
    )
