"""Amounts as people read them: `2.5 cpu`, `23.4Gi memory`, `1 gpu`, `4 trainers + 2 pservers`.

Shorter than the exact spellings of `core.resources` and rounded, so a need is rounded up and what
is free is rounded down: a text never says that enough is free when it is not.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from paddlecloud.core.jobspec import JobSpec, Role
from paddlecloud.core.resources import format_cpu
from paddlecloud.scheduling.placement import Vector

_SUFFIXES = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")
_TENTH = Decimal("0.1")


def amount(resource: str, value: int, *, up: bool = False) -> str:
    """Without the name of the resource: 8, 2.5, 500m, 10Gi."""
    if value <= 0:
        return "0"
    if resource == "memory":
        return _memory(value, up=up)
    if resource == "cpu" and value % 1000:
        return f"{value / 1000:g}" if value > 1000 and value % 100 == 0 else format_cpu(value)
    return str(value // 1000 if resource == "cpu" else value)


def quantity(resource: str, value: int, *, up: bool = False) -> str:
    """With it: 8 cpu, 10Gi memory, 1 gpu, 6 replicas."""
    return f"{amount(resource, value, up=up)} {resource}"


def _memory(size_bytes: int, *, up: bool) -> str:
    for power, suffix in zip(range(6, 0, -1), _SUFFIXES, strict=True):
        unit = 1024**power
        if size_bytes >= unit:
            rounding = ROUND_CEILING if up else ROUND_FLOOR
            value = (Decimal(size_bytes) / unit).quantize(_TENTH, rounding)
            return f"{value.normalize():f}{suffix}"
    return str(size_bytes)


def needs(total: Vector, names: tuple[str, ...]) -> str:
    """`8 cpu, 6Gi memory`; what is not asked for is left out."""
    parts = [
        quantity(name, value, up=True)
        for name, value in zip(names, total, strict=True)
        if value > 0
    ]
    return ", ".join(parts) or "nothing"


def replicas(spec: JobSpec, trainers: int) -> str:
    """`4 trainers + 2 pservers`."""
    counts = [(Role.TRAINER, trainers)]
    counts += [(role.role, role.replicas) for role in spec.roles if role.role != Role.TRAINER]
    return " + ".join(
        f"{count} {role.value}{'s' if count != 1 else ''}" for role, count in counts if count
    )
