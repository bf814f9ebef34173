"""What `explain` finds out about a waiting job."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from paddlecloud.scheduling.explain import (
    Blocker,
    Explanation,
    Holder,
    Remedy,
    explain,
    from_json,
    to_json,
    would_start,
)
from paddlecloud.scheduling.plan import plan
from paddlecloud.scheduling.snapshot import JobView, Snapshot
from paddlecloud.testing.builders import (
    account_number,
    make_job,
    make_node,
    make_quota,
    make_snapshot,
    make_spec,
)
from tests.unit.scheduling.strategies import snapshots

WIDE_DEEP = make_job("wide-deep", account="bob", trainers=4, granted=4, remaining_s=660)
RESNET = make_job("resnet", granted=1, remaining_s=60)
NIGHTLY = make_job(
    "nightly", account="bob", trainers=6, priority="high", wall_time_s=840, age_s=300
)
BIG = make_job("big", trainers=4, pservers=2, pscpu="2", age_s=240)


def explained(snapshot: Snapshot, job_id: str = "big") -> Explanation:
    found = explain(snapshot, job_id)
    assert found is not None
    return found


def changes(snapshot: Snapshot, job_id: str = "big") -> dict[str, str]:
    return {remedy.change: remedy.effect for remedy in explained(snapshot, job_id).remedies}


def test_tells_everything_about_a_waiting_job() -> None:
    later = make_job("later", trainers=5, age_s=1)
    assert explained(make_snapshot(WIDE_DEEP, RESNET, NIGHTLY, BIG, later)) == Explanation(
        position=2,
        queue_length=3,
        needs="8 cpu for 4 trainers + 2 pservers, all at once",
        reason="waits for 8 cpu: 3 free; wide-deep (bob) holds 4, resnet (alice) holds 1",
        blockers=(
            Blocker(
                "cpu", "8", "3", (Holder("wide-deep", "bob", "4"), Holder("resnet", "alice", "1"))
            ),
        ),
        ahead=("nightly (bob, priority high, needs 6 cpu)",),
        start_earliest_s=660.0,
        start_latest_s=1500.0,
        start_basis="wide-deep reports 11m left",
        remedies=(Remedy("--priority very_high", "starts in 11m (before nightly)"),),
    )


@pytest.mark.parametrize("job_id", ["wide-deep", "unknown", "gone", "starts"])
def test_explains_only_jobs_that_wait(job_id: str) -> None:
    gone = make_job("gone", released=True)
    assert explain(make_snapshot(WIDE_DEEP, gone, make_job("starts")), job_id) is None


# --- when -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jobs", "earliest_s", "latest_s", "basis"),
    [
        pytest.param(
            [make_job("busy", trainers=8, granted=8), BIG],
            None,
            None,
            "running jobs do not report",
            id="nobody reports",
        ),
        pytest.param(
            [make_job("busy", trainers=8, granted=8, wall_time_s=100, ran_s=40), BIG],
            60.0,
            60.0,
            "busy ends within 1m by its wall time",
            id="a wall time is as good as a report",
        ),
        pytest.param(
            [
                make_job(
                    "busy", trainers=8, granted=8, wall_time_s=100, ran_s=40, remaining_s=59.5
                ),
                BIG,
            ],
            59.5,
            59.5,
            "busy ends within 59s by its wall time",
            id="what is left of a wall time is no report",
        ),
        pytest.param(
            [make_job("busy", trainers=8, granted=8, released=True), BIG],
            10.0,
            10.0,
            "busy is ending",
            id="the job in the way is being ended",
        ),
        pytest.param(
            [
                make_job("busy", trainers=8, granted=8, remaining_s=60),
                make_job("first", trainers=1, age_s=999),
                BIG,
            ],
            60.0,
            None,
            "busy reports 1m left",
            id="a job ahead may run for ever",
        ),
        pytest.param(
            [
                make_job("busy", trainers=4, granted=4, remaining_s=60),
                make_job("first", trainers=8, wall_time_s=600, age_s=999),
                make_job("big", trainers=4),
            ],
            660.0,
            660.0,
            "first goes first and runs at most 10m",
            id="room is kept for the job ahead",
        ),
        pytest.param([make_job("big", trainers=64)], None, None, "never, as it is", id="never"),
    ],
)
def test_guesses_when_it_starts(
    jobs: list[JobView], earliest_s: float | None, latest_s: float | None, basis: str
) -> None:
    found = explained(make_snapshot(*jobs))
    assert (found.start_earliest_s, found.start_latest_s) == (earliest_s, latest_s)
    assert found.start_basis == basis


def test_the_order_of_the_input_changes_no_guess() -> None:
    two = [make_job(name, cpu="4", granted=1, remaining_s=60) for name in ("one", "two")]
    either = {explained(make_snapshot(*jobs, BIG)).start_basis for jobs in (two, two[::-1])}
    assert either == {"two reports 1m left"}


def test_an_account_over_its_quota_waits_for_its_own_jobs() -> None:
    mine = make_job("mine", trainers=2, granted=2, remaining_s=100)
    other = make_job("other", trainers=2, granted=2, remaining_s=5, account="bob")
    waits = make_job("big", trainers=2)
    found = explained(make_snapshot(mine, other, waits, quotas={"alice": make_quota(cpu="3")}))
    assert found.start_earliest_s == found.start_latest_s == 100.0
    assert found.start_basis == "mine reports 1m left"
    assert found.blockers == (Blocker("quota cpu", "2", "1", (Holder("mine", "alice", "2"),)),)
    assert found.remedies == (
        Remedy("--parallelism 1", "starts now"),
        Remedy("--cpu 500m", "starts now"),
    )


def test_jobs_that_wait_for_another_accounts_quota_are_not_in_the_way() -> None:
    theirs = make_job("theirs", trainers=1, granted=1, account="bob")
    stuck = make_job("stuck", trainers=4, account="bob", age_s=999)
    busy = make_job("busy", trainers=6, granted=6, remaining_s=60)
    snapshot = make_snapshot(
        theirs, stuck, busy, make_job("big", trainers=7), quotas={"bob": make_quota(cpu="4")}
    )
    found = explained(snapshot)
    assert found.position == 2
    assert found.start_latest_s == 60.0


def test_a_job_short_of_one_whole_node_is_told_how_many_fit() -> None:
    nodes = [make_node("3", name="a"), make_node("3", name="b")]
    runs = make_job("runs", granted=1, placed={"a": 1})
    snapshot = make_snapshot(runs, make_job("big", trainers=2, cpu="2500m"), nodes=nodes)
    assert explained(snapshot).blockers == (Blocker("nodes", "room for 2 replicas", "1"),)


# --- what would help --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        pytest.param(
            [make_job("busy", cpu="4", granted=1), make_job("big", trainers=8)],
            {"--parallelism 4": "starts now", "--cpu 500m": "starts now"},
            id="fewer or smaller trainers",
        ),
        pytest.param(
            [make_job("busy", cpu="4", granted=1), make_job("big", least=6, most=8)],
            {"--min 4": "starts now", "--cpu 600m": "starts now"},
            id="a lower minimum",
        ),
        pytest.param(
            [make_job("busy", memory="61Gi", granted=1), make_job("big", memory="4Gi")],
            {"--memory 3Gi": "starts now"},
            id="less memory",
        ),
        pytest.param(
            [make_job("busy", memory="63Gi", granted=1), make_job("big", memory="4Gi")],
            {},
            id="nobody is told to run with a quarter of the memory",
        ),
        pytest.param(
            [make_job("busy", cpu="8", granted=1), make_job("big", trainers=8)],
            {},
            id="nothing helps when all is taken",
        ),
        pytest.param(
            [make_job("big", trainers=64)],
            {"--parallelism 8": "starts now"},
            id="what would fit at all",
        ),
        pytest.param(
            [make_job("busy", cpu="4", granted=1), make_job("big", trainers=64)],
            {"--parallelism 8": "can start when its turn comes"},
            id="what would fit at all, later",
        ),
        pytest.param(
            [
                make_job("busy", cpu="4", granted=1),
                make_job("first", cpu="8", age_s=999),
                make_job("big", cpu="4"),
            ],
            {"--priority high": "starts now"},
            id="there is room, kept for another",
        ),
        pytest.param(
            [
                make_job("busy", cpu="4", granted=1),
                make_job("first", cpu="8", age_s=999),
                make_job("second", cpu="8", age_s=998),
                make_job("big", cpu="6"),
            ],
            {"--priority high": "goes before first and 1 more"},
            id="nobody knows when, but earlier",
        ),
        pytest.param(
            [
                make_job("busy", cpu="4", granted=1, remaining_s=50),
                make_job("first", cpu="8", age_s=999, wall_time_s=100),
                make_job("big", cpu="6"),
            ],
            {"--priority high": "starts in 50s (before first)"},
            id="earlier, and when",
        ),
        pytest.param(
            [
                make_job("busy", cpu="8", granted=1, remaining_s=50),
                make_job("first", cpu="1", age_s=999, wall_time_s=100),
                make_job("big", cpu="6"),
            ],
            {},
            id="a priority that gains nothing is not offered",
        ),
    ],
)
def test_offers_only_what_helps(jobs: list[JobView], expected: dict[str, str]) -> None:
    assert changes(make_snapshot(*jobs)) == expected


def test_a_higher_priority_does_not_mend_a_quota() -> None:
    mine = make_job("mine", trainers=2, granted=2)
    first = make_job("first", trainers=8, age_s=999)
    snapshot = make_snapshot(
        mine, first, make_job("big", cpu="3"), quotas={"alice": make_quota(cpu="4")}
    )
    assert not any(change.startswith("--priority") for change in changes(snapshot))


def test_names_no_jobs_of_others_where_names_are_private() -> None:
    found = explained(make_snapshot(WIDE_DEEP, RESNET, NIGHTLY, BIG, private=True))
    assert found.ahead == ("a job of another account (priority high, needs 6 cpu)",)
    assert found.blockers[0].holders == (
        Holder("resnet", "alice", "1"),
        Holder("jobs of other accounts", "", "4"),
    )
    told = json.dumps(to_json(found))
    assert not any(word in told for word in ("wide-deep", "nightly", "bob"))


# --- properties -------------------------------------------------------------------------------


@settings(max_examples=50)
@given(snapshots())
def test_explains_every_waiting_job_in_the_words_of_the_plan(snapshot: Snapshot) -> None:
    decided = plan(snapshot)
    for place, job_id in enumerate(decided.order, start=1):
        found = explained(snapshot, job_id)
        assert (found.position, found.queue_length) == (place, len(decided.order))
        assert found.reason == decided.grants[job_id].reason
        if found.start_earliest_s is not None and found.start_latest_s is not None:
            assert 0 <= found.start_earliest_s <= found.start_latest_s
        assert from_json(json.loads(json.dumps(to_json(found)))) == found


# --- before a submit --------------------------------------------------------------------------


def test_tells_what_a_job_would_get() -> None:
    snapshot = make_snapshot(WIDE_DEEP)
    alice = account_number("alice")
    assert would_start(snapshot, make_spec(trainers=4), alice, "alice").trainers == 4
    assert would_start(snapshot, make_spec(least=1, most=9), alice).trainers == 4
    later = would_start(snapshot, make_spec(trainers=5), alice)
    assert (later.trainers, later.reason) == (
        0,
        "waits for 5 cpu: 4 free; wide-deep (bob) holds 4",
    )


def test_a_dry_run_stands_at_the_end_of_the_queue_and_under_the_quota() -> None:
    alice = account_number("alice")
    queue = make_snapshot(WIDE_DEEP, make_job("first", trainers=8, age_s=0.0))
    assert would_start(queue, make_spec(), alice).reason == "waits behind first (submitted earlier)"
    poor = make_snapshot(quotas={"alice": make_quota(cpu="1")})
    assert would_start(poor, make_spec(trainers=2), alice).reason == (
        "can never start: needs 2 cpu, your quota is 1"
    )
