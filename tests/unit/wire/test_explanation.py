"""`explain` as it is read on a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.scheduling.explanation import Explanation, to_json
from paddlecloud.wire.explanation import explanation_lines
from paddlecloud.wire.shapes import BlockerShape, ExplainShape, HolderShape, RemedyShape

BIG: dict[str, Any] = {
    "name": "big",
    "id": "job-1",
    "phase": "Queued",
    "since": "2026-11-15T07:52:45.120Z",
    "waiting": True,
    "position": 2,
    "queue_length": 3,
    "needs": "8 cpu for 4 trainers + 2 pservers, all at once",
    "reason": "waits for 8 cpu: 3 free",
    "blockers": [
        {
            "resource": "cpu",
            "needed": "8",
            "free": "3",
            "holders": [
                {"job": "wide-deep", "account": "bob", "amount": "4"},
                {"job": "resnet", "account": "alice", "amount": "1"},
            ],
        }
    ],
    "ahead": ["nightly (bob, priority high, needs 6 cpu)"],
    "start_earliest_s": 720.0,
    "start_latest_s": 1499.2,
    "start_basis": "wide-deep reports 11m left",
    "remedies": [
        {"change": "--parallelism 2", "effect": "starts now"},
        {"change": "--priority high", "effect": "starts in 12m (before nightly)"},
    ],
}


def lines(since_s: float = 240.0, **changes: Any) -> list[str]:
    answer: ExplainShape = {**BIG, **changes}  # type: ignore[typeddict-item]
    return explanation_lines(answer, since_s)


def line(label: str, **changes: Any) -> str:
    (found,) = [row for row in lines(**changes) if row.startswith(f"  {label} ")]
    return found[2:]


def test_lays_out_a_waiting_job() -> None:
    assert "\n".join(lines()) == (
        """\
big is Queued (position 2 of 3) since 4m.
  needs      8 cpu for 4 trainers + 2 pservers, all at once
  blocked by cpu: 8 needed, 3 free. wide-deep (bob) holds 4, resnet (alice) holds 1.
  ahead      nightly (bob, priority high, needs 6 cpu)
  start      between 12m and 25m (wide-deep reports 11m left)
  sooner     --parallelism 2      starts now
             --priority high      starts in 12m (before nightly)"""
    )


def test_says_which_rule_and_how_its_group_stands() -> None:
    told = {
        "rule": "a group's running jobs stay within its limit",
        "group": "cv",
        "group_stands": "3 cpu held, at most 4; weight 2",
        "blockers": [
            {"resource": "limit of group cv: cpu", "needed": "2", "free": "1", "holders": []}
        ],
    }
    assert lines(**told)[2:5] == [
        "  blocked by limit of group cv: cpu: 2 needed, 1 left.",
        "  rule       a group's running jobs stay within its limit",
        "  group      cv: 3 cpu held, at most 4; weight 2",
    ]


def test_a_job_that_does_not_wait_for_room_says_what_else_there_is() -> None:
    answer: ExplainShape = {
        "name": "big",
        "id": "job-1",
        "phase": "Running",
        "since": "2026-11-15T07:52:45.120Z",
        "waiting": False,
        "reason": "",
    }
    running = "big is Running since 41s; it does not wait for room."
    assert explanation_lines(answer, 41) == [running]
    answer["phase"], answer["reason"] = "Starting", "exit 4 in trainer-0; it starts again 4s later"
    assert explanation_lines(answer, 41) == [
        "big is Starting since 41s; it does not wait for room.",
        "  because    exit 4 in trainer-0; it starts again 4s later",
    ]


def test_shows_the_stored_reason_when_the_planner_could_not_be_asked() -> None:
    answer: ExplainShape = {
        "name": "big",
        "id": "job-1",
        "phase": "Queued",
        "since": "2026-11-15T07:52:45.120Z",
        "waiting": True,
        "reason": "waits for 8 cpu: 3 free",
    }
    assert explanation_lines(answer, 41) == [
        "big is Queued since 41s.",
        "  because    waits for 8 cpu: 3 free",
    ]


@pytest.mark.parametrize(
    ("earliest_s", "latest_s", "basis", "words"),
    [
        (720.0, 720.0, "x reports 12m left", "in 12m (x reports 12m left)"),
        (701.0, 719.0, "", "in 12m"),
        (700.0, None, "x reports 11m left", "in 12m or later (x reports 11m left)"),
        (0.0, 300.0, "", "between now and 5m"),
        (0.0, 0.0, "x is ending", "any moment (x is ending)"),
        (0.0, None, "", "any moment or later"),
        (None, None, "running jobs do not report", "unknown: running jobs do not report"),
        (None, None, "never, as it is", "never, as it is"),
    ],
)
def test_says_when(
    earliest_s: float | None, latest_s: float | None, basis: str, words: str
) -> None:
    said = line("start", start_earliest_s=earliest_s, start_latest_s=latest_s, start_basis=basis)
    assert said == f"start      {words}"


def test_gives_the_reason_when_no_resource_blocks() -> None:
    reason = "can never start: needs 64 cpu, the cluster has 8"
    shown = lines(blockers=[], reason=reason)
    assert f"  because    {reason}" in shown
    assert not any("blocked by" in row for row in shown)


def test_speaks_of_a_quota_as_the_users_own() -> None:
    blocker = {"resource": "quota cpu", "needed": "2", "free": "1", "holders": []}
    said = line("blocked by", blockers=[blocker])
    assert said == "blocked by your quota of cpu: 2 needed, 1 left."


def test_leaves_the_small_holders_out() -> None:
    holders = [{"job": f"j{i}", "account": "a", "amount": "1"} for i in range(6)]
    blocker = {"resource": "cpu", "needed": "8", "free": "0", "holders": holders}
    assert line("blocked by", blockers=[blocker]).endswith("j3 (a) holds 1, 2 more hold the rest.")
    blocker["holders"] = holders[:5]
    assert line("blocked by", blockers=[blocker]).endswith("j3 (a) holds 1, 1 more holds the rest.")


def test_says_what_holders_without_a_name_hold() -> None:
    holders = [{"job": "jobs of other accounts", "account": "", "amount": "4"}]
    blocker = {"resource": "cpu", "needed": "8", "free": "4", "holders": holders}
    assert line("blocked by", blockers=[blocker]).endswith("jobs of other accounts hold 4.")


def test_counts_the_jobs_ahead_that_are_not_listed() -> None:
    shown = lines(position=12, ahead=[f"job-{i}" for i in range(10)])
    start = shown.index("  ahead      job-0")
    assert shown[start : start + 6] == [
        "  ahead      job-0",
        *[f"             job-{i}" for i in range(1, 5)],
        "             and 6 more",
    ]


def test_leaves_out_what_there_is_nothing_to_say_about() -> None:
    shown = lines(position=1, ahead=[], remedies=[])
    assert [row.split()[0] for row in shown] == ["big", "needs", "blocked", "start"]


def test_the_planner_and_the_wire_mean_the_same_keys() -> None:
    sent = to_json(Explanation(1, 1, "1 cpu", "waits"))
    envelope = {"name", "id", "phase", "since", "waiting"}
    assert set(sent) | envelope == set(ExplainShape.__annotations__)
    assert set(BIG["blockers"][0]) == set(BlockerShape.__annotations__)
    assert set(BIG["blockers"][0]["holders"][0]) == set(HolderShape.__annotations__)
    assert set(BIG["remedies"][0]) == set(RemedyShape.__annotations__)
