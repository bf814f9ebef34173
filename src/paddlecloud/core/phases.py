"""The phases of a job and the one table of moves between them.

Everyone who changes a job's phase asks `check_move`; every form maps these words to its own.
"""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    SUBMITTED = "Submitted"  # accepted and stored, not yet seen by a planner
    QUEUED = "Queued"  # the planner saw it and it must wait; there is a reason
    STARTING = "Starting"  # granted; replicas are being made
    RUNNING = "Running"  # every replica of the grant runs or has ended well
    RESCALING = "Rescaling"  # moving to another size
    PREEMPTED = "Preempted"  # capacity taken away; goes back to the queue
    SUSPENDED = "Suspended"  # the user asked it to pause
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    KILLED = "Killed"
    TIMED_OUT = "TimedOut"  # the wall time ran out


TERMINAL = frozenset({Phase.SUCCEEDED, Phase.FAILED, Phase.KILLED, Phase.TIMED_OUT})
LIVE = frozenset(Phase) - TERMINAL
# Phases in which replicas may hold resources.
ACTIVE = frozenset({Phase.STARTING, Phase.RUNNING, Phase.RESCALING})

_ENDS = TERMINAL
_MOVES: dict[Phase, frozenset[Phase]] = {
    Phase.SUBMITTED: frozenset({Phase.QUEUED, Phase.STARTING, Phase.SUSPENDED}) | _ENDS,
    Phase.QUEUED: frozenset({Phase.STARTING, Phase.SUSPENDED}) | _ENDS,
    Phase.STARTING: frozenset(
        {Phase.RUNNING, Phase.RESCALING, Phase.PREEMPTED, Phase.SUSPENDED, Phase.QUEUED}
    )
    | _ENDS,
    Phase.RUNNING: frozenset(
        {Phase.STARTING, Phase.RESCALING, Phase.PREEMPTED, Phase.SUSPENDED, Phase.QUEUED}
    )
    | _ENDS,
    Phase.RESCALING: frozenset(
        {Phase.STARTING, Phase.RUNNING, Phase.PREEMPTED, Phase.SUSPENDED, Phase.QUEUED}
    )
    | _ENDS,
    Phase.PREEMPTED: frozenset({Phase.QUEUED, Phase.STARTING, Phase.SUSPENDED}) | _ENDS,
    Phase.SUSPENDED: frozenset({Phase.QUEUED, Phase.STARTING}) | _ENDS,
    # A finished run never moves again; a re-run is a new run with its own phase.
    Phase.SUCCEEDED: frozenset(),
    Phase.FAILED: frozenset(),
    Phase.KILLED: frozenset(),
    Phase.TIMED_OUT: frozenset(),
}


class ForbiddenMove(ValueError):
    """A phase change the table does not have: a bug in the caller, never user input."""


def may_move(old: Phase, new: Phase) -> bool:
    return old == new or new in _MOVES[old]


def check_move(old: Phase, new: Phase) -> None:
    if not may_move(old, new):
        raise ForbiddenMove(f"a job cannot go from {old} to {new}")
