"""Random clusters and queues, small enough that everything is contested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from paddlecloud.core.jobspec import JobSpec, Priority, Role, RoleSpec
from paddlecloud.core.resources import Resources
from paddlecloud.scheduling.plan import plan
from paddlecloud.scheduling.snapshot import JobView, Node, Quota, Snapshot
from paddlecloud.testing.builders import NOW, make_spec

resources = st.builds(
    Resources,
    cpu_milli=st.integers(0, 6).map(lambda n: n * 500),
    memory_bytes=st.integers(0, 4),
    gpu=st.integers(0, 1),
)
big_resources = st.builds(
    Resources,
    cpu_milli=st.integers(0, 16).map(lambda n: n * 500),
    memory_bytes=st.integers(0, 12),
    gpu=st.integers(0, 3),
)


def _nodes(totals: Sequence[Resources]) -> tuple[Node, ...]:
    return tuple(Node(f"n{index}", total) for index, total in enumerate(totals))


node_sets = st.lists(big_resources, min_size=1, max_size=3).map(_nodes)


@st.composite
def specs(draw: st.DrawFn, *, one_role: bool = False, rigid: bool = False) -> JobSpec:
    least = draw(st.integers(1, 4))
    most = least if rigid else draw(st.integers(least, 6))
    roles = [RoleSpec(Role.TRAINER, least, draw(resources), least, most)]
    if not one_role and draw(st.booleans()):
        roles.append(RoleSpec(Role.PSERVER, draw(st.integers(1, 3)), draw(resources)))
    return replace(
        make_spec("x"),
        roles=tuple(roles),
        priority=draw(st.sampled_from(Priority)),
        wall_time_s=draw(st.sampled_from([0, 0, 60, 600, 5000])),
    )


@st.composite
def waiting_jobs(draw: st.DrawFn, index: int) -> JobView:
    return JobView(
        job_id=f"job-{index}",
        spec=replace(draw(specs()), name=f"name{index}"),
        account_id=draw(st.integers(1, 3)),
        account="somebody",
        submitted_at=NOW - draw(st.sampled_from([1.0, 1.0, 2.0, 50.0, 5000.0])),
    )


limits = st.none() | st.integers(0, 8)
quotas = st.builds(
    Quota,
    cpu_milli=limits.map(lambda n: n if n is None else n * 1000),
    memory_bytes=limits,
    gpu=limits,
    replicas=limits,
)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Jobs in two waves: those the planner lets start first run when the second arrives."""
    count = draw(st.integers(0, 7))
    first = Snapshot(
        NOW,
        draw(node_sets),
        tuple(draw(waiting_jobs(index)) for index in range(count)),
        draw(st.dictionaries(st.integers(1, 3), quotas, max_size=2)),
    )
    decided = plan(first)
    running = [
        replace(
            job,
            granted=decided.grants[job.job_id].trainers,
            placed=decided.placements[job.job_id],
            started_at=draw(st.none() | st.floats(NOW - 500, NOW)),
            remaining_s=draw(st.none() | st.floats(0, 1000)),
            released=draw(st.integers(0, 5)) == 0,
        )
        for job in first.jobs
        if decided.grants[job.job_id].trainers
    ]
    later = [draw(waiting_jobs(count + index)) for index in range(draw(st.integers(0, 7)))]
    waiting = [job for job in first.jobs if not decided.grants[job.job_id].trainers]
    return replace(first, jobs=(*running, *waiting, *later))
