"""The one sentence that every waiting job gets, word by word."""

from __future__ import annotations

import pytest

from paddlecloud.scheduling.plan import plan
from paddlecloud.scheduling.snapshot import JobView, Snapshot
from paddlecloud.testing.builders import make_job, make_node, make_quota, make_snapshot


def reason(snapshot: Snapshot, job_id: str = "big") -> str:
    grant = plan(snapshot).grants[job_id]
    assert grant.trainers == 0
    return grant.reason


WIDE_DEEP = make_job("wide-deep", account="bob", trainers=4, granted=4)
RESNET = make_job("resnet", granted=1)


@pytest.mark.parametrize(
    ("jobs", "sentence"),
    [
        pytest.param(
            [WIDE_DEEP, RESNET, make_job("big", trainers=4, pservers=2, pscpu="2")],
            "waits for 8 cpu: 3 free; wide-deep (bob) holds 4, resnet (alice) holds 1",
            id="who holds what it waits for, most first",
        ),
        pytest.param(
            [make_job("fat", memory="60.5Gi", granted=1), make_job("big", memory="6Gi")],
            "waits for 6Gi memory: 3.5Gi free; fat (alice) holds 60.5Gi",
            id="memory",
        ),
        pytest.param(
            [make_job("cards", gpu=2, granted=1), make_job("big", gpu=1)],
            "waits for 1 gpu: 0 free; cards (alice) holds 2",
            id="gpu",
        ),
        pytest.param(
            [
                make_job("fat", cpu="7", memory="63Gi", granted=1),
                make_job("big", cpu="2500m", memory="2Gi"),
            ],
            "waits for 2.5 cpu: 1 free; fat (alice) holds 7; and for 2Gi memory: 1Gi free",
            id="two at once",
        ),
        pytest.param(
            [
                *[make_job(f"job-{i}", granted=1) for i in range(6)],
                make_job("big", trainers=3),
            ],
            "waits for 3 cpu: 2 free; job-0 (alice) holds 1, job-1 (alice) holds 1, "
            "job-2 (alice) holds 1, 3 more hold the rest",
            id="not every holder is named",
        ),
        pytest.param(
            [make_job("a", trainers=6), make_job("big", trainers=3)],
            "waits for 3 cpu: 2 free; a (alice) holds 6",
            id="a job that starts with the same plan is a holder",
        ),
        pytest.param(
            [
                WIDE_DEEP,
                make_job("nightly", trainers=6, priority="high"),
                make_job("big", trainers=4),
            ],
            "waits behind nightly (priority high)",
            id="room is kept for a higher priority",
        ),
        pytest.param(
            [WIDE_DEEP, make_job("first", trainers=6, age_s=90), make_job("big", trainers=4)],
            "waits behind first (submitted earlier)",
            id="room is kept for an older job",
        ),
        pytest.param(
            [make_job("big", trainers=64)],
            "can never start: needs 64 cpu, the cluster has 8",
            id="more than the cluster has",
        ),
    ],
)
def test_says_why_a_job_waits(jobs: list[JobView], sentence: str) -> None:
    assert reason(make_snapshot(*jobs, gpu=2)) == sentence


@pytest.mark.parametrize(
    ("quota", "sentence"),
    [
        (make_quota(cpu="4"), "your quota of 4 cpu is used: 4 of 4"),
        (make_quota(cpu="3"), "your quota of 3 cpu is used: 4 of 3"),
        (make_quota(cpu="5"), "needs 2 cpu: your quota of 5 cpu has 1 left"),
        (make_quota(replicas=5), "needs 2 replicas: your quota of 5 replicas has 1 left"),
        (
            make_quota(memory="4500Mi"),
            "needs 2Gi memory: your quota of 4.3Gi memory has 404Mi left",
        ),
        (make_quota(cpu="1"), "can never start: needs 2 cpu, your quota is 1"),
        (make_quota(replicas=1), "can never start: needs 2 replicas, your quota is 1"),
        (make_quota(cpu="0"), "can never start: needs 2 cpu, your quota is 0"),
    ],
)
def test_says_what_the_quota_lacks(quota: object, sentence: str) -> None:
    runs = make_job("runs", trainers=4, memory="1Gi", granted=4)
    big = make_job("big", trainers=2, memory="1Gi")
    snapshot = make_snapshot(runs, big, quotas={"alice": quota})  # type: ignore[dict-item]
    assert reason(snapshot) == sentence


def test_says_that_no_node_has_room() -> None:
    nodes = [make_node("3", name="a"), make_node("3", name="b")]
    runs = make_job("runs", cpu="1", trainers=2, granted=2, placed={"a": 1, "b": 1})
    big = make_job("big", cpu="3")
    snapshot = make_snapshot(runs, big, nodes=nodes)
    assert reason(snapshot) == "waits for nodes with room for all its 1 replicas at once"


def test_says_which_replica_no_node_could_hold() -> None:
    nodes = [make_node("3", name="a"), make_node("3", name="b")]
    snapshot = make_snapshot(make_job("big", cpu="4"), nodes=nodes)
    assert reason(snapshot) == "can never start: a trainer needs 4 cpu, the largest node has 3"


def test_names_no_jobs_of_others_where_names_are_private() -> None:
    nightly = make_job("nightly", account="bob", trainers=7, priority="high")
    small = make_job("small", trainers=1, account="carl")
    jobs = (WIDE_DEEP, RESNET, nightly, make_job("big", trainers=4), small)
    told = plan(make_snapshot(*jobs, private=True)).grants
    assert told["big"].reason == (
        "waits for 4 cpu: 3 free; resnet (alice) holds 1, jobs of other accounts hold 4"
    )
    assert told["nightly"].reason == (
        "waits for 7 cpu: 3 free; wide-deep (bob) holds 4, jobs of other accounts hold 1"
    )
    assert told["small"].reason == "waits behind a job of another account (priority high)"


def test_the_sentence_does_not_change_while_nothing_happens() -> None:
    """Engines store it, and write only what changed."""
    jobs = (WIDE_DEEP, make_job("first", trainers=6, age_s=90), make_job("big", trainers=4))
    assert reason(make_snapshot(*jobs)) == reason(make_snapshot(*jobs, now=1_000_100.0))
