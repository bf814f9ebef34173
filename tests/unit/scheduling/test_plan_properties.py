"""What holds of every plan, whatever the jobs: checked by `simulation.check_plan` and here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.core.jobspec import JobSpec, Priority, Role, RoleSpec
from paddlecloud.core.resources import Resources
from paddlecloud.scheduling.admission import admit
from paddlecloud.scheduling.plan import plan
from paddlecloud.scheduling.snapshot import JobView, Node, Quota, Snapshot
from paddlecloud.testing.builders import NOW, make_spec
from tests.unit.scheduling.simulation import Simulation, check_plan

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


@given(snapshots())
def test_every_plan_keeps_the_rules(snapshot: Snapshot) -> None:
    check_plan(snapshot, plan(snapshot))


@given(snapshots(), st.randoms())
def test_the_order_of_the_input_changes_nothing(snapshot: Snapshot, random: object) -> None:
    jobs, nodes = list(snapshot.jobs), list(snapshot.nodes)
    random.shuffle(jobs)  # type: ignore[attr-defined]
    random.shuffle(nodes)  # type: ignore[attr-defined]
    assert plan(replace(snapshot, jobs=tuple(jobs), nodes=tuple(nodes))) == plan(snapshot)


@given(snapshots())
def test_nobody_is_planned_who_left(snapshot: Snapshot) -> None:
    decided = plan(snapshot)
    assert set(decided.grants) == {job.job_id for job in snapshot.jobs}
    assert set(decided.order) == {
        job.job_id
        for job in snapshot.jobs
        if not job.released and not decided.grants[job.job_id].trainers
    }
    keys = {job.job_id: (-job.spec.priority, job.submitted_at) for job in snapshot.jobs}
    assert [keys[job_id] for job_id in decided.order] == sorted(keys[i] for i in decided.order)


@given(snapshots())
def test_the_first_in_the_queue_never_waits_behind_anybody(snapshot: Snapshot) -> None:
    decided = plan(snapshot)
    if decided.order:
        first = decided.grants[decided.order[0]].reason
        assert "behind" not in first


# --- nobody is starved --------------------------------------------------------------------------

small = specs(rigid=True).map(lambda spec: replace(spec, priority=Priority.NORMAL))


@st.composite
def busy_clusters(draw: st.DrawFn, *, with_walls: bool) -> tuple[Simulation, str]:
    """A cluster on which some jobs run and a job waits at the head of the queue."""
    sim = Simulation(draw(node_sets))
    for index in range(draw(st.integers(1, 6))):
        spec = draw(small)
        wall_s = draw(st.integers(1, 8000)) if with_walls else 0
        sim.submit(f"first-{index}", replace(spec, wall_time_s=wall_s))
    sim.replan()
    sim.jobs = {job_id: job for job_id, job in sim.jobs.items() if job.granted}
    head = draw(specs(one_role=True, rigid=True))
    wall_s = draw(st.integers(1, 8000)) if with_walls else 0
    sim.submit("head", replace(head, priority=Priority.NORMAL, wall_time_s=wall_s))
    sim.now += 1
    return sim, "head"


@given(busy_clusters(with_walls=False), st.data())
def test_an_endless_stream_of_small_jobs_does_not_hold_the_head_back(
    cluster: tuple[Simulation, str], data: st.DataObject
) -> None:
    """Nobody knows when a job ends; the head starts once those that ran before it have ended."""
    sim, head = cluster
    sim.replan()
    before = [job_id for job_id in sim.running() if job_id != head]
    number = 0
    while before and not sim.runs(head):
        for _ in range(3):
            number += 1
            wall_s = data.draw(st.sampled_from([0, 1, 100]))
            sim.submit(f"small-{number}", replace(data.draw(small), wall_time_s=wall_s))
        sim.replan()
        sim.now += data.draw(st.sampled_from([1.0, 2000.0]))
        victim = data.draw(st.sampled_from(sim.running()))
        if victim not in before:
            sim.end(victim)
            sim.replan()
            victim = data.draw(st.sampled_from(before))
        before.remove(victim)
        sim.end(victim)
        sim.replan()
    verdict = admit(sim.snapshot()).verdicts.get(head)
    never = verdict is not None and verdict.cause == "too_big"
    assert sim.runs(head) or never


@settings(max_examples=150)
@given(busy_clusters(with_walls=True), st.data())
def test_no_backfill_delays_the_head_past_the_promised_start(
    cluster: tuple[Simulation, str], data: st.DataObject
) -> None:
    """All jobs are bounded: the head starts by the moment that was promised when it arrived."""
    sim, head = cluster
    reservation = admit(sim.snapshot()).desk.head
    sim.replan()
    if reservation is None:
        return
    promised = reservation.starts_at
    assert promised < math.inf
    ends = {job_id: sim.now + job.spec.wall_time_s for job_id, job in sim.jobs.items()}
    ends = {job_id: ends[job_id] - 1 for job_id in ends if sim.runs(job_id)}  # ran for a second
    number = 0
    while not sim.runs(head):
        for _ in range(data.draw(st.integers(0, 3))):
            number += 1
            wall_s = data.draw(st.integers(1, 9000))
            sim.submit(f"small-{number}", replace(data.draw(small), wall_time_s=wall_s))
        sim.replan()
        for job_id in sim.running():
            wall_s = sim.jobs[job_id].spec.wall_time_s
            ends.setdefault(job_id, sim.now + wall_s * data.draw(st.sampled_from([0.5, 1, 1])))
        next_end = min(ends.values())
        sim.now = max(sim.now, next_end)
        for job_id in [job_id for job_id, end in ends.items() if end <= sim.now]:
            del ends[job_id]
            sim.end(job_id)
        sim.replan()
        assert sim.runs(head) or sim.now < promised
    assert sim.now <= promised
