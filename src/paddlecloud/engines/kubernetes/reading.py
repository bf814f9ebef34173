"""What an object and its pods say about a run: its status, every attempt, and news to tell.

The operator decides and writes the object's status; here it is put into the words of `core`, with
the pods it made beside it. Attempts whose pods are gone are known by the object's own record of
failures and by what was read before: an attempt that has ended never changes. Pure; the engine
calls it with what its informers hold.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from paddlecloud.core import completion, restart
from paddlecloud.core.actions import Event, Failure, RoleCount, Severity, Status
from paddlecloud.core.jobspec import JobSpec, Role
from paddlecloud.core.observed import (
    EndCause,
    Exit,
    Move,
    ReplicaKey,
    ReplicaObserved,
    ReplicaState,
)
from paddlecloud.core.phases import ACTIVE, TERMINAL, Phase
from paddlecloud.core.topology import role_from_word
from paddlecloud.forms.start_command import CANNOT_START
from paddlecloud.kube.causes import cause_of
from paddlecloud.kube.kinds import KINDS, PADDLE_JOB
from paddlecloud.kube.pods import (
    container_status,
    exit_of,
    ordered_to_go_at,
    seconds,
    slot_of,
)
from paddlecloud.kube.words import (
    CANCEL_ANNOTATION,
    MOVES_ANNOTATION,
    REPLICA_ANNOTATION,
    STOPPED_ANNOTATION,
)

Json = dict[str, Any]

_PHASES = frozenset(phase.value for phase in Phase)
_WAITS = (Phase.SUBMITTED, Phase.QUEUED, Phase.STARTING)


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at a run."""

    status: Status
    replicas: tuple[ReplicaObserved, ...] = ()
    granted: int = 0
    events: tuple[Event, ...] = ()

    @property
    def is_settled(self) -> bool:
        """False: the object says it is over, and a pod that we know of has not ended yet."""
        return self.status.phase not in TERMINAL or not any(one.alive for one in self.replicas)


@dataclass(frozen=True, slots=True)
class Look:
    """What is to be read."""

    job_id: str
    run: int
    spec: JobSpec
    body: Json
    pods: Sequence[Json] = ()
    before: Sequence[ReplicaObserved] = ()
    lost_nodes: Container[str] = field(default_factory=frozenset)

    @property
    def said(self) -> Json:
        return self.body.get("status") or {}

    @property
    def notes(self) -> Json:
        return self.body["metadata"].get("annotations") or {}


def read(look: Look) -> Seen:
    replicas = attempts(look)
    phase = phase_of(look.body, replicas)
    granted = _granted(look, phase)
    causes = _causes(look)
    moves = moves_of(look.body)
    reason = str(look.said.get("reason") or "")
    if causes and (phase in _WAITS or (phase in ACTIVE and not reason)):
        reason = f"{causes[0].replica} {causes[0].message}"
    if phase == Phase.KILLED:
        reason = str(look.notes.get(CANCEL_ANNOTATION) or "").strip() or reason
    status = Status(
        phase=phase,
        reason=reason,
        roles=_roles(look.spec, granted, replicas),
        restarts=int(look.said.get("restarts") or 0),
        started_at=_started_at(look, replicas),
        ended_at=_ended_at(look, replicas) if phase in TERMINAL else None,
        failure=_failure(look.spec, replicas, moves) if phase == Phase.FAILED else None,
    )
    return Seen(status, replicas, granted, causes)


def read_vanished(
    status: Status,
    before: Sequence[ReplicaObserved],
    pods: Sequence[Json],
    words: str,
    now: float,
) -> Seen:
    """The object is gone: the run is over when its pods are."""
    left = {slot_of(pod): pod for pod in pods}
    replicas = tuple(
        one if (one.key.role, one.key.index, one.key.attempt) in left else gone(one)
        for one in before
    )
    if any(one.alive for one in replicas):
        return Seen(replace(status, reason=f"ending: {words}"), replicas)
    roles = {role: replace(count, running=0) for role, count in status.roles.items()}
    ended = replace(status, phase=Phase.KILLED, reason=words, roles=roles, ended_at=now)
    event = Event("Killed", words, Severity.WARNING)
    return Seen(ended, replicas, events=(event,))


# --- attempts ----------------------------------------------------------------------------------


