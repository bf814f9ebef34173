"""Who starts, at which size: named cases on small clusters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paddlecloud.core.jobspec import Role
from paddlecloud.core.resources import Resources
from paddlecloud.scheduling.plan import Plan, plan
from paddlecloud.scheduling.snapshot import JobView, Placed, Snapshot
from paddlecloud.testing.builders import make_job, make_node, make_quota, make_snapshot


def grants(snapshot: Snapshot) -> dict[str, int]:
    return {job_id: grant.trainers for job_id, grant in plan(snapshot).grants.items()}


# --- order ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            make_job("first", priority="high", age_s=1),
            make_job("second", age_s=100),
            id="a higher priority before an older job",
        ),
        pytest.param(
            make_job("first", age_s=100), make_job("second", age_s=1), id="the older before"
        ),
        pytest.param(
            make_job("z", job_id="first"), make_job("a", job_id="second"), id="the lower id before"
        ),
        pytest.param(
            make_job("first", priority="normal", age_s=1),
            make_job("second", priority="low", age_s=100),
            id="low comes last",
        ),
    ],
)
def test_starts_the_one_that_comes_first(first: JobView, second: JobView) -> None:
    assert grants(make_snapshot(second, first, cpu="1")) == {"first": 1, "second": 0}
    assert plan(make_snapshot(second, first, make_job("full", granted=1), cpu="1")).order == (
        "first",
        "second",
    )


# --- whole jobs -------------------------------------------------------------------------------


def test_starts_a_job_whole() -> None:
    decided = plan(make_snapshot(make_job("ps", trainers=3, pservers=2, pscpu="2"), cpu="7"))
    assert decided.grants["ps"].trainers == 3
    assert decided.placements["ps"] == (
        Placed(Role.PSERVER, "node", 2),
        Placed(Role.TRAINER, "node", 3),
    )


@pytest.mark.parametrize(
    "job",
    [
        make_job("big", trainers=3, pservers=2, pscpu="2"),
        make_job("big", trainers=7),
        make_job("big", memory="33Gi", trainers=2),
        make_job("big", gpu=1, trainers=3),
    ],
)
def test_starts_nothing_of_a_job_that_does_not_fit_whole(job: JobView) -> None:
    other = make_job("other", granted=1, cpu="2", memory="1Gi")
    assert grants(make_snapshot(other, job, cpu="8", memory="64Gi", gpu=2))["big"] == 0


def test_every_replica_needs_a_node_of_its_own_size() -> None:
    nodes = [make_node("3", name="a"), make_node("3", name="b")]
    assert grants(make_snapshot(make_job("job", trainers=2, cpu="3"), nodes=nodes)) == {"job": 2}
    assert grants(make_snapshot(make_job("job", trainers=3, cpu="2"), nodes=nodes)) == {"job": 0}
    # Six cores are there, but no node has four of them.
    assert grants(make_snapshot(make_job("job", cpu="4"), nodes=nodes)) == {"job": 0}


def test_the_largest_replicas_are_placed_first() -> None:
    """In the order they are written the small ones would fill the only node the large fit on."""
    nodes = [make_node("4", name="a"), make_node("2", name="b")]
    job = make_job("ps", trainers=2, cpu="1", pservers=1, pscpu="4")
    decided = plan(make_snapshot(job, nodes=nodes))
    assert decided.placements["ps"] == (Placed(Role.PSERVER, "a", 1), Placed(Role.TRAINER, "b", 2))


# --- sizes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("free_cpu", "granted"), [("1", 0), ("2", 2), ("3", 3), ("7", 7), ("8", 8), ("9", 8)]
)
def test_an_elastic_job_starts_at_the_largest_size_that_fits(free_cpu: str, granted: int) -> None:
    job = make_job("elastic", trainers=2, least=2, most=8)
    assert grants(make_snapshot(job, cpu=free_cpu)) == {"elastic": granted}


def test_an_elastic_job_never_starts_without_a_trainer() -> None:
    job = make_job("elastic", trainers=2, least=0, most=4)
    assert grants(make_snapshot(job, cpu="3")) == {"elastic": 3}
    waits = plan(make_snapshot(job, make_job("full", cpu="3", granted=1), cpu="3"))
    assert waits.grants["elastic"].reason == "waits for 1 cpu: 0 free; full (alice) holds 3"


def test_the_size_of_an_elastic_job_stays_within_its_quota() -> None:
    job = make_job("elastic", least=2, most=8)
    quotas = {"alice": make_quota(replicas=5)}
    assert grants(make_snapshot(job, quotas=quotas)) == {"elastic": 5}


def test_says_why_an_elastic_job_is_smaller_than_it_could_be() -> None:
    running = make_job("elastic", least=2, most=8, granted=3)
    fresh = make_job("elastic", least=2, most=8)
    for job in (running, fresh):
        reason = plan(make_snapshot(job, cpu="3")).grants["elastic"].reason
        assert reason == ("has 3 of up to 8 trainers: as many as there was room for at the start")
    assert plan(make_snapshot(fresh, cpu="8")).grants["elastic"].reason == ""


def test_running_jobs_keep_their_size() -> None:
    small = make_job("small", least=1, most=8, granted=2)
    urgent = make_job("urgent", trainers=8, priority="very_high")
    assert grants(make_snapshot(small, urgent)) == {"small": 2, "urgent": 0}
    assert grants(make_snapshot(small)) == {"small": 2}


# --- what is held -----------------------------------------------------------------------------


def test_a_job_that_is_being_ended_still_holds_what_it_holds() -> None:
    ending = make_job("ending", trainers=6, granted=6, released=True)
    decided = plan(make_snapshot(ending, make_job("next", trainers=4)))
    assert decided.grants["ending"].trainers == 6
    assert decided.grants["next"].trainers == 0
    assert decided.order == ("next",)


def test_a_cancelled_job_in_the_queue_wants_nothing() -> None:
    gone = make_job("gone", trainers=8, released=True)
    assert grants(make_snapshot(gone, make_job("next", trainers=8))) == {"gone": 0, "next": 8}


def test_what_a_job_really_uses_counts_more_than_its_grant() -> None:
    shrunk = make_job("shrunk", trainers=8, granted=8, used=Resources(cpu_milli=2000))
    assert grants(make_snapshot(shrunk, make_job("next", trainers=6)))["next"] == 6
    stopping = make_job("stopping", trainers=8, used=Resources(cpu_milli=6000))
    assert grants(make_snapshot(stopping, make_job("next", trainers=4)))["next"] == 0


def test_where_replicas_are_counts_more_than_what_is_used() -> None:
    nodes = [make_node("4", name="a"), make_node("4", name="b")]
    there = make_job("there", trainers=4, granted=4, placed={"b": 4})
    decided = plan(make_snapshot(there, make_job("next", cpu="4"), nodes=nodes))
    assert decided.placements["next"] == (Placed(Role.TRAINER, "a", 1),)
    assert decided.placements["there"] == there.placed


def test_jobs_with_unknown_places_fill_the_nodes_in_the_order_they_started() -> None:
    nodes = [make_node("4", name="a"), make_node("4", name="b")]
    old = make_job("old", cpu="3", granted=1, ran_s=100)
    new = make_job("new", cpu="2", granted=1, ran_s=10)
    fits = make_job("fits", cpu="3")
    for jobs in ((old, new, fits), (fits, new, old)):
        decided = plan(make_snapshot(*jobs, nodes=nodes))
        assert decided.placements["fits"] == (Placed(Role.TRAINER, "b", 1),)
    assert grants(make_snapshot(old, new, make_job("big", cpu="4"), nodes=nodes))["big"] == 0


def test_a_node_that_is_gone_holds_nothing() -> None:
    lost = make_job("lost", trainers=4, granted=4, placed={"gone": 4})
    assert grants(make_snapshot(lost, make_job("next", trainers=8)))["next"] == 8


def test_an_over_full_node_starts_nothing_that_needs_it() -> None:
    fat = make_job("fat", cpu="12", granted=1)
    assert grants(make_snapshot(fat, make_job("next", cpu="1")))["next"] == 0
    assert grants(make_snapshot(fat, make_job("free", cpu="0", memory="1Gi")))["free"] == 1
    nodes = [make_node("4", name="a"), make_node("4", name="b")]
    over_full = make_job("fat", cpu="12", granted=1, placed={"a": 1})
    decided = plan(make_snapshot(over_full, make_job("next", cpu="4"), nodes=nodes))
    assert decided.placements["next"] == (Placed(Role.TRAINER, "b", 1),)


# --- quota ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "quota",
    [
        make_quota(cpu="4"),
        make_quota(memory="4Gi"),
        make_quota(gpu=4),
        make_quota(replicas=4),
    ],
    ids=["cpu", "memory", "gpu", "replicas"],
)
def test_no_account_gets_more_than_its_quota(quota: object) -> None:
    jobs = [make_job(f"job-{i}", trainers=2, memory="1Gi", gpu=1) for i in range(3)]
    snapshot = make_snapshot(*jobs, gpu=8, quotas={"alice": quota})  # type: ignore[dict-item]
    assert grants(snapshot) == {"job-0": 2, "job-1": 2, "job-2": 0}


def test_an_account_over_its_quota_blocks_nobody_else() -> None:
    """Room kept for `waits` would leave 5 cpu beside it, too little for `other`."""
    full = make_job("full", trainers=2, granted=2)
    waits = make_job("waits", trainers=3, age_s=1000)
    other = make_job("other", trainers=6, account="bob")
    snapshot = make_snapshot(full, waits, other, quotas={"alice": make_quota(cpu="4")})
    assert grants(snapshot) == {"full": 2, "waits": 0, "other": 6}


def test_a_job_that_can_never_start_blocks_nobody() -> None:
    never = make_job("never", trainers=9, age_s=1000)
    too_big = make_job("too-big", trainers=4, account="bob", age_s=900)
    other = make_job("other", trainers=8)
    snapshot = make_snapshot(never, too_big, other, quotas={"bob": make_quota(cpu="3")})
    assert grants(snapshot) == {"never": 0, "too-big": 0, "other": 8}


def test_small_jobs_of_an_account_do_not_starve_its_big_one() -> None:
    """The big one waits for the quota; what the account frees is kept for it."""
    running = make_job("running", trainers=2, granted=2)
    big = make_job("big", trainers=4, age_s=1000)
    small = make_job("small")
    decided = plan(make_snapshot(running, big, small, quotas={"alice": make_quota(cpu="4")}))
    assert decided.order == ("big", "small")
    assert decided.grants["small"].reason == "waits behind big (submitted earlier)"


def test_small_jobs_share_what_the_big_one_leaves_of_the_quota() -> None:
    running = make_job("running", trainers=3, granted=3)
    big = make_job("big", trainers=4, age_s=1000)
    small = [make_job(f"small-{i}") for i in range(3)]
    decided = plan(make_snapshot(running, big, *small, quotas={"alice": make_quota(cpu="6")}))
    assert decided.order == ("big", "small-2")


def test_only_the_accounts_own_jobs_give_quota_back() -> None:
    theirs = make_job("theirs", trainers=4, granted=4, account="bob", age_s=5000)
    running = make_job("running", trainers=2, granted=2)
    big = make_job("big", trainers=4, age_s=1000)
    quotas = {"alice": make_quota(cpu="4")}
    decided = plan(make_snapshot(theirs, running, big, make_job("small"), quotas=quotas))
    assert decided.order == ("big", "small")


def test_the_quota_that_the_head_will_need_is_kept_for_it() -> None:
    """`late` would fit beside the head on the node, but not in the quota of their account."""
    busy = make_job("busy", trainers=5, granted=5, account="bob")
    head = make_job("head", trainers=4, age_s=1000)
    late = make_job("late", trainers=1)
    quotas = {"alice": make_quota(cpu="4")}
    assert grants(make_snapshot(busy, head, late, quotas=quotas))["late"] == 0
    assert grants(make_snapshot(busy, head, late))["late"] == 1


def test_a_quota_that_shrank_stops_nobody_and_starts_nobody() -> None:
    running = make_job("running", trainers=4, granted=4)
    snapshot = make_snapshot(running, make_job("next"), quotas={"alice": make_quota(cpu="2")})
    assert grants(snapshot) == {"running": 4, "next": 0}


def test_replicas_in_use_may_differ_from_the_grant() -> None:
    running = replace(make_job("running", trainers=4, granted=4), replicas_used=1)
    snapshot = make_snapshot(running, make_job("next"), quotas={"alice": make_quota(replicas=2)})
    assert grants(snapshot)["next"] == 1


# --- the answer -------------------------------------------------------------------------------


def test_an_empty_cluster_plans_nothing() -> None:
    assert plan(make_snapshot()) == Plan({}, ())


def test_a_cluster_without_nodes_starts_nothing() -> None:
    snapshot = replace(make_snapshot(make_job("job"), make_job("idle", cpu="0")), nodes=())
    decided = plan(snapshot)
    assert (
        decided.grants["job"].reason == "can never start: a trainer needs 1 cpu, the cluster has 0"
    )
    assert decided.grants["idle"].reason.startswith("can never start")


def test_grants_carry_the_revision_of_the_snapshot() -> None:
    snapshot = replace(make_snapshot(make_job("job")), revision=7)
    assert plan(snapshot).grants["job"].revision == 7


def test_a_waiting_job_says_why_for_programs_too() -> None:
    decided = plan(make_snapshot(make_job("never", trainers=9), make_job("runs")))
    assert decided.waits["never"].cause == "too_big"
    assert "runs" not in decided.waits
    assert decided.victims == {}
