"""`lifecycle.decide` by named cases: who starts, who restarts, when it is over."""

from __future__ import annotations

import pytest

from paddlecloud.core.actions import Grant, Remove, Start, Stop
from paddlecloud.core.jobspec import CleanPolicy, JobSpec, Mode, RestartRule, Role, RoleSpec
from paddlecloud.core.lifecycle import decide
from paddlecloud.core.observed import (
    EndCause,
    Exit,
    Observed,
    ReplicaKey,
    ReplicaObserved,
    ReplicaState,
)
from paddlecloud.core.phases import TERMINAL, Phase
from paddlecloud.core.resources import Resources

ONE = Resources(1000, 2**30, 0)
T0 = 1000.0


def a_spec(
    mode: Mode = Mode.COLLECTIVE,
    trainers: int = 2,
    pservers: int = 0,
    restarts: int = 0,
    exit_codes: frozenset[int] = frozenset(),
    wall_time_s: int = 0,
    clean: CleanPolicy = CleanPolicy.ON_COMPLETION,
) -> JobSpec:
    roles = [RoleSpec(Role.TRAINER, trainers, ONE)]
    if pservers:
        roles.append(RoleSpec(Role.PSERVER, pservers, ONE))
    return JobSpec(
        name="j",
        mode=mode,
        roles=tuple(roles),
        entry="true",
        wall_time_s=wall_time_s,
        clean=clean,
        restart=RestartRule(restarts, exit_codes, backoff_s=2.0, backoff_cap_s=60.0),
    )


def seen(
    name: str,
    state: str = "run",
    *,
    attempt: int = 1,
    at: float = T0,
    stopping: bool = False,
    code: int = 0,
    signal: int = 0,
) -> ReplicaObserved:
    """`seen("trainer-0", "ok")`; states: pend run ok fail oom lost nostart."""
    role, index = name.split("-")
    key = ReplicaKey("job-1", 1, Role(role), int(index), attempt)
    if state == "pend":
        return ReplicaObserved(key, ReplicaState.PENDING, stopping=stopping)
    if state == "run":
        return ReplicaObserved(key, ReplicaState.RUNNING, T0, stopping=stopping)
    if state == "lost":
        return ReplicaObserved(key, ReplicaState.LOST, T0, at, stopping=stopping)
    end = {
        "ok": Exit(EndCause.EXITED, 0),
        "fail": Exit(EndCause.EXITED, code or 1),
        "signal": Exit(EndCause.SIGNALED, 128 + signal, signal),
        "oom": Exit(EndCause.OUT_OF_MEMORY, 137, 9, "limit 1Gi"),
        "nostart": Exit(EndCause.START_FAILED, 127, 0, "no such directory"),
    }[state]
    return ReplicaObserved(key, ReplicaState.ENDED, T0, at, end, stopping=stopping)


def decided(spec: JobSpec, *replicas: ReplicaObserved, grant: int = 2, now: float = T0, cancel=""):
    first = T0 if any(r.started_at for r in replicas) else None
    return decide("job-1", 1, spec, Grant(grant), Observed(replicas, cancel, T0 - 5, first), now)


def started(decision) -> list[str]:
    return [f"{a.key.short}.{a.key.attempt}" for a in decision.actions if isinstance(a, Start)]


def stopped(decision) -> list[str]:
    return [a.key.short for a in decision.actions if isinstance(a, Stop)]


def test_starts_servers_before_trainers():
    answer = decided(a_spec(Mode.PS, 2, 2))
    assert started(answer) == ["pserver-0.1", "pserver-1.1", "trainer-0.1", "trainer-1.1"]
    assert answer.status.phase == Phase.STARTING


def test_waits_with_the_planners_reason_when_nothing_is_granted():
    spec = a_spec()
    answer = decide("job-1", 1, spec, Grant(0, "waits for 2 cpu"), Observed(), T0)
    assert answer.actions == ()
    assert (answer.status.phase, answer.status.reason) == (Phase.QUEUED, "waits for 2 cpu")


