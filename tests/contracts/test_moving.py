"""What every `Engine` promises about moving replicas off hosts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.core.jobspec import Mode, RestartRule, Role
from paddlecloud.core.observed import Move, ReplicaKey, ReplicaObserved
from paddlecloud.core.phases import Phase
from paddlecloud.engines.protocols import JobRun
from tests.contracts.at_once import running
from tests.engine_bench import KINDS, TIMEOUT_S, Bench

# It listens where servers do: on a cluster trainers wait for it.
SLEEPS = "trap 'exit 0' TERM; echo attempt $PADDLECLOUD_ATTEMPT; "
SLEEPS += 'python3 -m http.server --bind "$POD_IP" $PADDLE_PORT 2>/dev/null >&2 & wait'


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with running(request, tmp_path) as made:
        yield made


def order(name: str, host: str, attempt: int = 1) -> Move:
    role, _, index = name.partition("-")
    return Move(Role(role), int(index), attempt, host, time.time())


def until_running(bench: Bench, job: JobRun, **attempts: int) -> dict[str, ReplicaObserved]:
    """The replicas by name, once each of these runs in that attempt and nothing else lives."""
    wanted = {name.replace("_", "-"): attempt for name, attempt in attempts.items()}
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        change = bench.until(job, Phase.RUNNING)
        alive = {seen.key.short: seen for seen in change.replicas if seen.alive}
        if {name: seen.key.attempt for name, seen in alive.items()} == wanted:
            return alive
        bench.read(1.0)
    raise AssertionError(f"{wanted} never ran: {bench.last(job)}")


def said(bench: Bench, job: JobRun, reason: str) -> list[str]:
    bench.read()
    return [
        change.event.message
        for change in bench.told
        if change.job_id == job.job_id and change.event and change.event.reason == reason
    ]


def test_starts_a_moved_trainer_again_and_nobody_else(bench):
    job = bench.put(SLEEPS, mode=Mode.COLLECTIVE, trainers=2)
    before = until_running(bench, job, trainer_0=1, trainer_1=1)
    host = before["trainer-1"].address
    bench.engine.move(job.job_id, 1, [order("trainer-1", host)])
    after = until_running(bench, job, trainer_0=1, trainer_1=2)
    assert after["trainer-0"] == before["trainer-0"]
    assert bench.last(job).status.restarts == 0
    assert said(bench, job, "Moved") == [
        f"trainer-1 had to leave {host}; it starts again, attempt 2 (no restart is counted)"
    ]
    key = ReplicaKey(job.job_id, 1, Role.TRAINER, 1, 2)
    while bench.engine.log(key, 0, 100).data != b"attempt 2\n":
        bench.engine.log_wait(key, 0, 5.0)


def test_an_order_that_comes_again_moves_nothing(bench):
    job = bench.put(SLEEPS)
    until_running(bench, job, trainer_0=1)
    bench.engine.move(job.job_id, 1, [order("trainer-0", "h")])
    until_running(bench, job, trainer_0=2)
    bench.engine.move(job.job_id, 1, [order("trainer-0", "h")])
    bench.engine.move("job-ffffffffffffffff", 1, [order("trainer-0", "h")])
    bench.engine.move(job.job_id, 7, [order("trainer-0", "h")])
    bench.engine.move(job.job_id, 1, [order("trainer-0", "h", attempt=2)])
    until_running(bench, job, trainer_0=3)
    assert len(said(bench, job, "Moved")) == 2


def test_a_moved_server_takes_everybody_along(bench):
    job = bench.put(SLEEPS, mode=Mode.PS, trainers=1, pservers=2)
    until_running(bench, job, trainer_0=1, pserver_0=1, pserver_1=1)
    bench.engine.move(job.job_id, 1, [order("pserver-1", "h")])
    until_running(bench, job, trainer_0=2, pserver_0=2, pserver_1=2)
    assert len(said(bench, job, "Moved")) == 1
    assert bench.last(job).status.restarts == 0


def test_peers_that_fail_in_the_wake_of_a_move_cost_no_restart(bench):
    """As ranks of a collective job do when one of them goes."""
    entry = 'test "$RANK$PADDLECLOUD_ATTEMPT" = 01 || exec sleep 1000; touch up; '
    entry += "while ! test -e go; do sleep 0.02; done; exit 9"
    rule = RestartRule(max_restarts=0, backoff_s=0.01)
    job = bench.put(entry, mode=Mode.COLLECTIVE, trainers=2, restart=rule)
    until_running(bench, job, trainer_0=1, trainer_1=1)
    bench.engine.move(job.job_id, 1, [order("trainer-1", "h")])
    until_running(bench, job, trainer_0=1, trainer_1=2)
    bench.put("touch go")
    until_running(bench, job, trainer_0=3, trainer_1=3)
    assert bench.last(job).status.restarts == 0
    assert "not counted" in said(bench, job, "Restarting")[0]


def test_a_restarted_engine_still_knows_the_order(bench):
    job = bench.put("trap '' TERM; sleep 1000", grace_s=2.0)
    until_running(bench, job, trainer_0=1)
    bench.engine.move(job.job_id, 1, [order("trainer-0", "h")])
    bench.restart()
    until_running(bench, job, trainer_0=2)
    assert bench.last(job).status.restarts == 0
