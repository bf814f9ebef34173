"""Limits per account: kept in rows, told to the engines, shown with what is in use.

What is in use is counted from rows of jobs that hold resources, so it is answered even when the
engine is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paddlecloud.core.errors import Fault, InvalidInput
from paddlecloud.core.phases import ACTIVE
from paddlecloud.core.resources import (
    BadQuantity,
    format_cpu,
    format_memory,
    parse_cpu,
    parse_gpus,
    parse_memory,
)
from paddlecloud.scheduling.snapshot import Quota
from paddlecloud.server.accounts import models
from paddlecloud.server.database import after_commit, fetch, writing
from paddlecloud.server.process import here
from paddlecloud.server.services.telling import tell_engines

_READERS: dict[str, tuple[str, Callable[[str], int]]] = {
    "cpu": ("cpu_milli", parse_cpu),
    "memory": ("memory_bytes", parse_memory),
    "gpu": ("gpu", parse_gpus),
    "replicas": ("replicas", parse_gpus),
    "storage": ("storage_bytes", parse_memory),
    "files": ("storage_files", parse_memory),
}
_STORED = ("storage", "files")


def all_quotas() -> dict[int, Quota]:
    rows = models.Quota.objects.values_list(
        "account_id", "cpu_milli", "memory_bytes", "gpu", "replicas"
    )
    return {row[0]: Quota(*row[1:]) for row in rows}


def quota_of(account_id: int) -> Quota:
    row = models.Quota.objects.filter(account_id=account_id).first()
    if row is None:
        return Quota()
    return Quota(row.cpu_milli, row.memory_bytes, row.gpu, row.replicas)


@dataclass(frozen=True, slots=True)
class StorageLimits:
    """What an account may store; None = no limit."""

    size_bytes: int | None
    files: int | None


def storage_of(account_id: int) -> StorageLimits:
    """The account's own, else the platform's default."""
    rows = fetch(
        "SELECT storage_bytes, storage_files FROM accounts_quota WHERE account_id = %s",
        (account_id,),
    )
    own = rows[0] if rows else (None, None)
    chosen = here().configuration.files
    return StorageLimits(
        _settled(own[0], chosen.storage_bytes), _settled(own[1], chosen.storage_files)
    )


def _settled(own: int | None, default: int | None) -> int | None:
    if own is None:
        return default
    return None if own == models.Quota.NO_LIMIT else own


def limits_json(account_id: int) -> dict[str, Any]:
    quota, stored = quota_of(account_id), storage_of(account_id)
    return {
        "cpu": None if quota.cpu_milli is None else format_cpu(quota.cpu_milli),
        "memory": None if quota.memory_bytes is None else format_memory(quota.memory_bytes),
        "gpu": quota.gpu,
        "replicas": quota.replicas,
        "storage": None if stored.size_bytes is None else format_memory(stored.size_bytes),
        "files": stored.files,
    }


def _used(account_id: int) -> dict[str, Any]:
    import msgspec

    marks = ", ".join(["%s"] * len(ACTIVE))
    rows = fetch(
        "SELECT cpu_milli, memory_bytes, gpu, counts FROM jobs_job WHERE account_id = %s AND live"
        f" AND phase IN ({marks})",
        (account_id, *(phase.value for phase in ACTIVE)),
    )
    counts = [msgspec.json.decode(row[3]) for row in rows]
    return {
        "cpu": format_cpu(sum(row[0] for row in rows)),
        "memory": format_memory(sum(row[1] for row in rows)),
        "gpu": sum(row[2] for row in rows),
        "replicas": sum(role["wanted"] for job in counts for role in job.values()),
    }


def show(account_id: int) -> dict[str, Any]:
    return {"limits": limits_json(account_id), "used": _used(account_id)}


def parse_limits(body: Mapping[str, Any]) -> dict[str, int | None]:
    """Columns of the row; every fault at once."""
    faults = []
    values: dict[str, int | None] = {
        column: None for name, (column, _) in _READERS.items() if name not in _STORED
    }
    for name, written in body.items():
        if name not in _READERS:
            faults.append(Fault(name, f"unknown key; allowed are {', '.join(_READERS)}"))
            continue
        column, read = _READERS[name]
        if written is None:
            if name in _STORED:
                values[column] = models.Quota.NO_LIMIT
            continue
        if isinstance(written, bool) or not isinstance(written, str | int | float):
            faults.append(Fault(name, "must be a quantity such as 4 or 10Gi, or null"))
            continue
        try:
            values[column] = read(str(written))
        except BadQuantity as error:
            faults.append(Fault(name, str(error), str(written)[:60]))
    if faults:
        raise InvalidInput(faults=faults)
    return values


def set_limits(account_id: int, body: Mapping[str, Any]) -> None:
    values = parse_limits(body)
    with writing():
        models.Quota.objects.update_or_create(account_id=account_id, defaults=values)
        after_commit(tell_engines)
