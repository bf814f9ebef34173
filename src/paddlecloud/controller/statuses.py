"""The `status` of a job: the words of the first operators, and what they lacked.

`build` makes the whole status from one look; the same look gives the same status, so a writer
can compare and stay silent. Times and transitions that were told before are kept. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from paddlecloud.controller import allotments, in_front
from paddlecloud.controller.identity import (
    Identity,
    Json,
)
from paddlecloud.controller.remembering import written_time
from paddlecloud.core import completion
from paddlecloud.core.actions import Status
from paddlecloud.core.jobspec import Mode, Role
from paddlecloud.core.observed import ReplicaObserved, ReplicaState
from paddlecloud.core.phases import Phase
from paddlecloud.engines.kubernetes import allocations
from paddlecloud.engines.kubernetes.allocations import Allocation
from paddlecloud.forms.custom_resources import ClusterJob, Warned
from paddlecloud.kube.kinds import TRAINING_JOB, Kind, PhaseWords
from paddlecloud.kube.words import JOB_LABEL, ROLE_LABEL

MAX_REFS = 500  # an object must stay small enough to be stored

_MODES = {
    Mode.PS: "PS",
    Mode.COLLECTIVE: "Collective",
    Mode.HETER: "Heter",
    Mode.SINGLE: "Single",
}


def phase_word(
    words: PhaseWords, job: ClusterJob, status: Status, seen: Iterable[ReplicaObserved]
) -> str:
    match status.phase:
        case Phase.SUCCEEDED:
            return words.completed
        case Phase.FAILED | Phase.TIMED_OUT:
            return words.failed
        case Phase.KILLED:
            return words.killed
        case Phase.RUNNING:
            return words.running
        case Phase.QUEUED | Phase.PREEMPTED | Phase.SUSPENDED:
            return words.suspended if job.suspend else words.pending
    is_begun = any(one.state == ReplicaState.RUNNING for one in seen)
    return words.starting if is_begun else words.pending


def build(
    who: Identity,
    job: ClusterJob,
    warnings: Sequence[Warned],
    decided: Status,
    seen: Sequence[ReplicaObserved],
    *,
    pods: Mapping[tuple[Role, int], Json],
    trouble: str,
    remembered: Json,
    old: Json,
    generation: int,
    now: float,
) -> Json:
    words = who.kind.phases
    phase = phase_word(words, job, decided, seen)
    latest = completion.latest_attempts(seen)
    present = [one for slot, one in latest.items() if slot in pods]
    workers = sum(one.key.role == Role.TRAINER and not one.stopping for one in present)
    running = sum(one.state == ReplicaState.RUNNING for one in present)
    wanted = sum(count.wanted for count in decided.roles.values())
    reason = decided.reason
    if phase in (words.pending, words.starting) and trouble:
        reason = trouble
    status: Json = {
        "phase": phase,
        "lifecycle": decided.phase.value,
        "mode": _MODES[job.spec.mode],
        "reason": reason,
        "ready": f"{running}/{wanted}",
        "replicas": workers,
        "selector": _selector(who),
        "observedGeneration": generation,
        "restarts": decided.restarts,
    }
    status |= _by_role(who.kind, job, latest, pods)
    status |= remembered
    if decided.started_at is not None:
        status["startTime"] = old.get("startTime") or written_time(decided.started_at)
    if phase in words.final:
        ended_at = decided.ended_at if decided.ended_at is not None else now
        status["completionTime"] = old.get("completionTime") or written_time(ended_at)
    status["conditions"] = [
        *_conditions(words, phase, decided.phase, reason, warnings, old, now),
        condition_row(*in_front.condition(job, who), old=old, now=now),
    ]
    return status


def add_allocation(status: Json, allocation: Allocation, old: Json, now: float) -> None:
    """What the planner says, beside the rest."""
    status[allocations.KEY] = allocations.write(allocation)
    row = condition_row(*allotments.condition(allocation), old=old, now=now)
    status["conditions"] = [*status["conditions"], row]


# What changes with every pod of a job that starts.
_COUNTING = frozenset({"phase", "reason", "ready", "replicas", "startTime", "replica_statuses"})


def may_wait(kind: Kind, old: Json, new: Json) -> bool:
    """Whether all that is new is how many pods of a starting job run: told together later, a job
    of a hundred pods is not written a hundred times."""
    words = kind.phases
    early = (words.pending, words.starting)
    if old.get("phase") not in early or new.get("phase") not in early:
        return False
    counting = _COUNTING | {kind.role_word(role) for role in Role}

    def rest(status: Json) -> Json:
        lasting = {key: value for key, value in status.items() if key not in counting}
        conditions = status.get("conditions") or ()
        lasting["conditions"] = [row for row in conditions if row.get("type") != "Running"]
        return lasting

    return rest(old) == rest(new)


def _selector(who: Identity) -> str:
    return f"{JOB_LABEL}={who.name},{ROLE_LABEL}={who.kind.role_word(Role.TRAINER)}"


# --- how the roles stand -------------------------------------------------------------------------


def _by_role(
    kind: Kind,
    job: ClusterJob,
    latest: Mapping[tuple[Role, int], ReplicaObserved],
    pods: Mapping[tuple[Role, int], Json],
) -> Json:
    seen = {
        role.role: [one for one in latest.values() if one.key.role == role.role]
        for role in job.spec.roles
    }
    if kind is TRAINING_JOB:
        return {"scale_status": {}, "replica_statuses": [_replicas(*row) for row in seen.items()]}
    return {
        kind.role_word(role): {**_counts(mine), **_refs(role, pods)} for role, mine in seen.items()
    }


def _refs(role: Role, pods: Mapping[tuple[Role, int], Json]) -> Json:
    mine = sorted((slot[1], pod["metadata"]) for slot, pod in pods.items() if slot[0] == role)
    found = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        for _, metadata in mine[:MAX_REFS]
    ]
    return {"refs": found} if found else {}


def _replicas(role: Role, mine: Sequence[ReplicaObserved]) -> Json:
    """In the words of the first controller, which has `starting` for all that comes before."""
    counts = _counts(mine)
    states = {"starting": counts.get("pending", 0), **counts}
    states["failed"] = counts.get("failed", 0) + counts.get("unknown", 0)
    states = {word: n for word, n in states.items() if n and word in _STATES}
    return {
        "training_resource_type": role.value.upper(),
        "state": next((word for word in _STATES if states.get(word)), "starting"),
        "resource_states": states,
    }


# The first that any replica is in is the role's: one that failed is news, one that is done not.
_STATES = ("failed", "starting", "running", "succeeded")


def _counts(mine: Sequence[ReplicaObserved]) -> Json:
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
    words: PhaseWords,
    phase: str,
    decided: Phase,
    reason: str,
    warnings: Sequence[Warned],
    old: Json,
    now: float,
) -> list[Json]:
    found = [
        ("Valid", True, "Understood", ""),
        ("Running", phase == words.running, phase, reason),
    ]
    if warnings:
        found.insert(1, ("OddSpec", True, "Understood", "; ".join(map(str, warnings))))
    if phase == words.completed:
        found.append(("Complete", True, phase, ""))
    if phase == words.failed:
        found.append(("Failed", True, decided.value, reason))
    if phase == words.killed:
        found.append(("Killed", True, decided.value, reason))
    return [condition_row(*row, old=old, now=now) for row in found]


def condition_row(
    kind: str, is_so: bool, reason: str, message: str, *, old: Json, now: float
) -> Json:
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


def build_invalid(words: PhaseWords, problem: str, old: Json, generation: int, now: float) -> Json:
    """The status of a job whose spec can never work. What runs already is left as it is."""
    kept = [one for one in old.get("conditions") or () if one.get("type") != "Valid"]
    return {
        **old,
        "phase": old.get("phase") or words.pending,
        "lifecycle": old.get("lifecycle") or Phase.QUEUED.value,
        "reason": problem if old.get("phase") in (None, words.pending) else old.get("reason", ""),
        "observedGeneration": generation,
        "conditions": [
            condition_row("Valid", False, "InvalidSpec", problem, old=old, now=now),
            *kept,
        ],
    }


def build_killed(words: PhaseWords, why: str, old: Json, generation: int, now: float) -> Json:
    """The status of a job that was killed while its spec could not be read."""
    kept = [one for one in old.get("conditions") or () if one.get("type") != "Running"]
    return {
        **old,
        "phase": words.killed,
        "lifecycle": Phase.KILLED.value,
        "reason": why,
        "observedGeneration": generation,
        "completionTime": written_time(now),
        "conditions": [
            *kept,
            condition_row("Running", False, words.killed, why, old=old, now=now),
            condition_row("Killed", True, Phase.KILLED.value, why, old=old, now=now),
        ],
    }
