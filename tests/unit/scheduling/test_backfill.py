"""What may start behind a job that waits. In every case `head` waits and `small` came later."""

from __future__ import annotations

import pytest

from paddlecloud.scheduling.plan import plan
from paddlecloud.scheduling.reservations import PATIENCE_S
from paddlecloud.scheduling.snapshot import JobView, Snapshot
from paddlecloud.testing.builders import make_job, make_node, make_snapshot

LONG_AGO_S = PATIENCE_S + 1


def running(cpu: int, left_s: float | None = None, name: str = "busy", ran_s: int = 90) -> JobView:
    return make_job(
        name, cpu=str(cpu), granted=1, remaining_s=left_s, ran_s=ran_s, age_s=10_000, account="bob"
    )


def head(cpu: int, *, age_s: float = 100.0, **words: object) -> JobView:
    return make_job("head", cpu=str(cpu), age_s=age_s, **words)  # type: ignore[arg-type]


def small(cpu: int, *, wall_s: int = 0, name: str = "small", **words: object) -> JobView:
    return make_job(name, cpu=str(cpu), wall_time_s=wall_s, age_s=10, **words)  # type: ignore[arg-type]


def starts(snapshot: Snapshot) -> set[str]:
    """The waiting jobs that start; the head never does in these cases."""
    decided = plan(snapshot)
    assert decided.grants["head"].trainers == 0
    return {
        job.job_id
        for job in snapshot.jobs
        if not job.granted and decided.grants[job.job_id].trainers
    }


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        # Ends known: `busy` holds 6 of 8 cpu for 600 s more, the head starts then.
        pytest.param([running(6, 600), head(8), small(2, wall_s=600)], True, id="ends in time"),
        pytest.param([running(6, 600), head(8), small(2, wall_s=601)], False, id="ends too late"),
        pytest.param([running(6, 600), head(8), small(2)], False, id="has no wall time"),
        pytest.param([running(6, 600), head(6), small(2)], True, id="fits beside the head"),
        pytest.param([running(6, 600), head(7), small(2)], False, id="does not fit beside it"),
        pytest.param([running(6, 600), head(8), small(3)], False, id="does not fit now"),
        pytest.param(
            [running(3, 600), running(3, 60, "other"), head(5), small(2)],
            False,
            id="the first end makes room for the head alone",
        ),
        pytest.param(
            [running(3, 600), running(3, 600, "other"), head(5), small(2)],
            True,
            id="two end at the same moment and leave room for both",
        ),
        pytest.param(
            [running(6), head(8), small(2, wall_s=1)], False, id="unknown ends: may end at once"
        ),
        pytest.param([running(6), head(6), small(2)], True, id="unknown ends: fits beside"),
        pytest.param([running(6), head(7), small(2)], False, id="unknown ends: does not fit"),
        pytest.param(
            [running(3, ran_s=90), running(3, None, "other", ran_s=10), head(5), small(2)],
            False,
            id="unknown ends: the longest-running makes room for the head alone",
        ),
        pytest.param(
            [running(1, ran_s=90), running(5, None, "other", ran_s=10), head(7), small(1)],
            False,
            id="unknown ends: an end that does not help the head is not waited for",
        ),
        pytest.param(
            [running(6, 600), head(8, age_s=LONG_AGO_S), small(2, wall_s=60)],
            False,
            id="out of patience: nothing starts because it will end in time",
        ),
        pytest.param(
            [running(6, 600), head(6, age_s=LONG_AGO_S), small(2)],
            True,
            id="out of patience: what fits beside still starts",
        ),
        pytest.param(
            # By age `busy` ends first and leaves 3; by report `other` does and leaves nothing.
            [running(5, 9000), running(2, 60, "other", 10), head(3), small(1)],
            False,
            id="reports say who ends first",
        ),
        pytest.param(
            [running(5, 9000), running(2, 60, "other", 10), head(3, age_s=LONG_AGO_S), small(1)],
            False,
            id="out of patience: both ways must leave room",
        ),
    ],
)
def test_a_later_job_starts_only_if_the_head_is_not_delayed(
    jobs: list[JobView], expected: bool
) -> None:
    assert starts(make_snapshot(*jobs)) == ({"small"} if expected else set())


