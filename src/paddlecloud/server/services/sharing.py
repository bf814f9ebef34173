"""Who may look at whose jobs beyond their own: groups, and marks.

A job submitted with `--permission group` is shared with its group: members and viewers may look at
it, its owners may also end it. A mark (`job favorite`) is anybody's own note on a job they may look
at.
"""

from __future__ import annotations

from typing import Any

import msgspec

from paddlecloud.core.errors import InvalidInput
from paddlecloud.core.jobspec import JobSpec
from paddlecloud.forms import config_ini
from paddlecloud.server.authentication import Principal
from paddlecloud.server.database import fetch, writing
from paddlecloud.server.groups.models import Membership
from paddlecloud.server.job_service.models import Favorite, Sharing
from paddlecloud.server.jobs.models import Job
from paddlecloud.server.services import groups
from paddlecloud.wire.job_words import PERMISSION

KINDS = ("normal", "favorite", "group")


def group_names(account_id: int) -> tuple[str, ...]:
    """The groups whose shared jobs an account may look at."""
    return tuple(groups.names_of(account_id))


def share(job: Job, spec: JobSpec) -> None:
    """Note whom a new job is shared with. Call inside `writing()`."""
    if spec.annotations.get(PERMISSION) != "group":
        return
    Sharing.objects.create(job=job, group=spec.group)


def is_shared(caller: Principal, job_id: str) -> bool:
    """Whether the caller may look at this job of somebody else."""
    names = group_names(caller.account_id)
    rows = Sharing.objects.filter(job_id=job_id, group__in=names, job__deleted=False)
    return bool(names) and not caller.job_id and rows.exists()


def may_end(caller: Principal, job_id: str) -> bool:
    """Whether the caller owns the group that this job of somebody else is shared with."""
    names = groups.names_of(caller.account_id, Membership.OWNER)
    return not caller.job_id and Sharing.objects.filter(job_id=job_id, group__in=names).exists()


def shown(spec: bytes | str) -> dict[str, Any]:
    """A specification to look at: without the values of secrets."""
    whole: dict[str, Any] = msgspec.json.decode(spec if isinstance(spec, str) else bytes(spec))
    return {**whole, "env": config_ini.shown(whole.get("env", {}))}


def mark(account_id: int, job_id: str, *, is_marked: bool) -> None:
    with writing():
        if is_marked:
            rows = [Favorite(account_id=account_id, job_id=job_id)]
            Favorite.objects.bulk_create(rows, ignore_conflicts=True)
        else:
            Favorite.objects.filter(account_id=account_id, job_id=job_id).delete()


def among(caller: Principal, kind: str) -> tuple[str, list[Any]]:
    """The condition on `jobs_job j` of a list of that kind."""
    if kind not in KINDS:
        raise InvalidInput(
            f"is no kind of list: {kind[:40]}", field="type", hint=f"allowed are {', '.join(KINDS)}"
        )
    own: tuple[str, list[Any]] = ("j.account_id = %s", [caller.account_id])
    if kind == "normal":
        return own
    names = group_names(caller.account_id)
    marks = ", ".join(["%s"] * len(names)) or "NULL"
    shared = f'j.id IN (SELECT job_id FROM job_service_sharing WHERE "group" IN ({marks}))'
    if kind == "group":
        return shared, list(names)
    marked = "j.id IN (SELECT job_id FROM job_service_favorite WHERE account_id = %s)"
    return f"{marked} AND ({own[0]} OR {shared})", [caller.account_id, *own[1], *names]


def owners(job_ids: list[str]) -> dict[str, str]:
    """The names of their accounts."""
    if not job_ids:
        return {}
    marks = ", ".join(["%s"] * len(job_ids))
    rows = fetch(
        "SELECT j.id, a.username FROM jobs_job j JOIN accounts_account a ON a.id = j.account_id"
        f" WHERE j.id IN ({marks})",
        job_ids,
    )
    return dict(rows)
