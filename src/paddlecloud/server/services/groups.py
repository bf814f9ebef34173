"""Groups: who is in which, whose quota a job counts against, and what a group holds.

Membership decides what a caller sees: a group one is not in is answered as one that does not
exist. Rules about guarantee, limit and weight are `scheduling.groups`; engines get the rows by
`all_on`. Changes are in `group_orders`. What is in use is counted from rows of jobs, so it is
answered even when the engine is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from paddlecloud.core import jobspec
from paddlecloud.core.errors import CannotFit, Conflict, InvalidInput, NotFound, Unavailable
from paddlecloud.core.jobspec import JobSpec
from paddlecloud.core.phases import ACTIVE, Phase
from paddlecloud.core.resources import format_cpu, format_memory
from paddlecloud.scheduling.plan import never_fits_limit
from paddlecloud.scheduling.quotas import LIMITS
from paddlecloud.scheduling.snapshot import Group, Quota
from paddlecloud.server.authentication import Principal
from paddlecloud.server.database import fetch, writing
from paddlecloud.server.exchange import rfc3339
from paddlecloud.server.groups import models
from paddlecloud.server.groups.models import Membership
from paddlecloud.server.jobs.models import Job
from paddlecloud.server.process import here

UNITS = ("cpu_milli", "memory_bytes", "gpu", "replicas")  # of `LIMITS`
_HOLDS = (*ACTIVE, Phase.PREEMPTED)
Amounts = tuple[int | None, ...]


def amounts_of(row: models.Group, kind: str) -> Amounts:
    """Its guarantee or its limit, in the order of `LIMITS`."""
    return tuple(getattr(row, f"{kind}_{unit}") for unit in UNITS)


def clusters_of(row: models.Group) -> list[str]:
    return row.clusters.split()


def _as_planned(row: models.Group) -> Group:
    guarantee, limit = amounts_of(row, "guarantee"), amounts_of(row, "limit")
    return Group(row.name, Quota(*guarantee), Quota(*limit), row.weight)


def all_on(cluster: str) -> dict[str, Group]:
    """What the planner of that cluster knows."""
    rows = models.Group.objects.all()
    return {
        row.name: _as_planned(row) for row in rows if cluster in (clusters_of(row) or [cluster])
    }


# --- who is in which ----------------------------------------------------------------------------


def own_of(account_id: int, name: str) -> models.Group:
    """The account's own group, made if it is not there."""
    found = models.Group.objects.filter(own_account_id=account_id).first()
    if found is not None:
        return found
    from paddlecloud.server.database import after_commit
    from paddlecloud.server.services.telling import tell_engines

    with writing():
        group = models.Group.objects.create(name=name, own_account_id=account_id)
        Membership.objects.create(group=group, account_id=account_id, role=Membership.OWNER)
        after_commit(tell_engines)
    return group


def is_taken(name: str) -> bool:
    return models.Group.objects.filter(name=name).exists()


def names_of(account_id: int, *roles: str) -> list[str]:
    """The groups an account is in, its own first; with roles only where it has one of them."""
    chosen = roles or Membership.ROLES
    rows = fetch(
        "SELECT g.name, g.own_account_id FROM groups_membership m"
        " JOIN groups_group g ON g.id = m.group_id"
        f" WHERE m.account_id = %s AND m.role IN ({', '.join(['%s'] * len(chosen))})"
        " ORDER BY g.name",
        (account_id, *chosen),
    )
    return [row[0] for row in sorted(rows, key=lambda row: row[1] != account_id)]


def role_in(account_id: int, group_id: int) -> str:
    """Empty for a stranger."""
    rows = Membership.objects.filter(account_id=account_id, group_id=group_id)
    return rows.values_list("role", flat=True).first() or ""


def find(caller: Principal, name: str) -> tuple[models.Group, str]:
    """(the group, the caller's role in it). Administrators see all, others theirs."""
    row = models.Group.objects.filter(name=name).first()
    role = "" if row is None else role_in(caller.account_id, row.pk)
    if row is None or not (role or caller.is_admin):
        raise NotFound(f"no group {name[:80]}", field="group", hint="paddlecloud group list")
    return row, role