def test_is_starting_until_every_replica_runs():
    answer = decided(a_spec(), seen("trainer-0"), seen("trainer-1", "pend"))
    assert answer.status.phase == Phase.STARTING
    assert "trainer-1" in answer.status.reason
    assert decided(a_spec(), seen("trainer-0"), seen("trainer-1")).status.phase == Phase.RUNNING


def test_a_trainer_that_is_done_early_leaves_the_job_running():
    answer = decided(a_spec(), seen("trainer-0", "ok"), seen("trainer-1"))
    assert answer.status.phase == Phase.RUNNING
    assert answer.actions == ()


def test_stops_the_servers_when_the_trainers_are_done_then_succeeds():
    spec = a_spec(Mode.PS, 2, 1)
    trainers = seen("trainer-0", "ok"), seen("trainer-1", "ok")
    answer = decided(spec, *trainers, seen("pserver-0"))
    assert stopped(answer) == ["pserver-0"]
    assert answer.status.phase == Phase.RUNNING
    end = decided(spec, *trainers, seen("pserver-0", "signal", signal=15, stopping=True))
    assert end.status.phase == Phase.SUCCEEDED
    assert end.status.failure is None


def test_servers_that_exit_by_themselves_are_no_failure():
    spec = a_spec(Mode.PS, 1, 1)
    answer = decided(spec, seen("trainer-0"), seen("pserver-0", "ok"), grant=1)
    assert answer.status.phase == Phase.RUNNING
    end = decided(spec, seen("trainer-0", "ok"), seen("pserver-0", "ok"), grant=1)
    assert end.status.phase == Phase.SUCCEEDED


@pytest.mark.parametrize("state", ["fail", "oom", "nostart", "lost", "signal"])
def test_fails_after_the_first_failure_without_a_budget(state):
    answer = decided(a_spec(), seen("trainer-0"), seen("trainer-1", state, signal=11))
    assert stopped(answer) == ["trainer-0"]
    assert answer.status.phase not in TERMINAL
    end = decided(
        a_spec(),
        seen("trainer-0", "signal", signal=15, stopping=True),
        seen("trainer-1", state, signal=11),
    )
    assert end.status.phase == Phase.FAILED
    assert end.status.failure.replica == "trainer-1"


def test_names_the_replica_that_failed_first():
    end = decided(
        a_spec(),
        seen("trainer-0", "signal", signal=6, at=T0 + 2),
        seen("trainer-1", "fail", code=3, at=T0 + 1),
    )
    assert end.status.failure.replica == "trainer-1"
    assert end.status.reason == "exit 3 in trainer-1"


def test_restarts_a_collective_job_as_a_gang_after_the_backoff():
    spec = a_spec(restarts=1)
    first = decided(spec, seen("trainer-0"), seen("trainer-1", "fail"), now=T0 + 1)
    assert stopped(first) == ["trainer-0"]
    assert started(first) == []
    down = seen("trainer-0", "signal", signal=15, stopping=True), seen("trainer-1", "fail")
    waiting = decided(spec, *down, now=T0 + 1)
    assert started(waiting) == []
    assert waiting.wake_after_s == pytest.approx(1.0)
    assert waiting.status.reason == "exit 1 in trainer-1; all replicas start again 2s later"
    again = decided(spec, *down, now=T0 + 2)
    assert started(again) == ["trainer-0.2", "trainer-1.2"]
    assert again.status.phase == Phase.STARTING
    assert again.status.restarts == 1