def test_later_jobs_share_what_is_left_beside_the_head() -> None:
    """Two free, two left beside the head: two of one cpu may start, not three."""
    jobs = [small(1, name=f"small-{i}") for i in range(3)]
    assert starts(make_snapshot(running(5), head(6), *jobs)) == {"small-0", "small-1"}


def test_what_is_not_contested_is_free_for_all() -> None:
    gpus = make_job("gpus", cpu="0", gpu=2, granted=1)
    waits = make_job("head", cpu="1", gpu=1, age_s=100)
    assert starts(make_snapshot(gpus, waits, small(7), gpu=2)) == {"small"}
    assert starts(make_snapshot(gpus, waits, small(8), gpu=2)) == set()


def test_a_job_that_is_being_ended_counts_as_gone_soon() -> None:
    """It has its grace to go; unknown ends of others do not matter then."""
    ending = make_job("ending", cpu="6", granted=1, released=True, ran_s=1)
    assert starts(make_snapshot(ending, head(8), small(2, wall_s=10))) == {"small"}
    assert starts(make_snapshot(ending, head(8), small(2, wall_s=11))) == set()


def test_a_wall_time_bounds_a_job_that_reports_nothing() -> None:
    bounded = make_job("bounded", cpu="6", granted=1, wall_time_s=700, ran_s=100)
    assert starts(make_snapshot(bounded, head(8), small(2, wall_s=600))) == {"small"}
    assert starts(make_snapshot(bounded, head(8), small(2, wall_s=601))) == set()


def test_an_elastic_job_behind_the_head_takes_only_what_is_left() -> None:
    elastic = make_job("small", cpu="1", least=1, most=8, age_s=10)
    decided = plan(make_snapshot(running(4), head(6), elastic))
    assert decided.grants["small"].trainers == 2


def test_an_elastic_head_is_kept_room_at_its_smallest_size() -> None:
    elastic = make_job("head", cpu="3", least=2, most=8, age_s=100)
    assert starts(make_snapshot(running(6), elastic, small(2))) == {"small"}


def test_only_the_first_that_waits_is_kept_room_for() -> None:
    second = make_job("second", cpu="8", age_s=50)
    assert starts(make_snapshot(running(6), head(6), second, small(2))) == {"small"}


def test_a_job_with_a_higher_priority_becomes_the_head() -> None:
    urgent = small(8, name="urgent", priority="high")
    decided = plan(make_snapshot(running(6), head(6), urgent, small(2)))
    assert decided.order == ("urgent", "head", "small")


def test_a_later_job_is_placed_where_it_does_not_hinder_the_head() -> None:
    """First fit would put it on a, where the head is to go."""
    nodes = [make_node("4", name="a"), make_node("4", name="b")]
    busy = make_job("busy", cpu="1", granted=1, placed={"a": 1}, ran_s=50)
    other = make_job("other", cpu="1", granted=1, placed={"b": 1}, ran_s=10)
    waits = make_job("head", cpu="4", age_s=100)
    decided = plan(make_snapshot(busy, other, waits, small(1), nodes=nodes))
    assert [part.node for part in decided.placements["small"]] == ["b"]


def test_goes_through_the_queue_again_until_nothing_more_may_start() -> None:
    """Out of patience both `small` may start, but only one by one: each ends before it matters."""
    jobs = (
        running(5, 7200, "old", ran_s=900),
        running(4, 1800, "new", ran_s=100),
        head(5, age_s=LONG_AGO_S),
        small(1, wall_s=60, name="small-1"),
        small(1, wall_s=60, name="small-2"),
    )
    assert starts(make_snapshot(*jobs, cpu="11")) == {"small-1", "small-2"}
