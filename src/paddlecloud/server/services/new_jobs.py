"""The first rows of a job, however it came to be: submitted here, or found on a cluster.

Called inside `writing()` by `submitting` and `finding`. It checks nothing.
"""

from __future__ import annotations

from typing import Any

from paddlecloud.core import jobspec
from paddlecloud.core.jobspec import JobSpec, Role
from paddlecloud.core.phases import Phase
from paddlecloud.core.resources import format_cpu, format_memory
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
        wish_v1=encode(wish_v1(spec)).decode(),
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


def wish_v1(spec: JobSpec) -> dict[str, Any]:
    """An entry of seed 004's job list."""
    trainer, servers = spec.trainers, spec.role(Role.PSERVER)

    def cpu(milli: int) -> int | str:
        return milli // 1000 if milli % 1000 == 0 else format_cpu(milli)

    return {
        "name": spec.name,
        "job_package": spec.package,
        "parallelism": trainer.replicas,
        "cpu": cpu(trainer.resources.cpu_milli),
        "gpu": trainer.resources.gpu,
        "memory": format_memory(trainer.resources.memory_bytes),
        "pservers": servers.replicas if servers else 0,
        "pscpu": cpu(servers.resources.cpu_milli) if servers else 0,
        "psmemory": format_memory(servers.resources.memory_bytes) if servers else "0",
        "topology": spec.topology,
        "entry": spec.entry,
    }


def first_counts(spec: JobSpec) -> str:
    none = {"running": 0, "succeeded": 0, "failed": 0}
    return encode({r.role.value: {"wanted": r.replicas, **none} for r in spec.roles}).decode()


def note(job: Job, reason: str, message: str, at: float) -> None:
    """An event of the server's own."""
    Event.objects.create(
        job=job, run=job.run, at=at, reason=reason, message=message, severity="Normal"
    )
