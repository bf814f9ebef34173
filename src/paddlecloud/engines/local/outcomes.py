"""How an attempt ended, from the facts left behind. Pure; called once per attempt."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

from paddlecloud.core.contract import termination_message
from paddlecloud.core.observed import EndCause, Exit, ReplicaState
from paddlecloud.core.resources import format_memory
from paddlecloud.engines.local.attempts import Result, Status

MAX_MESSAGE_BYTES = 4096  # as Kubernetes keeps


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known when an attempt is over."""

    status: Status
    termination_log: bytes = b""
    out_of_memory_kills: int = 0
    memory_bytes: int = 0
    seen_at: float = 0.0  # when the platform noticed


def _message(facts: Facts, code: int) -> str:
    own_words = facts.termination_log[:MAX_MESSAGE_BYTES].decode("utf-8", "replace").strip()
    return own_words or termination_message(code)


def _start_failure(status: Status) -> Exit:
    reason = status.start_failure or "; ".join(status.complaints[-3:])
    return Exit(
        EndCause.START_FAILED,
        code=127,
        message=reason or "it was killed before its program started",
    )


def _out_of_memory(facts: Facts, code: int, number: int) -> Exit:
    limit = f" of {format_memory(facts.memory_bytes)}" if facts.memory_bytes else ""
    return Exit(
        EndCause.OUT_OF_MEMORY,
        code=code,
        signal=number,
        message=f"killed for exceeding its memory limit{limit}; ask for more memory",
    )


def _ended(facts: Facts) -> Exit:
    # No word from the shim although the program ran: somebody killed the shim, and the kernel
    # or the platform killed all the rest after it.
    wait_status = facts.status.wait_status
    if wait_status is None:
        wait_status = int(signal.SIGKILL)
    code = os.waitstatus_to_exitcode(wait_status)
    number = -code if code < 0 else 0
    code = 128 + number if number else code
    if facts.out_of_memory_kills and code != 0:
        return _out_of_memory(facts, code, number)
    cause = EndCause.SIGNALED if number else EndCause.EXITED
    return Exit(cause, code=code, signal=number, message=_message(facts, code))


def judge(facts: Facts) -> Result:
    """An attempt whose shim was killed while starting the program counts as killed, not as a
    failed start: the program may have run."""
    status = facts.status
    if status.start_failure:
        started_at, end = None, _start_failure(status)
    elif status.ready_at is not None:
        started_at, end = status.started_at or status.ready_at, _ended(facts)
    elif facts.out_of_memory_kills:
        started_at, end = None, _out_of_memory(facts, 128 + signal.SIGKILL, signal.SIGKILL)
    else:
        started_at, end = None, _start_failure(status)
    ended_at = status.ended_at if status.ended_at is not None else facts.seen_at
    return Result(ReplicaState.ENDED, started_at, ended_at, end)
