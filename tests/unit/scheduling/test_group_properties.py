"""What holds of every plan with groups, on clusters that got where they are by planning."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.jobspec import JobSpec, Priority, Role, RoleSpec
from paddlecloud.core.resources import Resources
from paddlecloud.scheduling.admission import admit
from paddlecloud.scheduling.groups import Groups
from paddlecloud.scheduling.placement import covers, plus
from paddlecloud.scheduling.plan import Plan, plan
from paddlecloud.scheduling.quotas import purse_of
from paddlecloud.scheduling.snapshot import Group, JobView, Node, Quota, Snapshot
from paddlecloud.scheduling.verdicts import Cause
from paddlecloud.testing.builders import NOW, make_spec

NAMES = ("a", "b", "c")
CAPACITY = Resources(cpu_milli=12_000, memory_bytes=12, gpu=3)


@st.composite
def jobs(draw: st.DrawFn, job_id: str) -> JobView:
    least = draw(st.integers(1, 3))
    most = draw(st.sampled_from([least, least, least + 3]))
    each = Resources(
        draw(st.integers(1, 4)) * 1000, draw(st.integers(0, 3)), draw(st.sampled_from([0, 0, 1]))
    )
    spec: JobSpec = replace(
        make_spec(job_id),
        roles=(RoleSpec(Role.TRAINER, least, each, least, most),),
        priority=draw(st.sampled_from([Priority.NORMAL, Priority.NORMAL, Priority.HIGH])),
        wall_time_s=draw(st.sampled_from([0, 0, 600])),
        group=draw(st.sampled_from(NAMES)),
        may_borrow=draw(st.booleans()),
    )
    age_s = draw(st.sampled_from([1.0, 2.0, 50.0]))
    return JobView(job_id, spec, 1, "user", NOW - age_s)


@st.composite
def groups(draw: st.DrawFn) -> dict[str, Group]:
    """At most all there is is guaranteed, and a limit never lies below a guarantee."""
    made = {}
    for name in NAMES:
        guarantee = Quota(
            draw(st.sampled_from([None, 0, 2000, 4000])),
            draw(st.sampled_from([None, 2, 4])),
            draw(st.sampled_from([None, 0, 1])),
        )
        limit = Quota(
            draw(st.sampled_from([None, 5000, 9000])), draw(st.sampled_from([None, 6])), None
        )
        made[name] = Group(name, guarantee, limit, draw(st.integers(1, 3)))
    return made


@dataclass
class Cluster:
    """Obeys the plan; those that are preempted take their time."""

    groups: dict[str, Group]
    jobs: dict[str, JobView] = field(default_factory=dict)
    now: float = NOW

    def snapshot(self) -> Snapshot:
        node = Node("n", CAPACITY)
        return Snapshot(self.now, (node,), tuple(self.jobs.values()), groups=self.groups)

    def replan(self) -> Plan:
        decided = plan(self.snapshot())
        for job_id, grant in decided.grants.items():
            job = self.jobs[job_id]
            if job_id in decided.preempted:
                job = replace(job, granted=0)  # it still is where it was
            elif grant.trainers and not job.granted:
                placed = decided.placements[job_id]
                job = replace(job, granted=grant.trainers, placed=placed, started_at=self.now)
            self.jobs[job_id] = job
        self.check(decided)
        return decided

    def let_them_stop(self) -> None:
        self.jobs = {
            job_id: replace(job, placed=(), started_at=None) if job.is_leaving else job
            for job_id, job in self.jobs.items()
        }

    def holds(self, job: JobView) -> tuple[int, ...]:
        count = sum(part.count for part in job.placed)
        each = job.spec.trainers.resources * count
        return (each.cpu_milli, each.memory_bytes, each.gpu, count)

    def check(self, decided: Plan) -> None:
        total, firm = (0, 0, 0, 0), dict.fromkeys(NAMES, (0, 0, 0, 0))
        held = dict(firm)
        for job in self.jobs.values():
            total = plus(total, self.holds(job))
            held[job.group] = plus(held[job.group], self.holds(job))
            if not job.spec.may_borrow:
                firm[job.group] = plus(firm[job.group], self.holds(job))
        capacity = (CAPACITY.cpu_milli, CAPACITY.memory_bytes, CAPACITY.gpu, 1 << 40)
        assert covers(capacity, total), "the cluster is over-full"
        for name in NAMES:
            limit = purse_of(self.groups[name].limit)
            assert covers(limit, held[name]), f"group {name} is over its limit"
        books = Groups(self.groups, capacity[:3])
        kept = (0, 0, 0, 0)
        for name in NAMES:
            pairs = zip(firm[name], books.guarantee(name), strict=True)
            kept = plus(kept, tuple(max(pair) for pair in pairs))
        assert covers(capacity, kept), "a guarantee could not be had back"
        for job_id in decided.preempted:
            assert self.jobs[job_id].spec.may_borrow, "an ordinary job was preempted"
        assert all(decided.grants[job_id].reason for job_id in decided.order)


@st.composite
def busy(draw: st.DrawFn) -> Cluster:
    cluster = Cluster(draw(groups()))
    number = 0
    for _ in range(draw(st.integers(1, 3))):
        for _ in range(draw(st.integers(0, 5))):
            number += 1
            cluster.jobs[f"job-{number}"] = draw(jobs(f"job-{number}"))
        cluster.replan()
        if draw(st.booleans()):
            cluster.let_them_stop()
        cluster.now += 10
    return cluster


@given(busy(), st.randoms())
def test_the_order_of_the_input_changes_nothing(cluster: Cluster, random: object) -> None:
    snapshot = cluster.snapshot()
    shuffled, named = list(snapshot.jobs), list(snapshot.groups.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    random.shuffle(named)  # type: ignore[attr-defined]
    other = replace(snapshot, jobs=tuple(shuffled), groups=dict(named))
    assert plan(other) == plan(snapshot)


@given(busy())
def test_planning_again_changes_nothing(cluster: Cluster) -> None:
    first = cluster.replan()
    if not first.preempted:
        again = cluster.replan()
        assert (again.grants, again.order) == (first.grants, first.order)


@given(busy())
def test_stopping_once_is_enough(cluster: Cluster) -> None:
    """What was asked to stop makes the room; while it stops nobody else is asked."""
    first = cluster.replan()
    again = cluster.replan()
    if first.preempted:
        assert again.preempted == {}


def test_who_was_stopped_for_its_own_group_is_not_first_again() -> None:
    """Else it would be started and stopped for ever, and the other never start."""

    def job(job_id: str, cpu_milli: int, group: str, may_borrow: bool) -> JobView:
        role = RoleSpec(Role.TRAINER, 1, Resources(cpu_milli, 0, 0), 1, 1)
        spec = replace(make_spec(job_id), roles=(role,), group=group, may_borrow=may_borrow)
        return JobView(job_id, spec, 1, "user", NOW - 1)

    cluster = Cluster({"a": Group("a", Quota(4000)), "b": Group("b"), "c": Group("c")})
    cluster.jobs = {"job-1": job("job-1", 4000, "a", True), "job-2": job("job-2", 8000, "b", False)}
    cluster.replan()
    assert all(each.granted for each in cluster.jobs.values())
    cluster.jobs["job-3"] = job("job-3", 1000, "a", False)
    for _ in range(3):
        cluster.replan()
        cluster.let_them_stop()
    assert cluster.jobs["job-3"].granted
    assert not cluster.jobs["job-1"].granted


@given(busy())
def test_a_guarantee_is_never_withheld_by_borrowers(cluster: Cluster) -> None:
    outcome = admit(cluster.snapshot())
    books = Groups(cluster.groups, (12_000, 12, 3))
    owed = []
    for job in outcome.queue:
        name = job.view.group
        covered = books.is_within(name, (0, 0, 0, 0), job.claim, strictly=True)
        if job.is_guaranteed and covered:
            cause = outcome.verdicts[job.view.job_id].cause
            assert cause in (Cause.RECLAIMING, Cause.OVER_LIMIT)
            if cause == Cause.RECLAIMING:
                owed.append(job)
    cluster.replan()
    cluster.let_them_stop()
    cluster.replan()
    for job in owed:
        # A job of its own group may have started larger than it must, and fill the guarantee.
        own = [
            cluster.holds(other)
            for other in cluster.jobs.values()
            if other.group == job.view.group and not other.spec.may_borrow
        ]
        firm = functools.reduce(plus, own, (0, 0, 0, 0))
        is_left = books.is_within(job.view.group, firm, job.claim, strictly=True)
        assert cluster.jobs[job.view.job_id].granted or not is_left


@given(busy(), st.data())
def test_no_group_starves(cluster: Cluster, data: st.DataObject) -> None:
    """Others bring job after job; as those that run end one by one, its first job starts too."""
    waiting = {name: [] for name in NAMES}  # type: dict[str, list[JobView]]
    for job in cluster.jobs.values():
        if not job.granted and not job.is_leaving:
            waiting[job.group].append(job)
    name = data.draw(st.sampled_from(NAMES))
    if not waiting[name]:
        return
    first = min(waiting[name], key=lambda job: (-job.spec.priority, job.submitted_at, job.job_id))
    others = [other for other in NAMES if other != name]
    for number in range(60):
        cluster.let_them_stop()
        cluster.replan()
        verdict = admit(cluster.snapshot()).verdicts.get(first.job_id)
        if cluster.jobs[first.job_id].granted or (verdict and verdict.cause in NEVER_STARTS):
            return
        fresh = replace(data.draw(jobs(f"new-{number}")), submitted_at=cluster.now)
        group = data.draw(st.sampled_from(others))
        spec = replace(fresh.spec, group=group, priority=Priority.NORMAL)
        cluster.jobs[fresh.job_id] = replace(fresh, spec=spec)
        cluster.replan()
        running = [job for job in cluster.jobs.values() if job.granted]
        if running:
            oldest = min(running, key=lambda job: (job.started_at or 0.0, job.job_id))
            del cluster.jobs[oldest.job_id]
        cluster.now += 100
    raise AssertionError(f"{first.job_id} of {name} never started")


NEVER_STARTS = (Cause.TOO_BIG, Cause.LIMIT_TOO_SMALL, Cause.ALL_GUARANTEED)
