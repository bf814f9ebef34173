"""Why a job waits, and what a submit would do: the planner's words, asked of the engine.

The engine gets a bounded time; when it does not answer, `explain` still says what the rows know.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from paddlecloud import clock
from paddlecloud.core import jobspec
from paddlecloud.core.errors import Unavailable
from paddlecloud.core.jobspec import JobSpec, Role
from paddlecloud.core.phases import Phase
from paddlecloud.scheduling import explanation
from paddlecloud.scheduling.plan import plan
from paddlecloud.scheduling.snapshot import JobView, Snapshot
from paddlecloud.server.authentication import Principal
from paddlecloud.server.process import here
from paddlecloud.server.services import job_rows, submitting

_WAITING = (Phase.SUBMITTED, Phase.QUEUED, Phase.PREEMPTED)
_CANDIDATE = "job-0000000000000000"


def explain(job_id: str) -> dict[str, Any]:
    job = job_rows.read(job_id)
    answer = {
        "name": job["name"],
        "id": job["id"],
        "phase": job["phase"],
        "since": job["ended_at"] or job["started_at"] or job["submitted_at"],
        "waiting": job["phase"] in _WAITING,
    }
    if not answer["waiting"]:
        return {**answer, "reason": job["reason"]}
    process = here()
    engine = process.engines.engine(job["cluster"])
    within_s = process.configuration.engines.answer_within_s
    try:
        found = process.asking.ask(
            within_s, f"the engine of {engine.cluster}", engine.explain, job_id
        )
    except Unavailable as error:
        return {**answer, "reason": job["reason"] or error.message}
    if found is None:
        return {**answer, "reason": job["reason"] or "the planner has not looked at it yet"}
    return {**answer, **explanation.to_json(found)}


def dry_run(caller: Principal, body: dict[str, Any]) -> dict[str, Any]:
    """What this body would become, and whether it would start now."""
    spec = submitting.read_spec(caller, body, needs_package=False)
    submitting.check_name_free(caller.account_id, spec.name)
    process = here()
    engine = process.engines.engine(spec.cluster)
    snapshot = process.asking.ask(
        process.configuration.engines.answer_within_s,
        f"the engine of {spec.cluster}",
        engine.snapshot,
    )
    trainers, reason = _try(snapshot, caller, spec)
    servers = spec.role(Role.PSERVER)
    size = trainers or spec.trainers.replicas
    return {
        "spec": jobspec.to_json(spec),
        "effective": {
            "trainers": size,
            "pservers": servers.replicas if servers else 0,
            "mode": spec.mode.value,
            "gpu_total": spec.resources_at(size).gpu,
            "wall_time_s": spec.wall_time_s,
            "priority": spec.priority.word,
        },
        "starts": "now" if trainers else "later",
        "reason": reason,
    }


def _try(snapshot: Snapshot, caller: Principal, spec: JobSpec) -> tuple[int, str]:
    """(trainers granted now, the planner's sentence) if the job were submitted this moment."""
    view = JobView(_CANDIDATE, spec, caller.account_id, caller.name, clock.now())
    grant = plan(replace(snapshot, jobs=(*snapshot.jobs, view))).grants[_CANDIDATE]
    return grant.trainers, grant.reason
