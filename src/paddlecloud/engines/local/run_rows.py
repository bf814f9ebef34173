"""Tables of the embedded engine's memory, and their rows as text and back: runs, orders.

Called by `store` only; it touches no database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from paddlecloud.core import jobspec
from paddlecloud.core.jobspec import Role
from paddlecloud.core.observed import Move
from paddlecloud.engines.protocols import JobRun

SCHEMA = """
create table if not exists runs (
  job_id text not null, run integer not null, job text not null, account_id integer not null,
  live integer not null, cancel text not null default '',
  granted integer not null default 0, grant_reason text not null default '',
  grant_revision integer not null default 0,
  network_base integer not null default 0, gpus text not null default '{}',
  status text not null, replicas text not null default '[]', first_started_at real,
  primary key (job_id, run));
create index if not exists runs_live on runs (live) where live;
create table if not exists moves (
  job_id text not null, run integer not null, moves text not null, primary key (job_id, run));
create table if not exists preemptions (
  job_id text not null, run integer not null, times integer not null, at real not null,
  trainers integer not null, primary key (job_id, run));
"""


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
