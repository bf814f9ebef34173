"""Another number of trainers for a job that runs: an order is a row first, the feeder tells the
engine.

Only engines that can do it (`scale`) are asked. The least and the most are the job's own; of a job
that somebody made on the cluster they are on its object, and the operator keeps to them.
"""

from __future__ import annotations

from typing import Any

from paddlecloud import clock
from paddlecloud.core import jobspec
from paddlecloud.core.errors import Conflict, InvalidInput
from paddlecloud.engines.protocols import Engine
from paddlecloud.forms.fields import MAX_REPLICAS
from paddlecloud.server.database import after_commit, writing
from paddlecloud.server.exchange import decode
from paddlecloud.server.jobs.models import Job
from paddlecloud.server.process import here
from paddlecloud.server.services import finding, new_jobs
from paddlecloud.server.services.revisions import announce, next_revision

_FIELD = "trainers"


def scale(job_id: str, by: str, body: dict[str, Any]) -> None:
    wanted = body.get(_FIELD)
    is_whole = isinstance(wanted, int) and not isinstance(wanted, bool)
    if not is_whole or not 1 <= int(wanted or 0) <= MAX_REPLICAS:
        raise InvalidInput(f"must be a whole number from 1 to {MAX_REPLICAS}", field=_FIELD)
    with writing():
        job = Job.objects.get(pk=job_id)
        _check(job, int(wanted or 0))
        revision = next_revision()
        Job.objects.filter(pk=job.id).update(trainers_asked=wanted, revision=revision)
        new_jobs.note(job, "ScaleAsked", f"{by} asked for {wanted} trainers", clock.now())
        announce(job.account_id, job.id, revision)
        feeder = here().feeder
        after_commit(lambda: feeder.look_at(job.id))


def _check(job: Job, wanted: int) -> None:
    engine = here().engines.engine(job.cluster)
    if not hasattr(engine, "scale"):
        raise Conflict(
            f"jobs of {job.cluster} keep the number of trainers they were submitted with",
            hint=f"paddlecloud kill {job.name}, then submit it with another -parallelism",
        )
    if not job.live or job.cancel_asked:
        doing = "is being stopped" if job.live else f"is {job.phase}"
        raise Conflict(f"{job.name} {doing}; only a live job can change its size")
    spec = jobspec.from_json(decode(job.spec))
    least, most = spec.trainers.min_replicas, spec.trainers.max_replicas
    if finding.is_found(spec) or least <= wanted <= most:
        return
    if least == most:
        raise InvalidInput(
            f"{job.name} has {most} trainers, no fewer and no more",
            field=_FIELD,
            hint="submit it with -min_instance and -max_instance to change its size later",
        )
    raise InvalidInput(f"must be from {least} to {most}, as the job was submitted", field=_FIELD)


def tell(engine: Engine, job: Job) -> None:
    """The engine has the order when this returns, and it is not told a second time: whoever
    changes the size on the cluster afterwards is not overruled."""
    if job.trainers_asked is None or not hasattr(engine, "scale"):
        return
    engine.scale(job.id, job.run, job.trainers_asked)
    with writing():
        told = Job.objects.filter(pk=job.id, trainers_asked=job.trainers_asked)
        told.update(trainers_asked=None)
