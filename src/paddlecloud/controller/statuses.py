"""The `status` of a PaddleJob: the words of the first operator, and what it lacked.

`build` makes the whole status from one look; the same look gives the same status, so a writer
can compare and stay silent. Times and transitions that were told before are kept. Pure.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from paddlecloud.controller.identity import (
    Identity,
    Json,
    role_word,
)
from paddlecloud.controller.observing import written_time
from paddlecloud.core import completion
from paddlecloud.core.actions import Status
from paddlecloud.core.jobspec import Mode, Role
from paddlecloud.core.observed import ReplicaObserved, ReplicaState
from paddlecloud.core.phases import Phase
from paddlecloud.forms.custom_resources import ClusterJob, Warned
from paddlecloud.kube.words import JOB_LABEL, ROLE_LABEL

PENDING, STARTING, RUNNING = "Pending", "Starting", "Running"
COMPLETED, FAILED, SUSPENDED = "Completed", "Failed", "Suspended"
FINAL = frozenset({COMPLETED, FAILED})

_MODES = {
    Mode.PS: "PS",
    Mode.COLLECTIVE: "Collective",
    Mode.HETER: "Heter",
    Mode.SINGLE: "Single",
}


def phase_word(job: ClusterJob, status: Status, seen: Iterable[ReplicaObserved]) -> str:
    match status.phase:
        case Phase.SUCCEEDED:
            return COMPLETED
        case Phase.FAILED | Phase.KILLED | Phase.TIMED_OUT:
            return FAILED
        case Phase.RUNNING:
            return RUNNING
        case Phase.QUEUED | Phase.PREEMPTED | Phase.SUSPENDED:
            return SUSPENDED if job.suspend else PENDING
    return STARTING if any(one.state == ReplicaState.RUNNING for one in seen) else PENDING


def build(
    who: Identity,
    job: ClusterJob,
    warnings: Sequence[Warned],
    decided: Status,
    seen: Sequence[ReplicaObserved],
    *,
    pods: Container[tuple[Role, int]],
    trouble: str,
    failures: Sequence[Json],
    old: Json,
    generation: int,
    now: float,
) -> Json:
    phase = phase_word(job, decided, seen)
    latest = completion.latest_attempts(seen)
    present = [one for slot, one in latest.items() if slot in pods]
    workers = sum(one.key.role == Role.TRAINER and not one.stopping for one in present)
    running = sum(one.state == ReplicaState.RUNNING for one in present)
    wanted = sum(count.wanted for count in decided.roles.values())
    reason = decided.reason
    if phase in (PENDING, STARTING) and trouble:
        reason = trouble
    status: Json = {
        "phase": phase,
        "mode": _MODES[job.spec.mode],
        "reason": reason,
        "ready": f"{running}/{wanted}",
        "replicas": workers,
        "selector": f"{JOB_LABEL}={who.name},{ROLE_LABEL}={role_word(Role.TRAINER)}",
        "observedGeneration": generation,
        "restarts": decided.restarts,
    }
    for role in job.spec.roles:
        status[role_word(role.role)] = _counts(role.role, latest.values())
    if failures:
        status["failures"] = list(failures)
    if decided.started_at is not None:
        status["startTime"] = old.get("startTime") or written_time(decided.started_at)
    if phase in FINAL:
        ended_at = decided.ended_at if decided.ended_at is not None else now
        status["completionTime"] = old.get("completionTime") or written_time(ended_at)
    status["conditions"] = _conditions(phase, reason, warnings, old, now)
    return status


def _counts(role: Role, latest: Iterable[ReplicaObserved]) -> Json:
    mine = [one for one in latest if one.key.role == role]
    counts = {
        "pending": sum(one.state == ReplicaState.PENDING for one in mine),
        "running": sum(one.state == ReplicaState.RUNNING for one in mine),
        "succeeded": sum(completion.ended_well(one) for one in mine),
        "failed": sum(completion.has_failed(one) for one in mine),
        "unknown": sum(one.state == ReplicaState.LOST for one in mine),
    }
    return {word: count for word, count in counts.items() if count}


# --- conditions --------------------------------------------------------------------------------


def _conditions(
    phase: str, reason: str, warnings: Sequence[Warned], old: Json, now: float
) -> list[Json]:
    found = [
        ("Valid", True, "Understood", ""),
        ("Running", phase == RUNNING, phase, reason),
    ]
    if warnings:
        found.insert(1, ("OddSpec", True, "Understood", "; ".join(map(str, warnings))))
    if phase == COMPLETED:
        found.append(("Complete", True, phase, ""))
    if phase == FAILED:
        found.append(("Failed", True, phase, reason))
    return [_condition(*row, old=old, now=now) for row in found]


def _condition(kind: str, is_so: bool, reason: str, message: str, *, old: Json, now: float) -> Json:
    word = "True" if is_so else "False"
    before: Json = next((one for one in old.get("conditions") or () if one.get("type") == kind), {})
    since = before.get("lastTransitionTime") if before.get("status") == word else None
    return {
        "type": kind,
        "status": word,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since or written_time(now),
    }


def build_invalid(problem: str, old: Json, generation: int, now: float) -> Json:
    """The status of a job whose spec can never work. What runs already is left as it is."""
    kept = [one for one in old.get("conditions") or () if one.get("type") != "Valid"]
    return {
        **old,
        "phase": old.get("phase") or PENDING,
        "reason": problem if old.get("phase") in (None, PENDING) else old.get("reason", ""),
        "observedGeneration": generation,
        "conditions": [
            _condition("Valid", False, "InvalidSpec", problem, old=old, now=now),
            *kept,
        ],
    }
