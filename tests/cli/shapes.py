"""Answers of a server, as small as a test can say them."""

from __future__ import annotations

from typing import Any

from tests.scripted_server import Answer


def job(name: str = "wide-deep", **changes: Any) -> dict[str, Any]:
    return {
        "id": "job-4f1c09d2a7b35e60",
        "name": name,
        "run": 1,
        "phase": "Running",
        "reason": "",
        "account": "alice",
        "group": "",
        "cluster": "local",
        "mode": "ps",
        "priority": "normal",
        "submitted_at": "2026-11-15T07:59:19.000Z",
        "started_at": "2026-11-15T07:59:20.120Z",
        "ended_at": None,
        "revision": 7,
        "roles": {"trainer": counts(2, running=2), "pserver": counts(2, running=2)},
        "granted": 2,
        "cpu": "4",
        "memory": "4Gi",
        "gpu": 0,
        "restarts": 0,
        "max_restarts": 0,
        "package": "/pfs/local/home/alice/jobs/wide-deep",
        "output": "/pfs/local/home/alice/jobs/wide-deep/output",
        "kill": None,
        "failure": None,
        **changes,
    }


def counts(wanted: int, running: int = 0, succeeded: int = 0, failed: int = 0) -> dict[str, int]:
    return {"wanted": wanted, "running": running, "succeeded": succeeded, "failed": failed}


def ended(name: str = "wide-deep", phase: str = "Succeeded", **changes: Any) -> dict[str, Any]:
    roles = {"trainer": counts(2, succeeded=2)}
    fields = {"phase": phase, "ended_at": "2026-11-15T07:59:50.000Z", "roles": roles, **changes}
    return job(name, **fields)


def page(*jobs: dict[str, Any], following: str | None = None) -> Answer:
    return Answer({"items": list(jobs), "next": following, "revision": 7})


def replica(
    name: str = "wide-deep-trainer-0", state: str = "Running", attempt: int = 1, **changes: Any
) -> dict[str, Any]:
    _, role, index = name.rsplit("-", 2)
    return {
        "name": name,
        "role": role,
        "index": int(index),
        "run": 1,
        "attempt": attempt,
        "state": state,
        "address": f"127.0.0.{int(index) + 2}",
        "node": "local",
        "started_at": "2026-11-15T07:59:20.120Z" if state != "Pending" else None,
        "ended_at": None,
        "exit": None,
        "stop_asked": False,
        **changes,
    }


def exit_of(code: int = 0, cause: str = "exited", signal: int = 0, message: str = "") -> dict:
    return {"cause": cause, "code": code, "signal": signal, "message": message}


def failure(**changes: Any) -> dict[str, Any]:
    return {
        "replica": "trainer-1",
        **exit_of(1),
        "at": "2026-11-15T07:59:45.000Z",
        **changes,
    }


def log(text: str) -> Answer:
    size = str(len(text.encode()))
    headers = {"X-Log-Next": size, "X-Log-Size": size, "X-Log-Dropped": "0", "X-Log-Ended": "0"}
    return Answer(text.encode(), headers=headers)
