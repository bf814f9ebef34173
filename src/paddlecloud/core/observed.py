"""What was seen of a job's replicas: the input of `lifecycle.decide`, whatever the engine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from paddlecloud.core.jobspec import Role


@dataclass(frozen=True, slots=True, order=True)
class ReplicaKey:
    """Names one attempt of one replica for ever; a restart is another attempt."""

    job_id: str
    run: int  # 1, 2, ...
    role: Role
    index: int  # 0-based, the rank within the role; never changes
    attempt: int  # 1, 2, ...

    @property
    def short(self) -> str:
        """`trainer-0`: what users call it."""
        return f"{self.role.value}-{self.index}"


class ReplicaState(StrEnum):
    PENDING = "Pending"  # asked for, its program has not started yet
    RUNNING = "Running"
    ENDED = "Ended"  # see `Exit`
    LOST = "Lost"  # it is gone and nobody knows how it ended (reboot, node lost)


class EndCause(StrEnum):
    EXITED = "exited"  # `code` says how
    SIGNALED = "signaled"  # `signal` says by what
    OUT_OF_MEMORY = "out_of_memory"  # killed for exceeding its memory
    START_FAILED = "start_failed"  # the program never ran; `message` says why


MAX_SIGNAL = 64


def signal_of(code: int) -> int:
    """The signal that an exit code tells of, as shells and container runtimes count; or 0."""
    return code - 128 if 128 < code <= 128 + MAX_SIGNAL else 0


@dataclass(frozen=True, slots=True)
class Exit:
    cause: EndCause
    code: int = 0  # the exit code, or 128 + signal
    signal: int = 0
    message: str = ""  # what the program left in its termination log, or our own words

    @property
    def ok(self) -> bool:
        return self.cause == EndCause.EXITED and self.code == 0


@dataclass(frozen=True, slots=True)
class ReplicaObserved:
    key: ReplicaKey
    state: ReplicaState
    started_at: float | None = None  # unix seconds
    ended_at: float | None = None
    exit: Exit | None = None  # set when ENDED
    stopping: bool = False  # we asked it to stop; its exit is then no failure
    address: str = ""  # the IP its peers use
    node: str = ""

    @property
    def alive(self) -> bool:
        return self.state in (ReplicaState.PENDING, ReplicaState.RUNNING)


@dataclass(frozen=True, slots=True)
class Move:
    """The user's order that a replica leaves a host: this attempt ends, the next starts off it."""

    role: Role
    index: int
    attempt: int  # the one that is to go; an order for an older one is spent
    host: str  # to avoid
    at: float  # unix seconds


@dataclass(frozen=True, slots=True)
class Observed:
    """One look at a run: every attempt the engine still knows, and the user's orders."""

    replicas: tuple[ReplicaObserved, ...] = ()
    cancel_asked: str = ""  # non-empty: the user's kill, with its reason
    submitted_at: float = 0.0
    first_started_at: float | None = None  # when the run first ran; the wall time counts from here
    moves: tuple[Move, ...] = ()


def describe_end(seen: ReplicaObserved) -> str:
    """How a replica ended, in words: `exit 1 in trainer-1`."""
    name = seen.key.short
    if seen.state == ReplicaState.LOST or seen.exit is None:
        return f"{name} was lost: the machine or its node restarted"
    tail = f": {seen.exit.message}" if seen.exit.message else ""
    match seen.exit.cause:
        case EndCause.EXITED:
            return f"exit {seen.exit.code} in {name}{tail}"
        case EndCause.SIGNALED:
            return f"{name} was ended by signal {seen.exit.signal}{tail}"
        case EndCause.OUT_OF_MEMORY:
            return f"{name} ran out of memory{tail}"
        case EndCause.START_FAILED:
            return f"{name} could not start{tail}"
