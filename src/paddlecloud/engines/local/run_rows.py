"""Rows of the embedded engine's memory as text and back: runs, what they were given, orders.

Called by `store` only; it touches no database.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from paddlecloud.core import jobspec
from paddlecloud.core.jobspec import Role
from paddlecloud.core.observed import Move
from paddlecloud.engines.protocols import JobRun


def dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def job_to_json(job: JobRun) -> dict[str, Any]:
    return {
        "job_id": job.job_id,
        "run": job.run,
        "spec": jobspec.to_json(job.spec),
        "account_id": job.account_id,
        "account": job.account,
        "submitted_at": job.submitted_at,
        "uid": job.uid,
        "secret_env": dict(job.secret_env),
    }


def job_from_json(body: Mapping[str, Any]) -> JobRun:
    return JobRun(**{**body, "spec": jobspec.from_json(body["spec"])})


@dataclass(frozen=True, slots=True)
class Placed:
    """What a run was given: its size, the first of its address numbers, its cards."""

    trainers: int
    network_base: int
    gpus: Mapping[str, list[int]]


def moves_to_json(moves: Iterable[Move]) -> list[list[Any]]:
    return [[m.role.value, m.index, m.attempt, m.host, m.at] for m in moves]


def moves_from_json(body: Iterable[list[Any]]) -> tuple[Move, ...]:
    return tuple(Move(Role(row[0]), *row[1:]) for row in body)
