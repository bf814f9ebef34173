"""The JSON of `/api/v2/clusters`: what each cluster has and what the caller's groups may use of it.

Types only, as in `shapes`.
"""

from __future__ import annotations

from typing import TypedDict

from paddlecloud.wire.shapes import AmountShape, UsedShape


class GroupLimitsShape(TypedDict):
    """null = no limit."""

    cpu: str | None
    memory: str | None
    gpu: int | None
    replicas: int | None


class GroupIdleShape(TypedDict):
    """What may still be asked for now: within the limits, and free. null = not known, or for
    replicas no limit."""

    cpu: str | None
    memory: str | None
    gpu: int | None
    replicas: int | None


class ClusterGroupShape(TypedDict):
    name: str
    limits: GroupLimitsShape
    used: UsedShape
    idle: GroupIdleShape


class ClusterShape(TypedDict):
    """`total` and `free` are null when the engine does not answer in time."""

    name: str
    engine: str
    is_default: bool
    total: AmountShape | None
    free: AmountShape | None
    notes: list[str]
    groups: list[ClusterGroupShape]


class ClusterListShape(TypedDict):
    items: list[ClusterShape]