# --- a job's group ------------------------------------------------------------------------------


def settle(caller: Principal, spec: JobSpec, asked: str) -> JobSpec:
    """The spec with its group: the asked one, else the caller's own; refused where it may not be
    or never could start."""
    row = own_of(caller.account_id, caller.name) if not asked else _usable(caller, asked)
    attached = clusters_of(row)
    if attached and spec.cluster not in attached:
        raise InvalidInput(
            f"group {row.name} is not attached to {spec.cluster}",
            field="group",
            hint=f"it is attached to: {', '.join(attached)}",
        )
    spec = replace(spec, group=row.name)
    faults = never_fits_limit(spec, _as_planned(row))
    if faults:
        raise CannotFit(faults=faults, hint=f"paddlecloud group info {row.name} shows its limit")
    return spec


def _usable(caller: Principal, asked: str) -> models.Group:
    usable = names_of(caller.account_id, Membership.OWNER, Membership.MEMBER)
    row = models.Group.objects.filter(name=asked).first() if asked in usable else None
    if row is None:
        only_looks = asked in names_of(caller.account_id, Membership.VIEWER)
        words = f"you only look at group {asked}" if only_looks else f"no group {asked[:80]}"
        hint = f"groups you may use: {', '.join(usable)}"
        raise InvalidInput(words, field="group", hint=hint)
    return row


def check_rerun(job: Job) -> None:
    """Who is no longer in a job's group does not run it again there."""
    name = name_of(job.group_id)
    usable = names_of(job.account_id, Membership.OWNER, Membership.MEMBER)
    if name not in usable:
        why = f"its owner is no longer in group {name}" if name else "its group is gone"
        raise Conflict(
            f"{job.name} cannot run again: {why}",
            hint="submit it again with --group, one of: " + ", ".join(usable),
        )


_names: dict[int, str] = {}  # by id; a group's name never changes, nor is its id used again


def name_of(group_id: int | None) -> str:
    """Empty for a group that is gone."""
    if group_id is None:
        return ""
    name = _names.get(group_id)
    if name is None:
        rows = fetch("SELECT name FROM groups_group WHERE id = %s", (group_id,))
        name = _names[group_id] = rows[0][0] if rows else ""
    return name


def id_of(name: str) -> int | None:
    return models.Group.objects.filter(name=name).values_list("pk", flat=True).first()


# --- what it holds ------------------------------------------------------------------------------


def used_by(group_ids: Iterable[int]) -> dict[int, tuple[int, ...]]:
    """What the jobs of each group hold, in the order of `LIMITS`."""
    used: dict[int, tuple[int, ...]] = {group_id: (0, 0, 0, 0) for group_id in group_ids}
    if not used:
        return used
    groups, phases = ", ".join(["%s"] * len(used)), ", ".join(["%s"] * len(_HOLDS))
    rows = fetch(
        "SELECT group_id, granted, spec FROM jobs_job WHERE live"
        f" AND group_id IN ({groups}) AND phase IN ({phases})",
        (*used, *(phase.value for phase in _HOLDS)),
    )
    for group_id, granted, text in rows:
        spec = jobspec.from_json(msgspec.json.decode(text))
        size = granted or spec.trainers.replicas
        need = spec.resources_at(size)
        held = (need.cpu_milli, need.memory_bytes, need.gpu, spec.replicas_at(size))
        used[group_id] = tuple(map(int.__add__, used[group_id], held))
    return used


def amounts_json(amounts: Amounts) -> dict[str, Any]:
    cpu, memory, gpu, replicas = amounts
    return {
        "cpu": None if cpu is None else format_cpu(cpu),
        "memory": None if memory is None else format_memory(memory),
        "gpu": gpu,
        "replicas": replicas,
    }


