"""What `lifecycle.decide` may ask an engine to do, and the rest of its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from paddlecloud.core.jobspec import Role
from paddlecloud.core.observed import Exit, ReplicaKey
from paddlecloud.core.phases import Phase


@dataclass(frozen=True, slots=True)
class Start:
    """Make this attempt; making it twice is one replica."""

    key: ReplicaKey


@dataclass(frozen=True, slots=True)
class Stop:
    """TERM, wait `grace_s`, KILL, and whatever is left of it."""

    key: ReplicaKey
    grace_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class Remove:
    """The remains of an ended replica are no longer wanted (clean-up policy)."""

    key: ReplicaKey


Action = Start | Stop | Remove


class Severity(StrEnum):
    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a job's history. Equal (reason, message) in one run is said once."""

    reason: str  # CamelCase, stable: Started, ReplicaFailed, Restarting, TimedOut, ...
    message: str
    severity: Severity = Severity.NORMAL
    replica: str = ""  # trainer-0, empty for the job itself


@dataclass(frozen=True, slots=True)
class RoleCount:
    """How the replicas of one role stand."""

    wanted: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """The first thing that went wrong: what `describe` shows."""

    replica: str
    exit: Exit
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Status:
    phase: Phase
    reason: str = ""  # one sentence a person understands
    roles: dict[Role, RoleCount] = field(default_factory=dict)
    restarts: int = 0
    started_at: float | None = None
    ended_at: float | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    actions: tuple[Action, ...]
    status: Status
    events: tuple[Event, ...] = ()
    wake_after_s: float | None = None  # look again after this long even if nothing changes
    ending: bool = False  # the verdict is there; only what is still alive has to go


@dataclass(frozen=True, slots=True)
class Grant:
    """The planner's answer for one job: 0 trainers = wait."""

    trainers: int
    reason: str = ""  # why it waits, or why this size
    revision: int = 0  # grows with each change
