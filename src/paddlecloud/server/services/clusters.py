"""Clusters as users see them: what each has, and what the caller's groups may use of it.

An engine is asked but never waited for long; limits and what is in use come from rows.
"""

from __future__ import annotations

from typing import Any

from paddlecloud.core.errors import PaddleCloudError
from paddlecloud.core.resources import (
    Resources,
    format_cpu,
    format_memory,
    parse_cpu,
    parse_memory,
)
from paddlecloud.engines.protocols import Engine
from paddlecloud.server.authentication import Principal
from paddlecloud.server.process import here
from paddlecloud.server.services import quotas

_PATIENCE_S = 1.0
_NAMES = ("cpu", "memory", "gpu", "replicas")


def listed(caller: Principal) -> list[dict[str, Any]]:
    process = here()
    groups = _groups(caller)
    return [
        _describe(engine, groups, is_default=engine is process.engines.default)
        for engine in process.engines
    ]


def _describe(engine: Engine, groups: list[dict[str, Any]], *, is_default: bool) -> dict[str, Any]:
    total = free = None
    notes: list[str] = []
    try:
        seen = here().asking.ask(_PATIENCE_S, f"the engine of {engine.cluster}", engine.capacity)
        total, free = seen.total, seen.free
    except PaddleCloudError as error:
        notes.append(error.message)
    return {
        "name": engine.cluster,
        "engine": engine.kind,
        "is_default": is_default,
        "total": total.to_json() if total else None,
        "free": free.to_json() if free else None,
        "notes": notes,
        "groups": [{**group, "idle": _idle(group, free)} for group in groups],
    }


def _groups(caller: Principal) -> list[dict[str, Any]]:
    """Every account is a group of its own, by its name."""
    shown = quotas.show(caller.account_id)
    limits = {name: shown["limits"][name] for name in _NAMES}
    return [{"name": caller.name, "limits": limits, "used": shown["used"]}]


def _idle(group: dict[str, Any], free: Resources | None) -> dict[str, Any]:
    limits, used = group["limits"], group["used"]
    cores, size, cards = (free.cpu_milli, free.memory_bytes, free.gpu) if free else (None,) * 3
    cpu = _least(limits["cpu"], used["cpu"], cores, parse_cpu)
    memory = _least(limits["memory"], used["memory"], size, parse_memory)
    return {
        "cpu": None if cpu is None else format_cpu(cpu),
        "memory": None if memory is None else format_memory(memory),
        "gpu": _least(limits["gpu"], used["gpu"], cards, int),
        "replicas": _least(limits["replicas"], used["replicas"], None, int),
    }


def _least(limit: Any, used: Any, free: int | None, read: Any) -> int | None:
    """What is left of the limit and of the cluster, whichever is less; None if neither is known."""
    left = [] if limit is None else [read(limit) - read(used)]
    left += [] if free is None else [free]
    return max(0, min(left)) if left else None
