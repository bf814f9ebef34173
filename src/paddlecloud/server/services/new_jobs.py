"""The first rows of a job, however it came to be: submitted here, or found on a cluster.

Called inside `writing()` by `submitting` and `finding`. It checks nothing.
"""

from __future__ import annotations

from paddlecloud.core import jobspec
from paddlecloud.core.jobspec import JobSpec
from paddlecloud.core.phases import Phase
from paddlecloud.forms import rest_v1
from paddlecloud.server.accounts.models import Account
from paddlecloud.server.exchange import encode
from paddlecloud.server.jobs.models import Event, Job, Run
from paddlecloud.server.services import algorithms, groups, sharing
from paddlecloud.server.services.revisions import next_revision


def row_of(spec: JobSpec, job_id: str, account: Account, submitted_at: float) -> Job:
    """Not saved yet."""
    return Job(
        id=job_id,
        account=account,
        group_id=groups.id_of(spec.group),
        cluster=spec.cluster,
        name=spec.name,
        spec=encode(jobspec.to_json(spec)).decode(),
        wish_v1=encode(rest_v1.render_listed(spec)).decode(),
        phase=Phase.SUBMITTED.value,
        counts=first_counts(spec),
        max_restarts=spec.restart.max_restarts,
        mode=spec.mode.value,
        priority=int(spec.priority),
        **amounts_at(spec, granted=0),
        package=spec.package,
        package_digest=spec.package_digest,
        algorithm=algorithms.named_by(spec),
        submitted_at=submitted_at,
        revision=next_revision(),
    )


def amounts_at(spec: JobSpec, granted: int) -> dict[str, int]:
    """What the whole job takes: with the trainers it was granted, before that with all it wants."""
    total = spec.resources_at(granted or spec.trainers.replicas)
    return {
        "cpu_milli": total.cpu_milli,
        "memory_bytes": total.memory_bytes,
        "gpu": total.gpu,
    }


def insert(job: Job, spec: JobSpec) -> None:
    """The row and its first run; raises IntegrityError if its name is live already."""
    job.save(force_insert=True)
    Run.objects.create(
        job=job,
        run=1,
        phase=job.phase,
        counts=job.counts,
        package=job.package,
        submitted_at=job.submitted_at,
    )
    sharing.share(job, spec)


def first_counts(spec: JobSpec) -> str:
    none = {"running": 0, "succeeded": 0, "failed": 0}
    return encode({r.role.value: {"wanted": r.replicas, **none} for r in spec.roles}).decode()


def note(job: Job, reason: str, message: str, at: float) -> None:
    """An event of the server's own."""
    Event.objects.create(
        job=job, run=job.run, at=at, reason=reason, message=message, severity="Normal"
    )
