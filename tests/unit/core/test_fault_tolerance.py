"""A fault-tolerant job with parameter servers goes on while one of its trainers lives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paddlecloud.core.actions import Decision, Grant, Start
from paddlecloud.core.jobspec import JobSpec, Mode
from paddlecloud.core.lifecycle import decide
from paddlecloud.core.observed import Observed, ReplicaObserved
from paddlecloud.core.phases import Phase
from tests.unit.core.test_lifecycle import T0, a_spec, seen


def tolerant(restarts: int = 0, **more: object) -> JobSpec:
    spec = a_spec(Mode.PS, trainers=3, pservers=1, restarts=restarts, **more)  # type: ignore[arg-type]
    return replace(spec, fault_tolerant=True)


def look(spec: JobSpec, *replicas: ReplicaObserved, grant: int = 3) -> Decision:
    observed = Observed((seen("pserver-0"), *replicas), first_started_at=T0)
    return decide("job-1", 1, spec, Grant(grant), observed, T0 + 500)


def test_goes_on_without_a_trainer_that_may_not_start_again():
    found = look(tolerant(), seen("trainer-0", "fail"), seen("trainer-1"), seen("trainer-2"))
    assert found.status.phase == Phase.RUNNING
    assert found.status.reason == "goes on without trainer-0"
    assert not any(isinstance(action, Start) for action in found.actions)
    assert [event.reason for event in found.events] == ["GivenUp", "Running"]


def test_fails_at_once_if_it_is_not_fault_tolerant():
    spec = replace(tolerant(), fault_tolerant=False)
    found = look(spec, seen("trainer-0", "fail"), seen("trainer-1"), seen("trainer-2"))
    assert found.status.reason == "ending: exit 1 in trainer-0"


def test_succeeds_when_those_left_have():
    found = look(
        tolerant(), seen("trainer-0", "fail"), seen("trainer-1", "ok"), seen("trainer-2", "ok")
    )
    assert found.ending
    done = decide(
        "job-1",
        1,
        tolerant(),
        Grant(3),
        Observed((seen("trainer-0", "fail"), seen("trainer-1", "ok"), seen("trainer-2", "ok"))),
        T0,
    )
    assert done.status.phase == Phase.SUCCEEDED


def test_fails_when_all_its_trainers_have():
    ends = [seen(f"trainer-{i}", "fail", at=T0 + i) for i in range(3)]
    found = decide("job-1", 1, tolerant(), Grant(3), Observed(tuple(ends)), T0 + 9)
    assert (found.status.phase, found.status.reason) == (Phase.FAILED, "exit 1 in trainer-2")


def test_answers_the_first_failures_with_restarts():
    found = look(
        tolerant(restarts=1),
        seen("trainer-0", "fail", at=T0 + 1),
        seen("trainer-1", "fail", at=T0 + 2),
        seen("trainer-2"),
    )
    started = [action.key.short for action in found.actions if isinstance(action, Start)]
    assert started == ["trainer-0"]
    assert [event.reason for event in found.events] == ["GivenUp", "Restarting"]


def test_gives_up_at_once_what_may_not_be_retried():
    spec = tolerant(restarts=9, exit_codes=frozenset({3}))
    found = look(
        spec,
        seen("trainer-0", "fail", code=1),
        seen("trainer-1", "fail", code=3),
        seen("trainer-2"),
    )
    started = [action.key.short for action in found.actions if isinstance(action, Start)]
    assert started == ["trainer-1"]


def test_fails_when_a_server_does():
    replicas = [seen("pserver-0", "fail"), *(seen(f"trainer-{i}") for i in range(3))]
    found = decide(
        "job-1", 1, tolerant(), Grant(3), Observed(tuple(replicas), first_started_at=T0), T0 + 9
    )
    assert found.status.reason == "ending: exit 1 in pserver-0"


@pytest.mark.parametrize("grant", [0, 2])
def test_waits_with_a_trainer_given_up(grant):
    found = look(tolerant(), seen("trainer-0", "fail"), seen("trainer-1"), grant=grant)
    assert found.status.phase == (Phase.RUNNING if grant else Phase.PREEMPTED)
