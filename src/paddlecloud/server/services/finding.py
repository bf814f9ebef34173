"""Jobs that somebody made on a cluster itself: they get rows, and are then jobs like all others.

An engine that can have such jobs says what one is (`found`). The owner is the account whose
namespace it was made in. Called by the mirror for changes of jobs without a row. The feeder never
puts such a run: it is there already.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from paddlecloud.core.errors import Conflict
from paddlecloud.core.jobspec import JobSpec
from paddlecloud.engines.protocols import JobRun
from paddlecloud.forms import pod_allowance
from paddlecloud.server.accounts.models import Account
from paddlecloud.server.groups.models import Membership
from paddlecloud.server.jobs.models import Job
from paddlecloud.server.process import here
from paddlecloud.server.services import groups, new_jobs
from paddlecloud.server.services.revisions import announce

log = logging.getLogger(__name__)

MADE_WITH = "made-with"  # the annotation the engine gives such a spec


def is_found(spec: JobSpec) -> bool:
    return MADE_WITH in spec.annotations


def look_for(cluster: str, job_ids: Iterable[str]) -> list[JobRun]:
    """Those of these jobs without a row that the engine has found. Asks the engine, so it is
    called outside of transactions."""
    engine = here().engines.engine(cluster)
    if not hasattr(engine, "found"):
        return []
    wanted = set(job_ids)
    known = set(Job.objects.filter(id__in=wanted).values_list("id", flat=True))
    asked = [engine.found(job_id) for job_id in sorted(wanted - known)]
    return [run for run in asked if run is not None]


def take_up(runs: Iterable[JobRun], cluster: str) -> None:
    """Rows for them. Call inside `writing()`."""
    for run in runs:
        account = Account.objects.filter(username=run.account).first()
        if account is None:
            log.warning("%s is in the namespace of %s, who is nobody", run.job_id, run.account)
            continue
        spec = _settled(run, account, cluster)
        job = new_jobs.row_of(spec, run.job_id, account, run.submitted_at)
        job.prepared = True
        new_jobs.insert(job, spec)
        how = spec.annotations[MADE_WITH]
        new_jobs.note(job, "Found", f"made with {how}, as {run.spec.name}", run.submitted_at)
        announce(account.pk, job.id, job.revision)


def _settled(run: JobRun, account: Account, cluster: str) -> JobSpec:
    """With a name nobody has, and a group of the account's."""
    name, group = run.spec.name, run.spec.group
    if Job.objects.filter(account=account, name=name, live=True).exists():
        name = f"{name}-{run.job_id.removeprefix('job-')[:8]}"
    if group not in groups.names_of(account.pk, Membership.OWNER, Membership.MEMBER):
        group = groups.own_of(account.pk, account.username).name
    notes = {MADE_WITH: "kubectl", **run.spec.annotations}
    return replace(run.spec, name=name, group=group, cluster=cluster, annotations=notes)


def check_rerun(job_name: str, spec: JobSpec) -> None:
    """A re-run is made by the server, with the server's volumes beside it: so its templates are
    held to what a tenant may say."""
    if not is_found(spec):
        return
    for role in spec.roles:
        _, faults = pod_allowance.allow(role.template, role.role.value)
        if faults:
            raise Conflict(
                f"{job_name} was made with kubectl and has what jobs of the server may not:"
                f" {faults[0].field}",
                hint="delete the object and apply it again with kubectl",
            )
