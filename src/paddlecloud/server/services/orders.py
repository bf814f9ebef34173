"""What a user may order about a job that exists: kill it, run it again, delete it.

An order is a row first; the feeder tells the engine. Repeating one changes nothing.
"""

from __future__ import annotations

from typing import Any

from paddlecloud import clock
from paddlecloud.core import jobspec
from paddlecloud.core.errors import Conflict, NotFound
from paddlecloud.core.phases import Phase
from paddlecloud.server.database import after_commit, writing
from paddlecloud.server.exchange import Request
from paddlecloud.server.jobs.models import Job, Run
from paddlecloud.server.process import here
from paddlecloud.server.services import (
    finding,
    groups,
    idempotency,
    job_rows,
    locating,
    new_jobs,
    packages,
    submitting,
)
from paddlecloud.server.services.revisions import announce, next_revision

_MAX_REASON = 500


def _row(job_id: str) -> Job:
    job = Job.objects.select_related("account").filter(pk=job_id, deleted=False).first()
    if job is None:
        raise NotFound(f"no job {job_id}", field="job")
    return job


def cancel(job_id: str, by: str, reason: str = "") -> None:
    """Ask a live job to end as Killed; an ended one is left alone."""
    with writing():
        job = _row(job_id)
        if not job.live or job.cancel_asked:
            return
        words = reason.strip()[:_MAX_REASON] or f"killed by {by}"
        _order(job, cancel_asked=words)
        new_jobs.note(job, "KillAsked", words, clock.now())


def delete(job_id: str, by: str) -> None:
    """Hide the job now; it is killed if live, and forgotten when it has ended."""
    with writing():
        job = _row(job_id)
        words = job.cancel_asked or (f"deleted by {by}" if job.live else "")
        _order(job, deleted=True, cancel_asked=words)


def _order(job: Job, **columns: Any) -> None:
    revision = next_revision()
    Job.objects.filter(pk=job.pk).update(**columns, revision=revision)
    announce(job.account_id, job.id, revision)
    feeder = here().feeder
    after_commit(lambda: feeder.look_at(job.id))


def rerun(request: Request, job_id: str) -> tuple[dict[str, Any], bool]:
    """(the job with one run more, whether the key had been seen before)."""
    with writing():
        seen = idempotency.find(request)
        if seen is None:
            job = _next_run(job_id, request.caller.name)
            idempotency.keep(request, 201, job_id=job.id)
    if seen is not None:
        return job_rows.read(seen.job_id), True
    here().feeder.begin(job)
    return job_rows.read(job.id), False


def run_again(job_id: str, by: str) -> None:
    """As `rerun`, for who keeps the key of the request."""
    with writing():
        job = _next_run(job_id, by)
        after_commit(lambda: here().feeder.begin(job))


def _next_run(job_id: str, by: str) -> Job:
    job = _row(job_id)
    if job.live:
        raise Conflict(
            f"{job.name} is {job.phase}; only a job that has ended can be run again",
            hint=f"paddlecloud kill {job.name}, then run it again",
        )
    submitting.check_name_free(job.account_id, job.name)
    groups.check_rerun(job)
    spec = jobspec.from_json(request_spec(job))
    finding.check_rerun(job.name, spec)
    package = job.package
    if job.package_digest:
        if not packages.exists(job.account_id, job.package_digest):
            raise Conflict(f"the package of {job.name} is no longer kept", hint="submit it again")
        # Its folder may have been put aside for a later job of the same name.
        folder = locating.job_folder(job.cluster, job.account.username, job.name)
        package = locating.text(folder)
    now = clock.now()
    facts = {
        "run": job.run + 1,
        "phase": Phase.SUBMITTED.value,
        "live": True,
        "reason": "",
        "counts": new_jobs.first_counts(spec),
        "failure": "null",
        "granted": 0,
        **new_jobs.amounts_at(spec, granted=0),
        "restarts": 0,
        "started_at": None,
        "ended_at": None,
        "prepared": False,
        "cancel_asked": "",
        "moves": "[]",
        "trainers_asked": None,
        "package": package,
        "revision": next_revision(),
    }
    Job.objects.filter(pk=job.pk).update(**facts)
    for name, value in facts.items():
        setattr(job, name, value)
    Run.objects.create(
        job=job,
        run=job.run,
        phase=job.phase,
        counts=job.counts,
        package=package,
        submitted_at=now,
    )
    new_jobs.note(job, "Rerun", f"run {job.run} asked for by {by}", now)
    announce(job.account_id, job.id, job.revision)
    return job


def request_spec(job: Job) -> dict[str, Any]:
    import msgspec

    spec: dict[str, Any] = msgspec.json.decode(job.spec)
    return spec
