"""How long the planner takes with 1,000 queued jobs on a busy cluster.

Measured: one `plan` (a decision and a reason for every job) and one full `explain` (estimate and
remedies included) of the last job in the queue, which is the dearest to explain. The floor is
sorting the same 1,000 jobs by priority and age, which no planner can do without. The bar is for one
node, as the embedded engine has, without groups and with 20 of them (guarantees, limits, weights,
and every fifth job a borrower); the same queue before 32 nodes is measured for comparison. A
cluster as the operator plans for has 1,000 nodes, all partly used by 2,000 running jobs of 4 pods,
with the same 20 groups: there planning is bounded by pauses, and the bar keeps the pauses short.

Times are CPU times of this process: the planner waits for nothing, so on an idle machine they are
the wall-clock times, and on a busy one they still are the planner's own.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from _report import Report, median, run

from paddlecloud.core.jobspec import JobSpec, Role
from paddlecloud.scheduling.explain import explain
from paddlecloud.scheduling.ordering import queue_key
from paddlecloud.scheduling.plan import plan
from paddlecloud.scheduling.snapshot import Group, JobView, Node, Snapshot
from paddlecloud.testing.builders import (
    NOW,
    account_number,
    make_group,
    make_job,
    make_node,
    make_quota,
    make_resources,
)

QUEUED = 1000
BAR_MS = 100.0
LARGE_BAR_MS = 1000.0
ROUNDS = 15


def make_groups() -> dict[str, Group]:
    """A group per account: a third has a guarantee, a third a limit, weights differ."""
    made = {}
    for number in range(1, 21):
        guarantee = make_quota(cpu="4", memory="8Gi") if number % 3 == 0 else None
        limit = make_quota(cpu="32", replicas=60) if number % 3 == 1 else None
        name = f"user{number}"
        made[name] = make_group(name, guarantee, limit, weight=1 + number % 4)
    return made


def make_queue(nodes: Sequence[Node], groups: Mapping[str, Group]) -> Snapshot:
    """1,000 jobs wait: 20 accounts, half with a quota, all sizes, some elastic, some bounded."""
    dice = random.Random(1)
    jobs = []
    for index in range(QUEUED + 60):
        least = dice.randint(1, 8)
        account = f"user{dice.randint(1, 20)}"
        job = make_job(
            f"job-{index:04}",
            account=account,
            group=account if groups else "",
            may_borrow=index % 5 == 0,
            age_s=dice.randint(1, 20_000),
            trainers=least,
            most=least * dice.choice([1, 1, 1, 4]),
            cpu=dice.choice(["500m", "1", "2", "4"]),
            memory=dice.choice(["1Gi", "2Gi", "10Gi"]),
            gpu=dice.choice([0, 0, 0, 1]),
            pservers=dice.choice([0, 0, least]),
            psmemory="1Gi",
            priority=dice.choice(["low", "normal", "normal", "normal", "high"]),
            wall_time_s=dice.choice([0, 600, 3600, 86400]),
        )
        jobs.append(job)
    quotas = {f"user{number}": make_quota(cpu="24", replicas=40) for number in range(1, 11)}
    by_id = {account_number(name): quota for name, quota in quotas.items()}
    empty = Snapshot(NOW, tuple(nodes), tuple(jobs), by_id, groups)
    return fill(empty, dice)


def fill(empty: Snapshot, dice: random.Random) -> Snapshot:
    """Let the first jobs run, so that the queue meets a full cluster; keep 1,000 waiting."""
    decided = plan(empty)
    running, waiting = [], []
    for job in empty.jobs:
        trainers = decided.grants[job.job_id].trainers
        if trainers:
            left_s = dice.choice([None, float(dice.randint(60, 7200))])
            placed = decided.placements[job.job_id]
            started_at = NOW - dice.randint(1, 5000)
            running.append(
                replace(
                    job, granted=trainers, placed=placed, started_at=started_at, remaining_s=left_s
                )
            )
        else:
            waiting.append(job)
    return replace(empty, jobs=(*running, *waiting[:QUEUED]))


def make_large(groups: Mapping[str, Group]) -> Snapshot:
    """1,000 nodes with 8 of 32 cores left on each, and the queue, whose larger jobs do not fit."""
    names = [f"node-{number:04}" for number in range(1000)]
    nodes = [make_node("32", "256Gi", 8, name=name) for name in names]
    running = []
    for number in range(2000):
        account = f"user{1 + number % 20}"
        job = make_job(
            f"runs-{number:04}",
            account=account,
            group=account,
            age_s=30_000 + number,
            granted=4,
            placed={names[(4 * number + pod) % len(names)]: 1 for pod in range(4)},
            trainers=4,
            cpu="3",
            memory="4Gi",
        )
        running.append(job)
    waiting = [
        replace(
            job, granted=0, placed=(), started_at=None, remaining_s=None, spec=_larger(job.spec)
        )
        for job in make_queue(nodes[:1], groups).jobs
    ]
    return Snapshot(NOW, tuple(nodes), (*running, *waiting[:QUEUED]), {}, groups)


def _larger(spec: JobSpec) -> JobSpec:
    """Each trainer needs more than any node has left."""
    roles = [
        replace(role, resources=make_resources("9", "8Gi")) if role.role is Role.TRAINER else role
        for role in spec.roles
    ]
    return replace(spec, roles=tuple(roles))


def median_ms(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        begin_s = time.process_time()
        work()
        times.append((time.process_time() - begin_s) * 1000)
    return median(times)


def measure_nodes(
    report: Report,
    prefix: str,
    nodes: Sequence[Node],
    bar_ms: float | None,
    groups: Mapping[str, Group] | None = None,
) -> None:
    measure_queue(report, prefix, make_queue(nodes, groups or {}), bar_ms)


def measure_queue(report: Report, prefix: str, snapshot: Snapshot, bar_ms: float | None) -> None:
    order = plan(snapshot).order
    waiting: list[JobView] = [job for job in snapshot.jobs if not job.granted]
    plan_ms = median_ms(lambda: plan(snapshot))
    explain_ms = median_ms(lambda: explain(snapshot, order[-1]))
    floor_ms = median_ms(lambda: sorted(waiting, key=queue_key))
    report.note(f"{prefix}queued", len(order))
    report.note(f"{prefix}running", len(snapshot.jobs) - len(waiting))
    report.add(f"{prefix}plan_ms", plan_ms)
    report.add(f"{prefix}explain_one_ms", explain_ms)
    report.add(f"{prefix}plan_and_explain_ms", plan_ms + explain_ms, at_most=bar_ms)
    report.add(f"{prefix}floor_sort_ms", floor_ms)
    report.add(f"{prefix}times_the_floor", (plan_ms + explain_ms) / floor_ms)


def measure(report: Report) -> None:
    measure_nodes(report, "", [make_node("64", "256Gi", 8)], BAR_MS)
    measure_nodes(report, "groups_", [make_node("64", "256Gi", 8)], BAR_MS, make_groups())
    many = [make_node("8", "32Gi", 1, name=f"node-{index:02}") for index in range(32)]
    measure_nodes(report, "nodes32_", many, None)
    measure_queue(report, "nodes1000_", make_large(make_groups()), LARGE_BAR_MS)


if __name__ == "__main__":
    run("plan", measure)