def attempts(look: Look) -> tuple[ReplicaObserved, ...]:
    """Every attempt there is or was, in the order of roles, ranks and attempts."""
    frozen = {one.key: one for one in look.before if not one.alive}
    found = {one.key: one for one in (*_stopped(look), *_failures(look))}
    found |= {one.key: one for pod in look.pods if (one := replica(look, pod)) is not None}
    for row in _failures(look):  # a failure that is on record was no order of ours to stop
        if found[row.key].stopping:
            found[row.key] = replace(found[row.key], stopping=False)
    found |= frozen
    for one in look.before:
        if one.key not in found:
            found[one.key] = gone(one)
    return tuple(found[key] for key in sorted(found))


def replica(look: Look, pod: Json) -> ReplicaObserved | None:
    slot = slot_of(pod)
    if slot is None:
        return None
    status, metadata = pod.get("status") or {}, pod["metadata"]
    ran = container_status(pod).get("state") or {}
    times = ran.get("terminated") or ran.get("running") or {}
    end, node = exit_of(pod), str((pod.get("spec") or {}).get("nodeName") or "")
    is_deleted = bool(metadata.get("deletionTimestamp"))
    if end is not None:
        state = ReplicaState.ENDED
    elif is_deleted and node in look.lost_nodes:
        state = ReplicaState.LOST
    else:
        state = ReplicaState.RUNNING if ran.get("running") else ReplicaState.PENDING
    ended_at = None if end is None else _when_ended(pod, times)
    return ReplicaObserved(
        key=ReplicaKey(look.job_id, look.run, *slot),
        state=state,
        started_at=seconds(times.get("startedAt")) if state != ReplicaState.PENDING else None,
        ended_at=ended_at,
        exit=end,
        stopping=_was_stopped(pod, ended_at),
        address=str(status.get("podIP") or ""),
        node=node,
    )


def _when_ended(pod: Json, times: Mapping[str, Any]) -> float | None:
    ended = seconds(times.get("finishedAt"))
    if ended is not None:
        return ended
    changes = [seconds(one.get("lastTransitionTime")) for one in _conditions(pod)]
    return max(filter(None, changes), default=None) or seconds(
        pod["metadata"].get("creationTimestamp")
    )


def _conditions(pod: Json) -> Iterable[Json]:
    return (pod.get("status") or {}).get("conditions") or ()


def _was_stopped(pod: Json, ended_at: float | None) -> bool:
    """Whether its end was ordered: one that had ended by itself is deleted only to tidy up."""
    if STOPPED_ANNOTATION in (pod["metadata"].get("annotations") or {}):
        return True
    ordered_at = ordered_to_go_at(pod)
    return ordered_at is not None and (ended_at is None or ended_at >= ordered_at)


def gone(seen: ReplicaObserved) -> ReplicaObserved:
    """An attempt whose pod is there no more: what it was doing last is all that is known."""
    if not seen.alive:
        return seen
    if seen.stopping:
        end = Exit(EndCause.SIGNALED, 143, 15, "its pod was deleted")
        return replace(seen, state=ReplicaState.ENDED, exit=end)
    return replace(seen, state=ReplicaState.LOST)


def _failures(look: Look) -> list[ReplicaObserved]:
    """Attempts that failed and whose pods were replaced, as the object records them."""
    return [one for row in _rows(look, "failures") if (one := _recorded(look, row)) is not None]


def _stopped(look: Look) -> list[ReplicaObserved]:
    """Attempts that were told to go, as the object records them."""
    rows = [*_rows(look, "moved"), *_rows(look, "preempted")]
    found = [_recorded(look, row) for row in rows]
    return [replace(one, stopping=True) for one in found if one is not None]


def _rows(look: Look, key: str) -> list[Json]:
    rows = look.said.get(key)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _recorded(look: Look, row: Json) -> ReplicaObserved | None:
    """None for a row that makes no sense: others than the operator may write there."""
    role = role_from_word(str(row.get("role")))
    if role is None:
        return None
    try:
        key = ReplicaKey(look.job_id, look.run, role, int(row["index"]), int(row["attempt"]))
        cause, message = EndCause(row.get("cause", "exited")), str(row.get("message", ""))
        if message.startswith(CANNOT_START):
            cause, message = EndCause.START_FAILED, message.removeprefix(CANNOT_START)
        end = Exit(cause, int(row.get("code", 1)), int(row.get("signal", 0)), message)
        times = seconds(row.get("startedAt")), seconds(row.get("endedAt"))
    except (KeyError, TypeError, ValueError):
        return None
    node = str(row.get("node") or "")
    return ReplicaObserved(key, ReplicaState.ENDED, *times, end, node=node)


# --- the status --------------------------------------------------------------------------------


