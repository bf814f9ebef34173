"""What holds of every plan, whatever the jobs: checked by `simulation.check_plan` and here."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.jobspec import Priority
from paddlecloud.scheduling.admission import admit
from paddlecloud.scheduling.plan import plan
from paddlecloud.scheduling.snapshot import Snapshot
from tests.unit.scheduling.simulation import Simulation, check_plan
from tests.unit.scheduling.strategies import node_sets, snapshots, specs


@given(snapshots())
def test_every_plan_keeps_the_rules(snapshot: Snapshot) -> None:
    check_plan(snapshot, plan(snapshot))


@given(snapshots(), st.randoms())
def test_the_order_of_the_input_changes_nothing(snapshot: Snapshot, random: object) -> None:
    jobs, nodes = list(snapshot.jobs), list(snapshot.nodes)
    random.shuffle(jobs)  # type: ignore[attr-defined]
    random.shuffle(nodes)  # type: ignore[attr-defined]
    assert plan(replace(snapshot, jobs=tuple(jobs), nodes=tuple(nodes))) == plan(snapshot)


# --- nobody is starved ------------------------------------------------------------------------

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