@pytest.mark.parametrize(
    ("spec", "replicas", "who", "words"),
    [
        (
            a_spec(restarts=3),
            (seen("trainer-0", "signal", at=T0 + 1, signal=6), seen("trainer-1", "oom")),
            "trainer-1",
            "trainer-1 ran out of memory: limit 1Gi; all replicas start again, attempt 2"
            " (restart 1 of at most 3)",
        ),
        (
            a_spec(restarts=3),
            (
                *(seen("trainer-0", "fail", code=4), seen("trainer-1", "ok", stopping=True)),
                *(seen("trainer-0", "ok", attempt=2, stopping=True),),
                *(seen("trainer-1", "signal", attempt=2, signal=11),),
            ),
            "trainer-1",
            "trainer-1 was ended by signal 11; all replicas start again, attempt 3"
            " (restart 2 of at most 3)",
        ),
        (
            a_spec(Mode.SINGLE, 1, restarts=1),
            (seen("trainer-0", "fail", code=7),),
            "trainer-0",
            "exit 7 in trainer-0; it starts again, attempt 2 (restart 1 of at most 1)",
        ),
        (
            # The trainer failed first, but it could have come back alone.
            a_spec(Mode.PS, 1, 1, restarts=5),
            (seen("trainer-0", "fail", at=T0 - 1), seen("pserver-0", "fail", code=2)),
            "pserver-0",
            "exit 2 in pserver-0; all replicas start again, attempt 2 (restart 2 of at most 5)",
        ),
    ],
)
def test_the_event_of_a_restart_names_what_failed(spec, replicas, who, words):
    answer = decided(spec, *replicas, grant=spec.trainers.replicas, now=T0 + 100)
    said = [event for event in answer.events if event.reason == "Restarting"]
    assert [(event.replica, event.message) for event in said] == [(who, words)]


def test_a_job_that_comes_back_after_losing_its_grant_blames_nobody():
    spec = a_spec(restarts=1)
    down = [seen(f"trainer-{n}", "signal", signal=15, stopping=True) for n in (0, 1)]
    answer = decided(spec, *down, now=T0 + 100)
    assert started(answer) == ["trainer-0.2", "trainer-1.2"]
    assert [event.reason for event in answer.events] == []


def test_restarts_one_trainer_alone_under_parameter_servers():
    spec = a_spec(Mode.PS, 2, 1, restarts=1)
    answer = decided(
        spec, seen("trainer-0"), seen("trainer-1", "fail"), seen("pserver-0"), now=T0 + 2
    )
    assert started(answer) == ["trainer-1.2"]
    assert stopped(answer) == []


def test_restarts_everybody_when_a_parameter_server_fails():
    spec = a_spec(Mode.PS, 2, 1, restarts=1)
    answer = decided(
        spec, seen("trainer-0"), seen("trainer-1"), seen("pserver-0", "fail"), now=T0 + 2
    )
    assert stopped(answer) == ["trainer-0", "trainer-1"]


def test_never_restarts_more_often_than_the_budget():
    spec = a_spec(trainers=1, mode=Mode.SINGLE, restarts=2)
    attempts = []
    for attempt in (1, 2, 3):
        attempts.append(seen("trainer-0", "fail", attempt=attempt, at=T0 + attempt))
        answer = decided(spec, *attempts, grant=1, now=T0 + 100)
        if attempt < 3:
            assert started(answer) == [f"trainer-0.{attempt + 1}"]
    assert answer.status.phase == Phase.FAILED
    assert answer.status.restarts == 2


def test_several_ranks_dying_of_one_cause_cost_one_restart():
    spec = a_spec(restarts=1)
    both = seen("trainer-0", "signal", signal=6), seen("trainer-1", "fail")
    assert started(decided(spec, *both, now=T0 + 2)) == ["trainer-0.2", "trainer-1.2"]


def test_retries_only_the_exit_codes_the_user_named():
    spec = a_spec(trainers=1, mode=Mode.SINGLE, restarts=5, exit_codes=frozenset({42}))
    retried = decided(spec, seen("trainer-0", "fail", code=42), grant=1, now=T0 + 9)
    assert started(retried) == ["trainer-0.2"]
    final = decided(spec, seen("trainer-0", "fail", code=1), grant=1, now=T0 + 9)
    assert final.status.phase == Phase.FAILED
    assert final.status.restarts == 0


def test_backoff_doubles_up_to_its_cap():
    spec = a_spec(trainers=1, mode=Mode.SINGLE, restarts=9)
    fails = [seen("trainer-0", "fail", attempt=n, at=T0) for n in (1, 2, 3)]
    assert decided(spec, *fails, grant=1, now=T0).wake_after_s == pytest.approx(8.0)
    fails = [seen("trainer-0", "fail", attempt=n, at=T0) for n in range(1, 9)]
    assert decided(spec, *fails, grant=1, now=T0).wake_after_s == pytest.approx(60.0)


