"""The planner's view of a cluster, built from objects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.jobspec import Role
from paddlecloud.core.resources import Resources
from paddlecloud.engines.kubernetes.allocations import Allocation, read, write
from paddlecloud.engines.kubernetes.inventory import NodeSeen, PodSeen
from paddlecloud.engines.kubernetes.shares import own_group
from paddlecloud.engines.kubernetes.snapshots import (
    GROWTH,
    Cluster,
    LiveJob,
    build,
    free_nodes,
    free_room,
    id_of,
)
from paddlecloud.forms import paddlejob
from paddlecloud.scheduling.desk import Desk
from paddlecloud.scheduling.plan import plan
from paddlecloud.scheduling.snapshot import JobView, Node
from paddlecloud.scheduling.verdicts import Cause

NOW = 1_800_000_000.0
MADE = "2027-01-15T08:00:00Z"  # NOW


def nodes(*cpus: int) -> list[NodeSeen]:
    return [
        NodeSeen(f"n{index}", Resources(cpu * 1000, 0, 0), {}) for index, cpu in enumerate(cpus)
    ]


def job_body(name: str = "job", workers: int = 2, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"containers": [container], **spec.pop("pod", {})}}
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"u-{name}",
            "generation": 1,
            "creationTimestamp": MADE,
            "annotations": spec.pop("annotations", {}),
        },
        "spec": {"worker": {"replicas": workers, "template": template}, **spec},
    }


def live(body: dict[str, Any], *pods: PodSeen, granted: int | None = None) -> LiveJob:
    known = None if granted is None else Allocation(granted)
    return LiveJob(body, paddlejob.parse(body)[0], pods, known)


def pod(index: int, node: str = "", cpu: int = 1, **more: Any) -> PodSeen:
    slot = (Role.TRAINER, index)
    needs = Resources(cpu * 1000, 0, 0)
    return PodSeen("ns", f"job-worker-{index}", node, needs, True, "u-job", slot, **more)


def view_of(job: LiveJob, *more: LiveJob, has: list[NodeSeen] | None = None) -> JobView:
    found = build(Cluster(has or nodes(8, 8), [job, *more]), NOW)
    return next(view for view in found.jobs if view.job_id == id_of(job.body))


def held(view: JobView) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in view.placed:
        found[part.node] = found.get(part.node, 0) + part.count
    return found


def test_counts_what_others_hold():
    stranger = PodSeen("x", "p", "n0", Resources(3000, 0, 0))
    gone = replace(stranger, name="q", is_over=True)
    cluster = Cluster(nodes(8, 8), strangers=[stranger, gone])
    assert free_nodes(cluster) == (
        Node("n0", Resources(5000, 0, 0)),
        Node("n1", Resources(8000, 0, 0)),
    )


def test_waits_for_pods_of_jobs_that_have_ended():
    left = replace(pod(0, "n0", cpu=5), owner="u-gone")
    waits = live(job_body("waits", workers=1, cpu="4"))
    decided = plan(build(Cluster(nodes(8), [waits], leftovers=[left]), NOW))
    assert decided.waits[id_of(waits.body)].cause == Cause.NO_ROOM


def test_leaves_out_nodes_that_cannot_be_used():
    cordoned = replace(nodes(8)[0], is_usable=False)
    assert free_nodes(Cluster([cordoned])) == ()


def test_sees_a_new_job_as_waiting():
    view = view_of(live(job_body()))
    assert (view.granted, view.placed, view.account, view.group) == (0, (), "ns", own_group("ns"))
    assert view.submitted_at == NOW


def test_holds_the_pods_where_they_are():
    view = view_of(live(job_body(), pod(0, "n1"), pod(1, "n1"), granted=2))
    assert (view.granted, held(view)) == (2, {"n1": 2})


def test_guesses_a_place_for_pods_that_have_none():
    first = live(job_body("first", cpu="3"), granted=2)
    view = view_of(live(job_body(cpu="3"), pod(0, "n1"), granted=2), first, has=nodes(6, 6))
    assert held(view) == {"n1": 2}  # the older one is on n0


def test_holds_nothing_for_replicas_that_are_done():
    done = pod(0, "n0", is_over=True, ended_well=True)
    view = view_of(live(job_body(), done, pod(1, "n1"), granted=2))
    assert held(view) == {"n1": 1}
    all_done = [replace(pod(index, "n0"), is_over=True, ended_well=True) for index in (0, 1)]
    view = view_of(live(job_body(), *all_done, granted=2))
    assert (view.used, view.replicas_used, view.placed) == (Resources(), 0, ())


def test_keeps_room_for_a_replica_that_failed():
    view = view_of(live(job_body(), pod(0, "n0", is_over=True), pod(1, "n0"), granted=2))
    assert sum(held(view).values()) == 2


def test_takes_over_pods_that_nobody_has_granted():
    """Their operator died before it could say so, or does not plan."""
    assert view_of(live(job_body(), pod(0, "n0"))).granted == 2


def test_does_not_take_over_what_was_preempted():
    body = job_body()
    body["status"] = {"allocation": write(Allocation(0, preemptions=1, preempted_at=NOW))}
    leaving = view_of(live(body, pod(0, "n0", created_at=NOW - 5)))
    assert (leaving.granted, leaving.is_leaving) == (0, True)
    again = view_of(live(body, pod(0, "n0", created_at=NOW + 5)))
    assert again.granted == 2


def test_applies_for_what_a_running_job_wants_besides():
    body = job_body(workers=5)
    pods = [pod(index, "n0") for index in range(2)]
    found = build(Cluster(nodes(8), [live(body, *pods, granted=2)]), NOW)
    own, more = found.jobs
    assert (own.granted, own.spec.trainers.replicas) == (2, 2)
    assert (more.job_id, more.granted) == (own.job_id + GROWTH, 0)
    assert more.spec.trainers.replicas == 3
    assert plan(found).grants[more.job_id].trainers == 3


def test_lets_a_shrunk_job_hold_what_it_still_has():
    """Until its grant is less it may still be making pods, and then until they are gone."""
    pods = [pod(index, "n0") for index in range(3)]
    view = view_of(live(job_body(workers=1), *pods, granted=4))
    assert (view.granted, sum(held(view).values())) == (4, 4)
    view = view_of(live(job_body(workers=1), *pods, granted=1))
    assert (view.granted, held(view)) == (1, {"n0": 3})


def test_holds_what_a_leaving_job_has_and_nothing_else():
    body = job_body(suspend=True)
    view = view_of(live(body, pod(0, "n0"), granted=2))
    assert (view.granted, view.released, held(view)) == (0, True, {"n0": 1})
    assert build(Cluster(nodes(8), [live(body, granted=0)]), NOW).jobs == ()


def test_believes_a_little_of_when_it_was_submitted():
    for said, believed in ((NOW - 30.5, NOW - 30.5), (NOW - 9999, NOW), (NOW + 60, NOW)):
        notes = {"paddlepaddle.org/submitted-at": repr(said)}
        assert view_of(live(job_body(annotations=notes))).submitted_at == believed


def test_is_rigid():
    body = job_body(workers=2)
    body["spec"]["worker"] |= {"requests": 1, "limits": 8}
    decided = plan(build(Cluster(nodes(8), [live(body)]), NOW))
    assert decided.grants[id_of(body)].trainers == 2


def test_writes_and_reads_an_allocation():
    for one in (
        Allocation(3, 7),
        Allocation(0, 2, "waits", "NoRoom", 1, NOW + 0.25),
    ):
        assert read({"allocation": write(one)}) == one
    assert read({}) is None
    assert read({"allocation": {"workers": "3"}}) is None


# --- properties --------------------------------------------------------------------------------


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    has = nodes(*draw(st.lists(st.integers(0, 8), min_size=1, max_size=3)))
    jobs = []
    for number in range(draw(st.integers(0, 4))):
        workers, cpu = draw(st.integers(1, 4)), draw(st.integers(0, 4))
        name = f"job{number}"
        body = job_body(name, workers, str(cpu), suspend=draw(st.booleans()))
        pods = [
            replace(
                pod(index, draw(st.sampled_from(["", "n0", "n1", "gone"])), cpu),
                owner=f"u-{name}",
                is_over=draw(st.booleans()),
                ended_well=False,
                is_leaving=draw(st.booleans()),
                created_at=NOW,
            )
            for index in range(draw(st.integers(0, workers)))
        ]
        granted = draw(st.sampled_from([None, 0, workers, workers + 1]))
        jobs.append(live(body, *pods, granted=granted))
    strangers = [
        PodSeen("x", str(number), draw(st.sampled_from(["", "n0", "n2"])), Resources(1000, 0, 0))
        for number in range(draw(st.integers(0, 3)))
    ]
    return Cluster(has, jobs, strangers)


@given(clusters())
def test_counts_every_granted_replica_once(cluster):
    """Each has one place: that of its pod, or a guessed one; none is lost or counted twice."""
    for view, job in zip(
        [one for one in build(cluster, NOW).jobs if not one.job_id.endswith(GROWTH)],
        [one for one in cluster.jobs if not one.is_leaving or _has_pods(one)],
        strict=True,
    ):
        placed = sum(held(view).values())
        alive = sum(bool(one.node) and not one.is_over for one in job.pods)
        assert placed == (max(view.granted, alive) if view.granted else alive)


def _has_pods(job: LiveJob) -> bool:
    return any(one.node and not one.is_over for one in job.pods)


@given(clusters())
def test_gives_no_more_than_there_is(cluster):
    """A plan on it never starts anything on a node that is full."""
    snapshot = build(cluster, NOW)
    before = Desk(snapshot).room
    decided = plan(snapshot)
    for view in snapshot.jobs:
        if not view.granted and decided.grants[view.job_id].trainers:
            each = view.spec.trainers.resources.cpu_milli
            for part in decided.placements[view.job_id]:
                before[part.node] = (before[part.node][0] - each * part.count, 0, 0)
                assert before[part.node][0] >= 0 or each == 0


@given(clusters())
def test_finds_the_room_that_the_planner_finds(cluster):
    """Where a place had to be guessed the nodes may differ, but not the sum."""
    found, planned = free_room(cluster), Desk(build(cluster, NOW)).room
    assert found.keys() == planned.keys()
    assert sum(free[0] for free in found.values()) == sum(free[0] for free in planned.values())


@given(clusters())
def test_is_the_same_in_any_order(cluster):
    turned = replace(cluster, nodes=cluster.nodes[::-1], jobs=cluster.jobs[::-1])
    one, other = plan(build(cluster, NOW)), plan(build(turned, NOW))
    assert one.grants == other.grants
