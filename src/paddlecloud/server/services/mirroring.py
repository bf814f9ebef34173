"""Copies what an engine tells into rows: one thread per engine, one transaction per batch.

The cursor is written with the changes it covers, so nothing is lost or told twice over a crash.
The engine is believed about what happened, within reason: a run that has ended stays ended, a job
nobody submitted is ignored unless it was made on the cluster itself (`finding`), and a cursor never
goes back, unless the engine's memory is another one than last time (`continuity`). No polling:
`watch` blocks.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from typing import Any

from paddlecloud import clock
from paddlecloud.core import jobspec
from paddlecloud.core.actions import Failure, Status
from paddlecloud.core.observed import ReplicaState
from paddlecloud.core.phases import TERMINAL, Phase
from paddlecloud.core.status_json import exit_to_json
from paddlecloud.engines.protocols import Change, Engine
from paddlecloud.server.database import after_commit, forget_broken_connection, writing
from paddlecloud.server.exchange import decode, encode, rfc3339
from paddlecloud.server.jobs.models import EngineCursor, Event, Job, Replica, Run
from paddlecloud.server.process import here
from paddlecloud.server.services import finding, new_jobs, tokens
from paddlecloud.server.services.revisions import announce, next_revision, stamp_job

log = logging.getLogger(__name__)

_WATCH_S = 300.0  # only how often an idle thread turns over
_AFTER_ERROR_S = 1.0
_READ = ("account_id", "run", "deleted", "granted", "spec")  # of a job's row


class Mirror:
    """`cursor` is where to go on: see `continuity.resume`."""

    def __init__(self, engine: Engine, cursor: int) -> None:
        self._engine = engine
        self._cursor = cursor
        self._thread = threading.Thread(
            target=self._work, name=f"mirror-{engine.cluster}", daemon=True
        )
        self._stopping = threading.Event()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    def _work(self) -> None:
        cursor = self._cursor
        while not self._stopping.is_set():
            try:
                changes = self._engine.watch(cursor, _WATCH_S)
                if changes and not self._stopping.is_set():
                    cursor = apply(self._engine.cluster, cursor, changes)
            except Exception:
                if self._stopping.is_set():
                    return
                log.exception("mirroring %s failed; again in a second", self._engine.cluster)
                forget_broken_connection()
                self._stopping.wait(_AFTER_ERROR_S)


def apply(cluster: str, after: int, changes: Sequence[Change]) -> int:
    """Write a batch; returns the new cursor."""
    fresh = []
    last = after
    for change in changes:
        if change.cursor > last:
            fresh.append(change)
            last = change.cursor
    if not fresh:
        return after
    job_ids = {change.job_id for change in fresh}
    found = finding.look_for(cluster, job_ids)
    with writing():
        finding.take_up(found, cluster)
        rows = Job.objects.filter(id__in=job_ids)
        known = {job.id: job for job in rows.only(*_READ)}
        ours = [change for change in fresh if change.job_id in known]
        touched = _write_statuses(known, ours) | _write_events(ours)
        for job_id in touched:
            announce(known[job_id].account_id, job_id, stamp_job(job_id))
        if not EngineCursor.objects.filter(cluster=cluster).update(cursor=last):
            EngineCursor.objects.create(cluster=cluster, cursor=last)
    return last


def _write_events(changes: Iterable[Change]) -> set[str]:
    rows = [
        Event(
            job_id=change.job_id,
            run=change.run,
            at=change.at,
            reason=change.event.reason,
            message=_storable(change.event.message),
            severity=change.event.severity.value,
            replica=change.event.replica,
        )
        for change in changes
        if change.event is not None
    ]
    Event.objects.bulk_create(rows)
    return {row.job_id for row in rows}


def _write_statuses(known: dict[str, Job], changes: Iterable[Change]) -> set[str]:
    """Only the last status of each run in the batch matters; those before it are history."""
    newest: dict[tuple[str, int], Change] = {}
    for change in changes:
        key = (change.job_id, change.run)
        if change.status is None or _has_ended(newest.get(key)):
            continue
        newest[key] = change
    touched = set()
    for change in newest.values():
        if change.status is not None and _write_status(known[change.job_id], change, change.status):
            touched.add(change.job_id)
    return touched


def _has_ended(change: Change | None) -> bool:
    return change is not None and change.status is not None and change.status.phase in TERMINAL


def _storable(text: str) -> str:
    """What a program said may hold NUL characters, which PostgreSQL does not keep."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def failure_json(failure: Failure | None) -> str:
    if failure is None:
        return "null"
    return encode(
        {
            "replica": failure.replica,
            **exit_to_json(failure.exit),
            "at": rfc3339(failure.at),
        }
    ).decode()


