"""A clock, a queue and the planner: jobs arrive, start when the plan says so, run and end.

Every plan on the way is checked for what must hold of any plan: no node and no quota is ever
over-full, jobs start whole, running jobs keep their size, the queue is in order and everybody in it
has a reason, the first waits behind nobody, and planning again changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from paddlecloud.core.jobspec import JobSpec
from paddlecloud.core.resources import Resources
from paddlecloud.scheduling.plan import Plan, plan
from paddlecloud.scheduling.snapshot import JobView, Node, Quota, Snapshot
from paddlecloud.testing.builders import NOW


def carried_out(snapshot: Snapshot, decided: Plan) -> Snapshot:
    """The snapshot an engine would give right after it has obeyed the plan."""
    jobs = tuple(
        replace(
            job,
            granted=decided.grants[job.job_id].trainers,
            placed=decided.placements.get(job.job_id, job.placed),
        )
        for job in snapshot.jobs
    )
    return replace(snapshot, jobs=jobs)


def held_on(snapshot: Snapshot, node: str) -> Resources:
    held = Resources()
    for job in snapshot.jobs:
        for part in job.placed:
            if part.node == node:
                role = job.spec.role(part.role)
                assert role is not None
                held += role.resources * part.count
    return held


def check_plan(snapshot: Snapshot, decided: Plan) -> None:
    after = carried_out(snapshot, decided)
    _check_queue(after, decided)
    _check_sizes(snapshot, after)
    _check_nodes(after)
    _check_quotas(snapshot, after)
    again = plan(after)
    assert again.grants == decided.grants, "planning again changed something"
    assert again.order == decided.order


def _check_queue(after: Snapshot, decided: Plan) -> None:
    """Those that wait are all there, in order, each with a reason of one line."""
    assert set(decided.grants) == {job.job_id for job in after.jobs}
    waiting = [job for job in after.jobs if not job.granted and not job.released]
    waiting.sort(key=lambda job: (-job.spec.priority, job.submitted_at, job.job_id))
    assert decided.order == tuple(job.job_id for job in waiting)
    for job in waiting:
        reason = decided.grants[job.job_id].reason
        assert reason, f"{job.job_id} waits without a reason"
        assert "\n" not in reason
    if waiting:
        assert "behind" not in decided.grants[decided.order[0]].reason


def _check_sizes(before: Snapshot, after: Snapshot) -> None:
    for old, new in zip(before.jobs, after.jobs, strict=True):
        if old.granted or old.released:
            assert new.granted == old.granted
            continue
        trainers = old.spec.trainers
        assert new.granted == 0 or trainers.min_replicas <= new.granted <= trainers.max_replicas
        placed = {role.role: 0 for role in old.spec.roles}
        for part in new.placed:
            placed[part.role] += part.count
        wanted = {
            role.role: new.granted if role is trainers else role.replicas for role in old.spec.roles
        }
        assert not new.granted or placed == wanted, "a job starts whole or not at all"


def _check_nodes(after: Snapshot) -> None:
    for node in after.nodes:
        held = held_on(after, node.name)
        assert held.fits(node.total), f"{node.name} is over-full: {held} of {node.total}"


def _check_quotas(before: Snapshot, after: Snapshot) -> None:
    started = {job.job_id for job in before.jobs if not job.granted}
    for account, quota in after.quotas.items():
        mine = [job for job in after.jobs if job.account_id == account and job.granted]
        if not any(job.job_id in started for job in mine):
            continue  # a quota that shrank under running jobs takes nothing away
        used = sum((job.spec.resources_at(job.granted) for job in mine), Resources())
        for have, limit in (
            (used.cpu_milli, quota.cpu_milli),
            (used.memory_bytes, quota.memory_bytes),
            (used.gpu, quota.gpu),
            (sum(job.spec.replicas_at(job.granted) for job in mine), quota.replicas),
        ):
            assert limit is None or have <= limit, f"account {account} is over its quota"


@dataclass
class Simulation:
    """A cluster that obeys the planner; the test says who comes, who ends and when."""

    nodes: tuple[Node, ...]
    quotas: dict[int, Quota] = field(default_factory=dict)
    now: float = NOW
    jobs: dict[str, JobView] = field(default_factory=dict)

    def snapshot(self) -> Snapshot:
        return Snapshot(self.now, self.nodes, tuple(self.jobs.values()), self.quotas)

    def submit(self, job_id: str, spec: JobSpec, account_id: int = 1) -> None:
        view = JobView(job_id, spec, account_id, f"user{account_id}", self.now)
        self.jobs[job_id] = view

    def replan(self) -> None:
        snapshot = self.snapshot()
        decided = plan(snapshot)
        check_plan(snapshot, decided)
        for job in carried_out(snapshot, decided).jobs:
            started = self.now if job.granted and job.started_at is None else job.started_at
            self.jobs[job.job_id] = replace(job, started_at=started)

    def end(self, job_id: str) -> None:
        del self.jobs[job_id]

    def running(self) -> list[str]:
        return [job.job_id for job in self.jobs.values() if job.granted]

    def runs(self, job_id: str) -> bool:
        return self.jobs[job_id].granted > 0
