"""`lifecycle.decide` driven by an unruly world: what must hold whatever the replicas do."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.actions import Grant, Remove, Start, Stop
from paddlecloud.core.jobspec import JobSpec, Mode, RestartRule, Role, RoleSpec
from paddlecloud.core.lifecycle import decide
from paddlecloud.core.observed import EndCause, Exit, Observed, ReplicaObserved, ReplicaState
from paddlecloud.core.phases import TERMINAL, Phase, may_move
from paddlecloud.core.resources import Resources

ONE = Resources(1000, 2**30)


class World:
    """Replicas that start late, die at random, ignore nothing; seeded, so runs repeat."""

    def __init__(self, seed: int, failure_rate: float) -> None:
        self.random = random.Random(seed)
        self.failure_rate = failure_rate
        self.replicas: dict[object, ReplicaObserved] = {}
        self.now = 1000.0
        self.first_started_at: float | None = None

    def act(self, actions) -> None:
        for action in actions:
            if isinstance(action, Start):
                assert action.key not in self.replicas, "an attempt was started twice"
                same = [r for r in self.replicas.values() if _slot(r.key) == _slot(action.key)]
                assert not any(r.alive for r in same), "two attempts of one replica at once"
                self.replicas[action.key] = ReplicaObserved(action.key, ReplicaState.PENDING)
            elif isinstance(action, Stop):
                self.replicas[action.key] = replace(self.replicas[action.key], stopping=True)
            elif isinstance(action, Remove):
                assert not self.replicas[action.key].alive

    def step(self) -> None:
        self.now += self.random.uniform(0.1, 5.0)
        for key, seen in list(self.replicas.items()):
            if not seen.alive or self.random.random() < 0.5:
                continue
            if seen.stopping:
                self._end(key, Exit(EndCause.SIGNALED, 143, 15))
            elif seen.state == ReplicaState.PENDING:
                self.replicas[key] = replace(seen, state=ReplicaState.RUNNING, started_at=self.now)
                self.first_started_at = self.first_started_at or self.now
            elif self.random.random() < self.failure_rate:
                self._end(key, Exit(EndCause.EXITED, self.random.choice([1, 2, 134])))
            elif key.role == Role.TRAINER and self.random.random() < 0.3:
                self._end(key, Exit(EndCause.EXITED, 0))

    def _end(self, key, end: Exit) -> None:
        self.replicas[key] = replace(
            self.replicas[key], state=ReplicaState.ENDED, ended_at=self.now, exit=end
        )


def _slot(key):
    return key.role, key.index


specs = st.builds(
    lambda mode, trainers, pservers, restarts, wall: JobSpec(
        name="j",
        mode=mode,
        roles=(
            RoleSpec(Role.TRAINER, trainers, ONE),
            *([RoleSpec(Role.PSERVER, pservers, ONE)] if mode == Mode.PS else []),
        ),
        entry="true",
        wall_time_s=wall,
        restart=RestartRule(restarts, backoff_s=0.5, backoff_cap_s=4.0),
    ),
    st.sampled_from([Mode.COLLECTIVE, Mode.PS]),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(0, 3),
    st.sampled_from([0, 0, 30]),
)


@given(
    spec=specs,
    seed=st.integers(0, 2**32),
    failure_rate=st.sampled_from([0.0, 0.1, 0.5]),
    cancel_at=st.one_of(st.none(), st.integers(0, 40)),
)
def test_every_run_ends_with_nothing_alive_and_within_its_budget(
    spec, seed, failure_rate, cancel_at
):
    world = World(seed, failure_rate)
    phase = Phase.SUBMITTED
    grant = Grant(spec.trainers.replicas)
    for turn in range(2000):
        cancel = "asked" if cancel_at is not None and turn >= cancel_at else ""
        observed = Observed(tuple(world.replicas.values()), cancel, 900.0, world.first_started_at)
        answer = decide("job-1", 1, spec, grant, observed, world.now)
        assert answer == decide("job-1", 1, spec, grant, observed, world.now)
        assert may_move(phase, answer.status.phase)
        phase = answer.status.phase
        world.act(answer.actions)
        assert answer.status.restarts <= spec.restart.max_restarts
        if phase in TERMINAL:
            break
        world.step()
    assert phase in TERMINAL
    assert not any(r.alive for r in world.replicas.values())
    if failure_rate == 0 and cancel_at is None and not spec.wall_time_s:
        assert phase == Phase.SUCCEEDED
    attempts = max(key.attempt for key in world.replicas) if world.replicas else 1
    assert attempts <= spec.restart.max_restarts + 1
