"""Clusters as users see them: what each has, and what the caller's groups may use of it.

An engine is asked but never waited for long; limits and what is in use come from rows. What is left
for a group is within its limit, within the caller's own limits, and free on the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paddlecloud.core.errors import PaddleCloudError
from paddlecloud.core.resources import parse_cpu, parse_memory
from paddlecloud.engines.protocols import Engine
from paddlecloud.server.authentication import Principal
from paddlecloud.server.groups import models
from paddlecloud.server.process import here
from paddlecloud.server.services import groups, quotas
from paddlecloud.server.services.groups import Amounts

_PATIENCE_S = 1.0
_UNKNOWN: Amounts = (None, None, None, None)


@dataclass(frozen=True, slots=True)
class _Share:
    """What one group may use, in the order of cpu, memory, gpu, replicas."""

    name: str
    clusters: list[str]  # empty: all
    limit: Amounts
    used: tuple[int, ...]
    left: Amounts


def listed(caller: Principal) -> list[dict[str, Any]]:
    process = here()
    shares = _shares(caller)
    return [
        _describe(engine, shares, is_default=engine is process.engines.default)
        for engine in process.engines
    ]


def _describe(engine: Engine, shares: list[_Share], *, is_default: bool) -> dict[str, Any]:
    total = free = None
    now = _UNKNOWN
    notes: list[str] = []
    try:
        seen = here().asking.ask(_PATIENCE_S, f"the engine of {engine.cluster}", engine.capacity)
        total, free = seen.total.to_json(), seen.free.to_json()
        now = (seen.free.cpu_milli, seen.free.memory_bytes, seen.free.gpu, None)
    except PaddleCloudError as error:
        notes.append(error.message)
    return {
        "name": engine.cluster,
        "engine": engine.kind,
        "is_default": is_default,
        "total": total,
        "free": free,
        "notes": notes,
        "groups": [
            {
                "name": share.name,
                "limits": groups.amounts_json(share.limit),
                "used": groups.amounts_json(share.used),
                "idle": groups.amounts_json(_least(share.left, now)),
            }
            for share in shares
            if engine.cluster in (share.clusters or [engine.cluster])
        ],
    }


def _shares(caller: Principal) -> list[_Share]:
    """The caller's own group first."""
    names = groups.names_of(caller.account_id)
    rows = sorted(
        models.Group.objects.filter(name__in=names), key=lambda row: names.index(row.name)
    )
    used = groups.used_by(row.pk for row in rows)
    own_limit, own_left = _own(caller.account_id)
    shares = []
    for row in rows:
        limit = groups.amounts_of(row, "limit")
        left = _least(_rest(limit, used[row.pk]), own_left)
        if row.own_account_id == caller.account_id:
            limit = _least(limit, own_limit)
        shares.append(_Share(row.name, groups.clusters_of(row), limit, used[row.pk], left))
    return shares


def _own(account_id: int) -> tuple[Amounts, Amounts]:
    """(the account's own limits, what is left of them)."""
    quota, used = quotas.quota_of(account_id), quotas.show(account_id)["used"]
    limit = (quota.cpu_milli, quota.memory_bytes, quota.gpu, quota.replicas)
    held = (parse_cpu(used["cpu"]), parse_memory(used["memory"]), used["gpu"], used["replicas"])
    return limit, _rest(limit, held)


def _rest(limit: Amounts, used: tuple[int, ...]) -> Amounts:
    return tuple(
        None if most is None else max(0, most - held)
        for most, held in zip(limit, used, strict=True)
    )


def _least(one: Amounts, other: Amounts) -> Amounts:
    """Element by element; None is no bound."""
    pairs = zip(one, other, strict=True)
    return tuple(min((each for each in pair if each is not None), default=None) for pair in pairs)
