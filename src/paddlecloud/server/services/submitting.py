"""Accepting a job: checked, committed, its folder filled, handed to the engine; in that order.

Nothing is promised before the commit and nothing promised is lost after it: the row, its first
run and the idempotency key are one transaction; filling the folder and telling the engine are
repeated at the next start if a crash comes in between. Called by both REST interfaces.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db import IntegrityError

from paddlecloud import clock
from paddlecloud.core.errors import CannotFit, Conflict, Fault, InvalidInput
from paddlecloud.core.jobspec import JobSpec
from paddlecloud.core.names import JOB_ID_BYTES, new_job_id
from paddlecloud.engines.protocols import Engine
from paddlecloud.engines.registry import may_serve_second_account
from paddlecloud.forms import rest_v1, tenant_objects
from paddlecloud.scheduling.plan import never_fits_quota
from paddlecloud.server.accounts.models import Account
from paddlecloud.server.authentication import Principal
from paddlecloud.server.database import writing
from paddlecloud.server.exchange import Request
from paddlecloud.server.jobs.models import Job
from paddlecloud.server.process import here
from paddlecloud.server.services import (
    algorithms,
    finding,
    groups,
    idempotency,
    job_rows,
    locating,
    new_jobs,
    packages,
    quotas,
    registries,
)
from paddlecloud.server.services.revisions import announce
from paddlecloud.wire.pfspath import PfsPath

PADDLE_TRAIN = "paddle train"
KUBERNETES = "kubernetes"


def submit(request: Request, form: dict[str, Any] | None = None) -> tuple[dict[str, Any], bool]:
    """(the job, whether the key had been seen before). `form` is given where the request's own
    body is in other words."""
    seen = idempotency.find(request)
    if seen is not None:
        return job_rows.read(seen.job_id), True
    spec = read_spec(request.caller, request.json() if form is None else form)
    with writing():
        seen = idempotency.find(request)  # a twin may have been quicker
        if seen is None:
            job = _commit(request, spec)
    if seen is not None:
        return job_rows.read(seen.job_id), True
    here().feeder.begin(job)
    return job_rows.read(job.id), False


def read_spec(caller: Principal, body: dict[str, Any], *, needs_package: bool = True) -> JobSpec:
    """The spec the body means here; all that can be wrong is said before anything is done.

    A dry run sends no package, so it does not need one.
    """
    process = here()
    if is_object := tenant_objects.is_object(body):
        spec = replace(tenant_objects.parse(body), cluster=process.engines.default.cluster)
    else:
        spec = rest_v1.parse(body, default_cluster=process.engines.default.cluster)
    if finding.is_found(spec):
        raise InvalidInput(f"{finding.MADE_WITH} is the platform's own", field="annotations")
    engine = process.engines.engine(spec.cluster)
    _check_alone(engine)
    if engine.kind != KUBERNETES:  # there a runtime is an image, and only a node can judge it
        _refuse_templates(is_object)
        _check_runtime(spec)
    if not is_object and (needs_package or spec.package):
        spec = _settle_package(caller, spec)
    within_s = process.configuration.engines.answer_within_s
    spec = registries.settle(caller, groups.settle(caller, spec, spec.group), engine)
    faults = process.asking.ask(within_s, f"the engine of {spec.cluster}", engine.check, spec)
    _refuse(faults, "paddlecloud status shows what this platform has")
    algorithms.check(caller, spec)
    limits = quotas.quota_of(caller.account_id)
    _refuse(never_fits_quota(spec, limits), "paddlecloud get quota shows your limits")
    return spec


def _refuse(faults: Sequence[Fault], hint: str) -> None:
    """What could never start is not accepted: it would wait for ever."""
    if faults:
        raise CannotFit(faults=faults, hint=hint)


def _check_alone(engine: Engine) -> None:
    is_safe, reason = may_serve_second_account(engine)
    if not is_safe and Account.objects.count() > 1:
        raise Conflict(
            f"several accounts exist and jobs cannot be kept apart: {reason}",
            hint="install bubblewrap and restart the platform",
        )


def _refuse_templates(is_object: bool) -> None:
    if is_object:
        raise InvalidInput(
            "such an object describes pods, and this platform has no cluster to make them on",
            field="kind",
            hint="submit a package instead, or start the server with --engine kubernetes",
        )


def _check_runtime(spec: JobSpec) -> None:
    runtimes = here().runtimes
    runtimes.check(spec.runtime, field="runtime")
    needs_paddle = (spec.entry.split() or PADDLE_TRAIN.split())[:2] == PADDLE_TRAIN.split()
    if needs_paddle and not runtimes.has_paddle_train(spec.runtime):
        raise InvalidInput(
            f"the runtime {spec.runtime or 'used by default'} has no `{PADDLE_TRAIN}`",
            field="entry",
            hint='say how your program is started, e.g. -entry "python train.py"',
        )


def _settle_package(caller: Principal, spec: JobSpec) -> JobSpec:
    folder = locating.text(locating.job_folder(spec.cluster, caller.name, spec.name))
    if spec.package_digest:
        if spec.package and spec.package.rstrip("/") != folder:
            raise InvalidInput(
                "a /pfs path is used in place, so it cannot come with a package_digest",
                field="job_package",
            )
        packages.check(caller.account_id, spec.package_digest)
        return replace(spec, package=folder)
    path = PfsPath.parse(spec.package or folder)
    tree = locating.tree_of(caller.account_id, caller.name, path)
    if not tree.is_directory(path.parts):
        raise InvalidInput(
            f"package not exist in cloud: {locating.text(path)}",
            field="job_package",
            hint="upload it first, or submit a local folder",
        )
    return replace(spec, package=locating.text(path))


# --- the rows --------------------------------------------------------------------------------


def name_taken(name: str, is_stopping: bool) -> Conflict:
    doing = "is still being stopped" if is_stopping else "is live"
    return Conflict(
        f"a job named {name} {doing}",
        field="name",
        hint=f"paddlecloud kill {name}, or choose another -jobname",
    )


def check_name_free(account_id: int, name: str) -> None:
    live = Job.objects.filter(account_id=account_id, name=name, live=True)
    row = live.values_list("cancel_asked", "deleted").first()
    if row is not None:
        raise name_taken(name, bool(row[0]) or row[1])


def _commit(request: Request, spec: JobSpec) -> Job:
    caller = request.caller
    check_name_free(caller.account_id, spec.name)
    now = clock.now()
    account = Account.objects.get(pk=caller.account_id)
    job = new_jobs.row_of(spec, new_job_id(os.urandom(JOB_ID_BYTES)), account, now)
    try:
        new_jobs.insert(job, spec)
    except IntegrityError:  # another server process was quicker
        raise name_taken(spec.name, False) from None
    new_jobs.note(job, "Submitted", f"submitted by {caller.name}", now)
    if unused := registries.unused_note(spec, here().engines.engine(spec.cluster)):
        new_jobs.note(job, "RegistryUnused", unused, now)
    idempotency.keep(request, 201, job_id=job.id)
    announce(caller.account_id, job.id, job.revision)
    return job