def _counts_json(status: Status) -> str:
    return encode(
        {
            role.value: {
                "wanted": count.wanted,
                "running": count.running,
                "succeeded": count.succeeded,
                "failed": count.failed,
            }
            for role, count in status.roles.items()
        }
    ).decode()


def _write_status(job: Job, change: Change, status: Status) -> bool:
    facts: dict[str, Any] = {
        "phase": status.phase.value,
        "reason": _storable(status.reason),
        "counts": _counts_json(status),
        "failure": failure_json(status.failure),
        "restarts": status.restarts,
        "started_at": status.started_at,
        "ended_at": status.ended_at,
    }
    if status.phase in TERMINAL and status.ended_at is None:
        facts["ended_at"] = clock.now()
    terminal = [phase.value for phase in TERMINAL]
    written = (
        Run.objects.filter(job_id=job.id, run=change.run)
        .exclude(phase__in=terminal)
        .update(**facts)
    )
    if not written:
        return False
    _write_replicas(change)
    if job.run == change.run:
        is_live = status.phase not in TERMINAL
        facts |= {"live": is_live, **_grant(job, change.trainers_granted)}
        Job.objects.filter(pk=job.id).update(**facts)
        if not is_live:
            _after_end(job)
    return True


def _grant(job: Job, trainers: int) -> dict[str, int]:
    if trainers == job.granted:
        return {}
    spec = jobspec.from_json(decode(job.spec))
    return {"granted": trainers, **new_jobs.amounts_at(spec, trainers)}


def _write_replicas(change: Change) -> None:
    rows = [
        Replica(
            job_id=change.job_id,
            run=change.run,
            role=seen.key.role.value,
            index=seen.key.index,
            attempt=seen.key.attempt,
            state=seen.state.value,
            stopping=seen.stopping,
            address=seen.address,
            node=seen.node,
            exit="null" if seen.exit is None else encode(exit_to_json(seen.exit)).decode(),
            started_at=seen.started_at,
            ended_at=seen.ended_at,
        )
        for seen in change.replicas
    ]
    Replica.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["job", "run", "role", "index", "attempt"],
        update_fields=["state", "stopping", "address", "node", "exit", "started_at", "ended_at"],
    )


def _after_end(job: Job) -> None:
    tokens.revoke_job_tokens(job.id)
    if job.deleted:
        feeder, job_id = here().feeder, job.id
        after_commit(lambda: feeder.look_at(job_id))


def _none_running(counts: str) -> str:
    by_role = decode(counts)
    for count in by_role.values():
        count["running"] = 0
    return encode(by_role).decode()


def record_end(job: Job, phase: Phase, reason: str) -> None:
    """The server itself ends a run the engine never got (its folder could not be filled), or of
    which it has lost all trace."""
    now = clock.now()
    with writing():
        if not Job.objects.filter(pk=job.id, run=job.run, live=True).exists():
            return  # somebody was quicker
        facts = {"phase": phase.value, "reason": reason, "ended_at": now}
        facts["counts"] = _none_running(job.counts)
        alive = (ReplicaState.PENDING.value, ReplicaState.RUNNING.value)
        replicas = Replica.objects.filter(job_id=job.id, run=job.run, state__in=alive)
        replicas.update(state=ReplicaState.LOST.value, ended_at=now)
        Run.objects.filter(job_id=job.id, run=job.run).update(**facts)
        revision = next_revision()
        Job.objects.filter(pk=job.id).update(**facts, live=False, revision=revision)
        Event.objects.create(
            job_id=job.id,
            run=job.run,
            at=now,
            reason=phase.value,
            message=reason,
            severity="Warning",
        )
        _after_end(job)
        announce(job.account_id, job.id, revision)