def describe(row: models.Group, role: str, used: tuple[int, ...]) -> dict[str, Any]:
    guarantee = amounts_of(row, "guarantee")
    borrowed = tuple(max(0, u - (g or 0)) for u, g in zip(used, guarantee, strict=True))
    return {
        "name": row.name,
        "own": row.own_account_id is not None,
        "role": role,
        "weight": row.weight,
        "clusters": clusters_of(row) or list(here().engines.clusters),
        "guarantee": amounts_json(guarantee),
        "limit": amounts_json(amounts_of(row, "limit")),
        "used": amounts_json(used),
        "beyond": amounts_json(borrowed),
        "created_at": rfc3339(row.created_at),
    }


def list_for(caller: Principal) -> list[dict[str, Any]]:
    """The caller's groups; an administrator's list has all of them."""
    roles = dict(
        Membership.objects.filter(account_id=caller.account_id).values_list("group_id", "role")
    )
    rows = models.Group.objects.order_by("name")
    if not caller.is_admin:
        rows = rows.filter(pk__in=roles)
    chosen = list(rows)
    used = used_by(row.pk for row in chosen)
    return [describe(row, roles.get(row.pk, ""), used[row.pk]) for row in chosen]


def info(caller: Principal, name: str) -> dict[str, Any]:
    row, role = find(caller, name)
    used = used_by([row.pk])[row.pk]
    members = Membership.objects.filter(group=row).select_related("account")
    counts = fetch(
        "SELECT phase, count(*) FROM jobs_job WHERE group_id = %s AND live GROUP BY phase",
        (row.pk,),
    )
    running = sum(count for phase, count in counts if phase in ACTIVE)
    free, notes = _free_on(row)
    return {
        **describe(row, role, used),
        "idleQuota": amounts_json(_idle(amounts_of(row, "limit"), used, free)),
        "members": [
            {"account": each.account.username, "role": each.role}
            for each in members.order_by("account__username")
        ],
        "jobs": {"running": running, "waiting": sum(count for _, count in counts) - running},
        "notes": notes,
    }


def _idle(limit: Amounts, used: tuple[int, ...], free: Amounts) -> Amounts:
    """What the group could still start on: the rest of its limit, as far as it is free."""
    idle: list[int | None] = []
    for most, held, there in zip(limit, used, free, strict=True):
        left = None if most is None else max(0, most - held)
        known = [amount for amount in (left, there) if amount is not None]
        idle.append(min(known) if known else None)
    return tuple(idle)


def _free_on(row: models.Group) -> tuple[Amounts, list[str]]:
    """(what is free on its clusters, what there is to say about guarantees there)."""
    process = here()
    within_s = process.configuration.engines.answer_within_s
    free: list[int] = [0, 0, 0]
    notes = []
    for engine in process.engines:
        if engine.cluster not in (clusters_of(row) or [engine.cluster]):
            continue
        try:
            there = process.asking.ask(within_s, f"the engine of {engine.cluster}", engine.capacity)
        except Unavailable as error:
            return (None,) * len(LIMITS), [error.message]
        now = (there.free.cpu_milli, there.free.memory_bytes, there.free.gpu)
        free = [have + max(0, more) for have, more in zip(free, now, strict=True)]
        total = (there.total.cpu_milli, there.total.memory_bytes, there.total.gpu)
        notes += _promised_too_much(engine.cluster, all_on(engine.cluster), total)
    return (*free, None), notes


def _promised_too_much(
    cluster: str, groups: Mapping[str, Group], total: tuple[int, ...]
) -> list[str]:
    notes = []
    for index, resource in enumerate(LIMITS[: len(total)]):
        unit = UNITS[index]
        promised = sum(getattr(group.guarantee, unit) or 0 for group in groups.values())
        if promised > total[index]:
            have = tuple(value if i == index else 0 for i, value in enumerate((*total, 0)))
            want = tuple(promised if i == index else 0 for i in range(len(LIMITS)))
            notes.append(
                f"{amounts_json(want)[resource]} {resource} are guaranteed in all,"
                f" {cluster} has {amounts_json(have)[resource]}"
            )
    return notes
