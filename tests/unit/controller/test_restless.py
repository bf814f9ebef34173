from __future__ import annotations

import pytest

from paddlecloud.controller import restless
from paddlecloud.controller.restless import PATIENCE, Restless, Watchfulness
from tests.unit.controller.pretended import role, running


def act(watch: Watchfulness, times: int, seen: int = 7, now: float = 0.0) -> float:
    """How long it has to wait after the last of several looks that changed something."""
    pause_s = 0.0
    for _ in range(times):
        try:
            watch.acted("job", seen, now)
        except Restless as error:
            pause_s = error.pause_s
    return pause_s


def test_makes_a_job_wait_that_acts_on_one_picture_for_ever():
    watch = Watchfulness()
    assert act(watch, PATIENCE) == 0
    assert [act(watch, 1) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]


def test_lets_a_job_act_on_new_pictures():
    watch = Watchfulness()
    assert [act(watch, 1, seen) for seen in range(5 * PATIENCE)] == [0] * (5 * PATIENCE)


def test_starts_anew_after_a_quiet_while_only():
    watch = Watchfulness()
    assert act(watch, PATIENCE + 5) == 16
    assert act(watch, 1, now=16.0) == 32
    assert act(watch, 1, now=16.0 + 32.0 + restless.QUIET_S + 1) == 0


def test_forgets_jobs_that_are_long_gone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(restless, "MOST_JOBS", 3)
    watch = Watchfulness()
    for job in range(9):
        watch.acted(job, 1, 0.0)
    assert len(watch._records) == 3


def test_sees_the_same_picture_when_only_versions_changed():
    world = running(worker=role(2))
    first = restless.picture(world.body, world.pods().values())
    world.body["metadata"]["resourceVersion"] = "9"
    world.stored["pods", "job-worker-0"]["metadata"]["uid"] = "another"
    assert restless.picture(world.body, world.pods().values()) == first
    world.end("job-worker-0", 1)
    assert restless.picture(world.body, world.pods().values()) != first
