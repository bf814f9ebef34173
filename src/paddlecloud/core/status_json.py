"""The one JSON spelling of a status, a replica and an event, stored and sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddlecloud.core.actions import Event, Failure, RoleCount, Severity, Status
from paddlecloud.core.jobspec import Role
from paddlecloud.core.observed import EndCause, Exit, ReplicaKey, ReplicaObserved, ReplicaState
from paddlecloud.core.phases import Phase


def exit_to_json(end: Exit) -> dict[str, Any]:
    return {
        "cause": end.cause.value,
        "code": end.code,
        "signal": end.signal,
        "message": end.message,
    }


def exit_from_json(body: Mapping[str, Any]) -> Exit:
    return Exit(EndCause(body["cause"]), body["code"], body["signal"], body["message"])


def status_to_json(status: Status) -> dict[str, Any]:
    failure = status.failure
    return {
        "phase": status.phase.value,
        "reason": status.reason,
        "roles": {
            role.value: {
                "wanted": count.wanted,
                "running": count.running,
                "succeeded": count.succeeded,
                "failed": count.failed,
            }
            for role, count in status.roles.items()
        },
        "restarts": status.restarts,
        "started_at": status.started_at,
        "ended_at": status.ended_at,
        "failure": None
        if failure is None
        else {"replica": failure.replica, "exit": exit_to_json(failure.exit), "at": failure.at},
    }


def status_from_json(body: Mapping[str, Any]) -> Status:
    failure = body["failure"]
    return Status(
        phase=Phase(body["phase"]),
        reason=body["reason"],
        roles={Role(role): RoleCount(**count) for role, count in body["roles"].items()},
        restarts=body["restarts"],
        started_at=body["started_at"],
        ended_at=body["ended_at"],
        failure=None
        if failure is None
        else Failure(failure["replica"], exit_from_json(failure["exit"]), failure["at"]),
    )


def replica_to_json(seen: ReplicaObserved) -> dict[str, Any]:
    key = seen.key
    return {
        "job_id": key.job_id,
        "run": key.run,
        "role": key.role.value,
        "index": key.index,
        "attempt": key.attempt,
        "state": seen.state.value,
        "started_at": seen.started_at,
        "ended_at": seen.ended_at,
        "exit": None if seen.exit is None else exit_to_json(seen.exit),
        "stopping": seen.stopping,
        "address": seen.address,
        "node": seen.node,
    }


def replica_from_json(body: Mapping[str, Any]) -> ReplicaObserved:
    end = body["exit"]
    return ReplicaObserved(
        key=ReplicaKey(
            body["job_id"], body["run"], Role(body["role"]), body["index"], body["attempt"]
        ),
        state=ReplicaState(body["state"]),
        started_at=body["started_at"],
        ended_at=body["ended_at"],
        exit=None if end is None else exit_from_json(end),
        stopping=body["stopping"],
        address=body["address"],
        node=body["node"],
    )


def event_to_json(event: Event) -> dict[str, Any]:
    return {
        "reason": event.reason,
        "message": event.message,
        "severity": event.severity.value,
        "replica": event.replica,
    }


def event_from_json(body: Mapping[str, Any]) -> Event:
    return Event(body["reason"], body["message"], Severity(body["severity"]), body["replica"])
