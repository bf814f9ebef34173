from __future__ import annotations

import itertools

import pytest

from paddlecloud.core.phases import (
    ACTIVE,
    LIVE,
    TERMINAL,
    ForbiddenMove,
    Phase,
    check_move,
    may_move,
)


@pytest.mark.parametrize(("old", "new"), list(itertools.product(sorted(TERMINAL), Phase)))
def test_never_leaves_a_terminal_phase(old: Phase, new: Phase) -> None:
    assert may_move(old, new) == (old == new)


@pytest.mark.parametrize(("old", "new"), list(itertools.product(sorted(LIVE), sorted(TERMINAL))))
def test_ends_from_any_live_phase(old: Phase, new: Phase) -> None:
    check_move(old, new)


@pytest.mark.parametrize(
    "path",
    [
        "Submitted Queued Starting Running Succeeded",
        "Submitted Starting Running Failed",
        "Submitted Queued Killed",
        "Running Starting Running",  # a restart
        "Running Rescaling Running",
        "Running Preempted Queued Starting Running",
        "Queued Suspended Queued",
        "Running Suspended Starting",
        "Running TimedOut",
    ],
)
def test_allows_the_ways_jobs_go(path: str) -> None:
    for old, new in itertools.pairwise(Phase(word) for word in path.split()):
        check_move(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Phase.QUEUED, Phase.RUNNING),  # nothing runs that was not started
        (Phase.QUEUED, Phase.SUBMITTED),
        (Phase.RUNNING, Phase.SUBMITTED),
        (Phase.SUBMITTED, Phase.RUNNING),
        (Phase.QUEUED, Phase.PREEMPTED),  # holds nothing that could be taken
        (Phase.SUSPENDED, Phase.RUNNING),
        (Phase.SUCCEEDED, Phase.RUNNING),
    ],
)
def test_refuses_other_moves(old: Phase, new: Phase) -> None:
    with pytest.raises(ForbiddenMove, match=f"from {old} to {new}"):
        check_move(old, new)


@pytest.mark.parametrize("phase", list(Phase))
def test_staying_is_no_move(phase: Phase) -> None:
    check_move(phase, phase)


def test_reaches_every_phase_from_the_first() -> None:
    reached, todo = {Phase.SUBMITTED}, [Phase.SUBMITTED]
    while todo:
        old = todo.pop()
        fresh = {new for new in Phase if may_move(old, new)} - reached
        reached |= fresh
        todo += fresh
    assert reached == set(Phase)


def test_divides_the_phases() -> None:
    assert set(Phase) == LIVE | TERMINAL
    assert not LIVE & TERMINAL
    assert ACTIVE <= LIVE