def test_kill_stops_all_and_ends_as_killed_only_when_nothing_is_left():
    answer = decided(a_spec(), seen("trainer-0"), seen("trainer-1"), cancel="by alice")
    assert stopped(answer) == ["trainer-0", "trainer-1"]
    assert answer.status.phase == Phase.RUNNING
    half = decided(
        a_spec(),
        seen("trainer-0", "ok", stopping=True),
        seen("trainer-1", "run", stopping=True),
        cancel="by alice",
    )
    assert half.actions == ()
    assert half.status.phase == Phase.RUNNING
    end = decided(
        a_spec(),
        seen("trainer-0", "ok", stopping=True),
        seen("trainer-1", "signal", signal=9, stopping=True),
        cancel="by alice",
    )
    assert (end.status.phase, end.status.reason) == (Phase.KILLED, "by alice")


def test_killing_a_waiting_job_ends_it_at_once():
    assert decided(a_spec(), grant=0, cancel="x").status.phase == Phase.KILLED


def test_a_job_that_had_succeeded_before_the_kill_stays_succeeded():
    end = decided(a_spec(), seen("trainer-0", "ok"), seen("trainer-1", "ok"), cancel="late")
    assert end.status.phase == Phase.SUCCEEDED


def test_wall_time_ends_a_job_and_wakes_in_time():
    spec = a_spec(wall_time_s=60)
    running = seen("trainer-0"), seen("trainer-1")
    assert decided(spec, *running, now=T0 + 20).wake_after_s == pytest.approx(40.0)
    assert stopped(decided(spec, *running, now=T0 + 60)) == ["trainer-0", "trainer-1"]
    ended = [
        seen(n, "signal", signal=15, stopping=True, at=T0 + 61) for n in ("trainer-0", "trainer-1")
    ]
    assert decided(spec, *ended, now=T0 + 61).status.phase == Phase.TIMED_OUT


def test_a_failure_before_the_wall_time_stays_a_failure():
    spec = a_spec(wall_time_s=60)
    replicas = seen("trainer-0", "fail", at=T0 + 59), seen("trainer-1", "ok", stopping=True)
    assert decided(spec, *replicas, now=T0 + 80).status.phase == Phase.FAILED


def test_taking_the_grant_away_stops_the_job_and_queues_it_again():
    answer = decided(a_spec(), seen("trainer-0"), seen("trainer-1"), grant=0)
    assert answer.status.phase == Phase.PREEMPTED
    assert stopped(answer) == ["trainer-0", "trainer-1"]
    down = [seen(n, "signal", signal=15, stopping=True) for n in ("trainer-0", "trainer-1")]
    assert decided(a_spec(), *down, grant=0).status.phase == Phase.QUEUED
    back = decided(a_spec(), *down)
    assert started(back) == ["trainer-0.2", "trainer-1.2"]
    assert back.status.restarts == 0


def test_shrinking_stops_the_highest_indices():
    spec = a_spec(trainers=3)
    answer = decided(spec, *[seen(f"trainer-{i}") for i in range(3)], grant=2)
    assert stopped(answer) == ["trainer-2"]


@pytest.mark.parametrize(
    ("policy", "state", "removed"),
    [
        (CleanPolicy.ALWAYS, "ok", True),
        (CleanPolicy.ALWAYS, "fail", True),
        (CleanPolicy.NEVER, "ok", False),
        (CleanPolicy.NEVER, "fail", False),
        (CleanPolicy.ON_FAILURE, "ok", False),
        (CleanPolicy.ON_FAILURE, "fail", True),
        (CleanPolicy.ON_COMPLETION, "ok", True),
        (CleanPolicy.ON_COMPLETION, "fail", False),
    ],
)
def test_removes_what_the_clean_policy_says(policy, state, removed):
    spec = a_spec(mode=Mode.SINGLE, trainers=1, clean=policy)
    answer = decided(spec, seen("trainer-0", state), grant=1)
    assert any(isinstance(a, Remove) for a in answer.actions) == removed