def phase_of(body: Json, replicas: Sequence[ReplicaObserved]) -> Phase:
    said = body.get("status") or {}
    exact = str(said.get("lifecycle") or "")
    if exact in _PHASES:
        return Phase(exact)
    kind = next((kind for kind in KINDS if kind.name == body.get("kind")), PADDLE_JOB)
    phase = kind.phase_of(body)
    latest = completion.latest_attempts(replicas).values()
    if phase == Phase.QUEUED and any(not one.stopping for one in latest):
        return Phase.STARTING
    return phase


def _granted(look: Look, phase: Phase) -> int:
    allocation = look.said.get("allocation")
    if isinstance(allocation, Mapping) and isinstance(allocation.get("workers"), int):
        return int(allocation["workers"])
    waits = phase in (Phase.SUBMITTED, Phase.QUEUED, Phase.SUSPENDED)
    return 0 if waits else look.spec.trainers.replicas


def _roles(
    spec: JobSpec, granted: int, replicas: Sequence[ReplicaObserved]
) -> dict[Role, RoleCount]:
    latest = completion.latest_attempts(replicas)
    roles: dict[Role, RoleCount] = {}
    for role in spec.roles:
        mine = [seen for slot, seen in latest.items() if slot[0] == role.role]
        is_trainer = role.role == Role.TRAINER
        roles[role.role] = RoleCount(
            wanted=(granted or role.replicas) if is_trainer else role.replicas,
            running=sum(seen.state == ReplicaState.RUNNING for seen in mine),
            succeeded=sum(completion.ended_well(seen) for seen in mine),
            failed=sum(completion.has_failed(seen) for seen in mine),
        )
    return roles


def _started_at(look: Look, replicas: Iterable[ReplicaObserved]) -> float | None:
    told = seconds(look.said.get("startTime"))
    if told is not None:
        return told
    return min((one.started_at for one in replicas if one.started_at is not None), default=None)


def _ended_at(look: Look, replicas: Iterable[ReplicaObserved]) -> float | None:
    told = seconds(look.said.get("completionTime"))
    ends = [one.ended_at for one in replicas if one.ended_at is not None]
    return told if told is not None else max(ends, default=None)


def _failure(
    spec: JobSpec, replicas: Sequence[ReplicaObserved], moves: Sequence[Move]
) -> Failure | None:
    found = restart.fatal(spec, replicas, moves) or completion.first_failure(replicas)
    if found is None:
        return None
    end = found.exit or Exit(EndCause.SIGNALED, 0, 0, "it vanished without leaving an exit code")
    return Failure(found.key.short, end, found.ended_at)


def _causes(look: Look) -> tuple[Event, ...]:
    """One warning for each pod that cannot run; trainers' first."""
    found = []
    for pod in look.pods:
        slot, cause = slot_of(pod), cause_of(pod, look.lost_nodes)
        if slot is not None and cause is not None:
            name = f"{slot[0].value}-{slot[1]}"
            event = Event(cause.reason, cause.words, Severity.WARNING, name)
            found.append(((slot[0] != Role.TRAINER, slot[1]), event))
    return tuple(event for _, event in sorted(found, key=lambda row: row[0]))


# --- orders and events -------------------------------------------------------------------------


def move_rows(body: Json) -> list[Json]:
    """The orders on an object, as they are written there."""
    text = (body["metadata"].get("annotations") or {}).get(MOVES_ANNOTATION) or "[]"
    try:
        rows = json.loads(text)
    except ValueError:
        return []
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def move_row(move: Move) -> Json:
    return {
        "role": move.role.value,
        "index": move.index,
        "attempt": move.attempt,
        "host": move.host,
        "at": move.at,
    }


def moves_of(body: Json) -> tuple[Move, ...]:
    found = []
    for row in move_rows(body):
        role = role_from_word(str(row.get("role")))
        try:
            if role is not None:
                place = int(row["index"]), int(row["attempt"]), str(row.get("host") or "")
                found.append(Move(role, *place, float(row.get("at") or 0.0)))
        except (KeyError, TypeError, ValueError):
            continue  # not written by us
    return tuple(found)


def event_of(body: Json) -> Event:
    """An event of the operator's in our words."""
    severity = Severity.WARNING if body.get("type") == "Warning" else Severity.NORMAL
    notes = body["metadata"].get("annotations") or {}
    return Event(
        str(body.get("reason") or ""),
        str(body.get("message") or ""),
        severity,
        str(notes.get(REPLICA_ANNOTATION) or ""),
    )
