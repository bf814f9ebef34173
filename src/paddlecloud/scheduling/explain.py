"""Placeholder imported by the protocols until the planner's author fills it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Holder:
    job: str
    account: str
    amount: str  # "4", "10Gi"


@dataclass(frozen=True, slots=True)
class Blocker:
    resource: str  # cpu, memory, gpu, quota cpu, quota replicas, ...
    needed: str
    free: str
    holders: tuple[Holder, ...] = ()


@dataclass(frozen=True, slots=True)
class Remedy:
    change: str  # "--parallelism 2"
    effect: str  # "starts now"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What `paddlecloud explain` prints about a waiting job; all words already chosen."""

    position: int  # 1-based place in the queue
    queue_length: int
    needs: str
    reason: str  # the one-sentence reason, the same as in the plan
    blockers: tuple[Blocker, ...] = ()
    ahead: tuple[str, ...] = ()
    start_earliest_s: float | None = None
    start_latest_s: float | None = None
    start_basis: str = ""  # "wide-deep reports 11m left"
    remedies: tuple[Remedy, ...] = ()
