"""What every `Engine` promises about groups: limits hold, and a guarantee is had back whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from paddlecloud.core.jobspec import Mode, Role, RoleSpec
from paddlecloud.core.observed import ReplicaKey
from paddlecloud.core.phases import Phase
from paddlecloud.engines.protocols import JobRun
from paddlecloud.scheduling.snapshot import Group, Quota
from tests.contracts.at_once import running
from tests.engine_bench import KINDS, SMALL, Bench

CARDS = {"owners": Group("owners", guarantee=Quota(gpu=4)), "others": Group("others")}
FOUR = replace(SMALL, gpu=4)
TWO = replace(SMALL, gpu=2)


pytestmark = pytest.mark.alone  # groups are the whole cluster's


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with running(request, tmp_path) as made:
        yield made


@pytest.fixture(autouse=True)
def groups(bench: Bench) -> Iterator[None]:
    bench.engine.set_groups(CARDS)
    yield
    bench.engine.set_groups({})


def borrow(bench: Bench, entry: str, **more) -> JobRun:
    job = bench.put(entry, group="others", may_borrow=True, **more)
    bench.until(job, Phase.RUNNING)
    return job


def said(bench: Bench, job: JobRun, reason: str) -> list[str]:
    bench.read()
    events = [c.event for c in bench.told if c.job_id == job.job_id and c.event]
    return [event.message for event in events if event.reason == reason]


def test_a_borrower_stops_for_the_owner_and_goes_on_afterwards(bench):
    entry = 'echo attempt; test -e "$HOME/never"; exec sleep 1000'
    borrower = borrow(bench, entry, each=FOUR)
    owner = bench.put("echo mine", group="owners", each=FOUR)
    assert bench.end(owner).status.phase == Phase.SUCCEEDED
    again = bench.until(borrower, Phase.RUNNING)
    told = bench.phases(borrower)
    assert told.index(Phase.PREEMPTED) < told.index(Phase.QUEUED) < len(told) - 1
    assert said(bench, borrower, "Preempted") == [
        "preempted: group owners takes its guarantee back for "
        f"{owner.spec.name} ({owner.account}); "
        "it goes back to the queue with its age"
    ]
    assert again.status.restarts == 0
    assert {seen.key.attempt for seen in again.replicas} == {1, 2}


def test_a_preemption_does_not_use_up_the_budget_of_restarts(bench):
    """No restart is allowed, and still it comes back, is stopped again and then ends well."""
    entry = "trap 'exit 3' TERM; test -e go && exit 0; while :; do sleep 0.05; done"
    borrower = borrow(bench, entry, each=FOUR)
    for _ in range(2):
        owner = bench.put("true", group="owners", each=FOUR)
        assert bench.end(owner).status.phase == Phase.SUCCEEDED
        bench.until(borrower, Phase.RUNNING)
    helper = bench.put("touch go")
    bench.end(helper)
    owner = bench.put("true", group="owners", each=FOUR)
    bench.end(owner)
    end = bench.end(borrower)
    assert (end.status.phase, end.status.restarts) == (Phase.SUCCEEDED, 0)
    assert len(said(bench, borrower, "Preempted")) == 3


def test_a_gang_is_stopped_whole_and_started_whole(bench):
    borrower = borrow(
        bench, "exec sleep 1000", each=TWO, mode=Mode.COLLECTIVE, trainers=2, grace_s=0.5
    )
    owner = bench.put("exec sleep 1000", group="owners", each=TWO)
    bench.until(owner, Phase.RUNNING)
    stopped = bench.until(borrower, Phase.QUEUED)
    assert all(not seen.alive and seen.stopping for seen in stopped.replicas)
    bench.engine.cancel(owner.job_id, 1, "enough")
    started = bench.until(borrower, Phase.RUNNING)
    alive = [seen.key for seen in started.replicas if seen.alive]
    assert alive == [ReplicaKey(borrower.job_id, 1, Role.TRAINER, rank, 2) for rank in (0, 1)]


def test_the_wall_time_does_not_run_while_a_job_waits_again(bench):
    borrower = borrow(bench, "exec sleep 1000", each=FOUR, wall_time_s=5, grace_s=0.2)
    owner = bench.put("exec sleep 6", group="owners", each=FOUR)
    bench.end(owner)
    assert bench.until(borrower, Phase.RUNNING, Phase.TIMED_OUT).status.phase == Phase.RUNNING
    assert bench.end(borrower).status.phase == Phase.TIMED_OUT


def test_a_preemption_is_not_forgotten_by_a_restart_of_the_engine(bench):
    """The engine ends between the order to stop and the last replica's end."""
    borrower = borrow(bench, "trap '' TERM; while :; do sleep 0.05; done", each=FOUR, grace_s=2)
    owner = bench.put("true", group="owners", each=FOUR)
    bench.until(borrower, Phase.PREEMPTED)
    bench.restart()
    bench.engine.set_groups(CARDS)
    assert bench.end(owner).status.phase == Phase.SUCCEEDED
    assert bench.until(borrower, Phase.RUNNING).status.restarts == 0


def test_an_ordinary_job_waits_for_what_is_guaranteed_to_others(bench):
    fault = bench.engine.check(replace(bench.put("true").spec, group="others", roles=_cards(1)))
    assert "guaranteed" in fault[0].problem


def _cards(count: int):
    return (RoleSpec(Role.TRAINER, 1, replace(SMALL, gpu=count)),)


def test_a_group_never_holds_more_than_its_limit(bench):
    bench.engine.set_groups({"others": Group("others", limit=Quota(replicas=2))})
    jobs = [bench.put("exec sleep 1000", group="others", account_id=n) for n in range(1, 6)]
    for job in jobs[:2]:
        bench.until(job, Phase.RUNNING)
    waiting = bench.until(jobs[4], Phase.QUEUED)
    assert waiting.status.reason == "the limit of group others, 2 replicas, is used: 2 of 2"
    assert sum(view.granted for view in bench.live()) == 2
    bench.engine.set_groups({"others": Group("others", limit=Quota(replicas=5))})
    for job in jobs:
        bench.until(job, Phase.RUNNING)
