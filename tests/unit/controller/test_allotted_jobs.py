"""What a job does and says under a planner: it waits, starts, gives way and comes again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from paddlecloud.controller.allotments import Allotted
from paddlecloud.engines.kubernetes.allocations import Allocation
from paddlecloud.forms.custom_resources import Warned
from tests.unit.controller.pretended import Namespace, role

WAITS = Allocation(0, 0, "waits for 2 cpu: 0 free", "NoRoom")


def world(allocation: Allocation, **spec: Any) -> Namespace:
    made = Namespace(**{"worker": role(2), **spec})
    made.allotted = Allotted(allocation)
    made.settle()
    return made


def started(**spec: Any) -> Namespace:
    made = world(Allocation(2, 1), **spec)
    made.run()
    made.settle()
    assert made.status["phase"] == "Running"
    return made


def preempt(made: Namespace) -> None:
    assert made.allotted is not None
    before = made.allotted.allocation
    stopped = replace(
        before,
        workers=0,
        revision=before.revision + 1,
        reason="preempted: group owners takes its guarantee back",
        cause="Preempted",
        preemptions=before.preemptions + 1,
        preempted_at=made.now,
    )
    made.allotted = Allotted(stopped)


def readmit(made: Namespace) -> None:
    assert made.allotted is not None
    before = made.allotted.allocation
    made.allotted = Allotted(
        replace(before, workers=2, revision=before.revision + 1, reason="", cause="")
    )


def condition(made: Namespace, kind: str = "Admitted") -> tuple[str, str, str]:
    row = next(one for one in made.status["conditions"] if one["type"] == kind)
    return row["status"], row["reason"], row["message"]


def told(made: Namespace, reason: str) -> list[str]:
    return [message for kind, message in dict.fromkeys(made.events) if kind == reason]


def test_makes_nothing_while_it_waits():
    made = world(WAITS)
    assert made.stored == {}
    assert (made.status["phase"], made.status["reason"]) == ("Pending", WAITS.reason)
    assert made.status["allocation"] == {
        "workers": 0,
        "revision": 0,
        "reason": WAITS.reason,
        "cause": "NoRoom",
    }
    assert condition(made) == ("False", "NoRoom", WAITS.reason)
    assert told(made, "Queued") == [WAITS.reason]


def test_says_once_that_it_is_queued():
    made = world(WAITS)
    made.allotted = Allotted(replace(WAITS, reason="waits behind other", cause="Behind"))
    made.settle()
    assert condition(made)[:2] == ("False", "Behind")
    assert told(made, "Queued") == [WAITS.reason]


def test_starts_all_of_it_when_it_is_admitted():
    made = world(WAITS, ps=role(1))
    made.allotted = Allotted(Allocation(2, 1))
    made.settle()
    assert len(made.pods()) == 3
    assert condition(made) == ("True", "Admitted", "")
    assert told(made, "Admitted") == ["starts with 2 trainers, 3 replicas in all"]


def test_never_has_more_than_its_grant():
    made = started()
    made.body["spec"]["worker"]["replicas"] = 4
    why = "has 2 of 4 workers: waits for 2 cpu: 0 free"
    made.allotted = Allotted(Allocation(2, 1, why))
    made.settle()
    assert len(made.pods()) == 2
    assert condition(made) == ("True", "Admitted", why)
    made.allotted = Allotted(Allocation(4, 2))
    made.settle()
    assert len(made.pods()) == 4


def test_gives_way_and_comes_again():
    made = started()
    preempt(made)
    made.settle()
    assert made.pods() == {}
    assert made.status["phase"] == "Pending"
    assert condition(made)[:2] == ("False", "Preempted")
    assert told(made, "Preempted") == [
        "preempted: group owners takes its guarantee back; it goes back to the queue with its age"
    ]
    assert told(made, "Queued") == []
    readmit(made)
    made.settle()
    made.run()
    made.settle()
    assert (made.status["phase"], made.status["restarts"]) == ("Running", 0)
    attempts = {
        pod["metadata"]["labels"]["paddlepaddle.org/attempt"] for pod in made.pods().values()
    }
    assert attempts == {"2"}
    assert told(made, "Admitted")[-1] == (
        "starts with 2 trainers, 2 replicas in all (after preemption 1)"
    )


def test_does_not_count_a_preemption_as_a_restart():
    """No restart is allowed, and still it comes back every time."""
    made = started(backoffLimit=0)
    for _ in range(3):
        preempt(made)
        made.step()  # the pods are told to go
        for name in made.pods():
            made.end(name, 143)
        made.settle()
        assert made.status["phase"] == "Pending"
        readmit(made)
        made.settle()
        made.run()
        made.settle()
    assert (made.status["phase"], made.status["restarts"]) == ("Running", 0)
    assert len(told(made, "Preempted")) == 3
    assert len(made.status["preempted"]) == 2  # the last of each, not all there ever were


def step_until(made: Namespace, phase: str) -> None:
    """Without the waiting that `settle` does when nothing is left but to wait."""
    for _ in range(9):
        made.leave()
        made.step()
        if made.status["phase"] == phase:
            return
    raise AssertionError(f"it is {made.status['phase']}, not {phase}")


def test_begins_its_time_anew_after_a_preemption():
    made = Namespace(worker=role(2), activeDeadlineSeconds=100)
    made.allotted = Allotted(Allocation(2, 1))
    made.step()
    made.run()
    step_until(made, "Running")
    made.now = made.now + 90
    preempt(made)
    step_until(made, "Pending")
    assert "startTime" not in made.status
    made.now += 1000
    step_until(made, "Pending")
    readmit(made)
    made.step()
    made.run()
    step_until(made, "Running")
    made.now += 99
    step_until(made, "Running")
    made.now += 2
    step_until(made, "Failed")
    assert "wall time" in made.status["reason"]


def test_is_done_when_its_workers_were_before_they_could_be_stopped():
    made = started()
    preempt(made)
    for name in made.pods():
        made.end(name, 0)
    made.settle()
    assert made.status["phase"] == "Completed"


def test_is_not_admitted_while_it_is_suspended():
    made = started()
    made.body["spec"]["suspend"] = True
    made.allotted = Allotted(Allocation(0, 2, "it is suspended", "Suspended"))
    made.settle()
    assert made.pods() == {}
    assert made.status["phase"] == "Suspended"
    assert condition(made)[:2] == ("False", "Suspended")
    assert told(made, "Queued") == []


def test_can_be_killed_while_it_waits():
    made = world(WAITS)
    made.body["metadata"]["annotations"] = {"paddlepaddle.org/cancel": "enough"}
    made.settle()
    assert made.status["phase"] == "Terminated"


def test_shows_what_is_odd_about_its_group():
    made = Namespace(worker=role(1))
    made.allotted = Allotted(Allocation(1, 1), (Warned("spec.schedulingPolicy.group", "is odd"),))
    made.settle()
    assert "spec.schedulingPolicy.group: is odd" in condition(made, "OddSpec")[2]


def test_leaves_no_word_of_a_planner_where_there_is_none():
    made = Namespace(worker=role(2))
    made.settle()
    assert len(made.pods()) == 2
    assert "allocation" not in made.status
    assert "Admitted" not in {one["type"] for one in made.status["conditions"]}
