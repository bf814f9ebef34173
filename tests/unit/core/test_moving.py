"""Moving replicas by named cases: who is stopped, who starts again, what is counted."""

from __future__ import annotations

import pytest

from paddlecloud.core.actions import Decision, Grant, Start, Stop
from paddlecloud.core.jobspec import JobSpec, Mode, RestartRule, Role, RoleSpec
from paddlecloud.core.lifecycle import decide
from paddlecloud.core.moving import WAKE_S
from paddlecloud.core.observed import (
    EndCause,
    Exit,
    Move,
    Observed,
    ReplicaKey,
    ReplicaObserved,
    ReplicaState,
)
from paddlecloud.core.phases import Phase
from paddlecloud.core.resources import Resources

T0 = 1000.0


def spec(mode: Mode, pservers: int = 0, exit_codes: frozenset[int] = frozenset()) -> JobSpec:
    roles = [RoleSpec(Role.TRAINER, 2, Resources())]
    if pservers:
        roles.append(RoleSpec(Role.PSERVER, pservers, Resources()))
    rule = RestartRule(0, exit_codes)
    return JobSpec(name="j", mode=mode, roles=tuple(roles), entry="true", restart=rule)


def seen(name: str, attempt: int = 1, *, stopping: bool = False, code: int | None = None, at=T0):
    role, _, index = name.partition("-")
    key = ReplicaKey("job-1", 1, Role(role), int(index), attempt)
    if code is None:
        return ReplicaObserved(key, ReplicaState.RUNNING, T0, stopping=stopping)
    end = Exit(EndCause.EXITED, code)
    return ReplicaObserved(key, ReplicaState.ENDED, T0, at, end, stopping=stopping)


def move(name: str, attempt: int = 1, at: float = T0 + 1) -> Move:
    role, _, index = name.partition("-")
    return Move(Role(role), int(index), attempt, "h1", at)


def decided(wish: JobSpec, replicas: list[ReplicaObserved], *moves: Move) -> Decision:
    observed = Observed(tuple(replicas), "", T0 - 5, T0, moves)
    return decide("job-1", 1, wish, Grant(2), observed, T0 + 2000)


def actions(decision: Decision) -> list[tuple[str, str, int]]:
    return [
        (type(each).__name__, each.key.short, each.key.attempt)
        for each in decision.actions
        if isinstance(each, Start | Stop)
    ]


@pytest.mark.parametrize("mode", [Mode.COLLECTIVE, Mode.PS])
def test_stops_only_the_trainer_that_is_to_go(mode: Mode) -> None:
    both = [seen("trainer-0"), seen("trainer-1")]
    assert actions(decided(spec(mode), both, move("trainer-1"))) == [("Stop", "trainer-1", 1)]


def test_says_a_stop_once() -> None:
    both = [seen("trainer-0"), seen("trainer-1", stopping=True)]
    assert actions(decided(spec(Mode.COLLECTIVE), both, move("trainer-1"))) == []


def test_starts_it_again_at_once_whatever_it_ended_with() -> None:
    for code in (0, 143):
        both = [seen("trainer-0"), seen("trainer-1", stopping=True, code=code)]
        decision = decided(spec(Mode.COLLECTIVE), both, move("trainer-1"))
        assert actions(decision) == [("Start", "trainer-1", 2)]
        assert [event.reason for event in decision.events] == ["Moved"]
        assert decision.status.restarts == 0


def test_leaves_alone_what_had_ended_well_by_itself() -> None:
    both = [seen("trainer-0"), seen("trainer-1", code=0)]
    assert actions(decided(spec(Mode.COLLECTIVE), both, move("trainer-1"))) == []


def test_a_failure_of_its_own_is_a_failure() -> None:
    both = [seen("trainer-0", code=0), seen("trainer-1", code=3)]
    decision = decided(spec(Mode.COLLECTIVE), both, move("trainer-1"))
    assert decision.status.phase == Phase.FAILED


def test_an_order_for_an_older_attempt_is_spent() -> None:
    both = [seen("trainer-0"), seen("trainer-1", 2)]
    assert actions(decided(spec(Mode.COLLECTIVE), both, move("trainer-1"))) == []


@pytest.mark.parametrize(
    ("ended_after_s", "is_counted"),
    [(0.5, True), (1.0, False), (WAKE_S, False), (WAKE_S + 2, True)],
)
def test_a_peer_that_fails_in_the_wake_costs_nothing(ended_after_s: float, is_counted: bool):
    failed = seen("trainer-0", code=9, at=T0 + ended_after_s)
    wish = spec(Mode.COLLECTIVE, exit_codes=frozenset({77}))
    decision = decided(wish, [failed, seen("trainer-1", 2)], move("trainer-1"))
    assert actions(decision) == [("Stop", "trainer-1", 2)]
    assert decision.status.reason.startswith("ending") == is_counted


def test_trainers_beside_servers_do_not_miss_a_moved_trainer() -> None:
    servers = [seen("pserver-0")]
    failed = seen("trainer-0", code=9, at=T0 + 2)
    decision = decided(
        spec(Mode.PS, 1), [failed, seen("trainer-1", 2), *servers], move("trainer-1")
    )
    assert decision.status.reason.startswith("ending")


def test_a_server_that_goes_takes_everybody_along() -> None:
    wish = spec(Mode.PS, 1)
    all_of_them = [seen("trainer-0"), seen("trainer-1"), seen("pserver-0")]
    assert actions(decided(wish, all_of_them, move("pserver-0"))) == [
        ("Stop", "trainer-0", 1),
        ("Stop", "trainer-1", 1),
        ("Stop", "pserver-0", 1),
    ]
    gone = [seen(one.key.short, stopping=True, code=143) for one in all_of_them]
    decision = decided(wish, gone, move("pserver-0"))
    assert {each[:2] for each in actions(decision)} == {
        ("Start", "pserver-0"),
        ("Start", "trainer-0"),
        ("Start", "trainer-1"),
    }
    assert [event.reason for event in decision.events] == ["Moved"]
