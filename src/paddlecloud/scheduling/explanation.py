"""The answer to "why is it waiting?" as values; `explain` fills them, `to_json` sends them.

Amounts are written as people write them; names of jobs and accounts are fields of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Holder:
    job: str
    account: str  # empty where names are private
    amount: str  # "4", "10Gi"


@dataclass(frozen=True, slots=True)
class Blocker:
    resource: str  # cpu, memory, gpu, nodes, quota cpu, quota replicas, ...
    needed: str
    free: str
    holders: tuple[Holder, ...] = ()  # who holds most of it first


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
    ahead: tuple[str, ...] = ()  # the first few of the `position` - 1 jobs ahead
    start_earliest_s: float | None = None  # from now, if nobody ahead takes the room
    start_latest_s: float | None = None  # from now, if everybody ahead goes first
    start_basis: str = ""  # "wide-deep reports 11m left"
    remedies: tuple[Remedy, ...] = ()
    group: str = ""  # whose quota it counts against
    group_stands: str = ""  # "6 cpu held, 4 guaranteed, at most 8; weight 2"
    rule: str = ""  # which rule makes it wait


def to_json(explanation: Explanation) -> dict[str, Any]:
    """The keys of `wire.shapes.ExplainShape` that the planner knows."""
    return {
        "position": explanation.position,
        "queue_length": explanation.queue_length,
        "needs": explanation.needs,
        "reason": explanation.reason,
        "blockers": [
            {
                "resource": blocker.resource,
                "needed": blocker.needed,
                "free": blocker.free,
                "holders": [
                    {"job": holder.job, "account": holder.account, "amount": holder.amount}
                    for holder in blocker.holders
                ],
            }
            for blocker in explanation.blockers
        ],
        "ahead": list(explanation.ahead),
        "start_earliest_s": explanation.start_earliest_s,
        "start_latest_s": explanation.start_latest_s,
        "start_basis": explanation.start_basis,
        "remedies": [
            {"change": remedy.change, "effect": remedy.effect} for remedy in explanation.remedies
        ],
        "group": explanation.group,
        "group_stands": explanation.group_stands,
        "rule": explanation.rule,
    }


def from_json(body: Mapping[str, Any]) -> Explanation:
    """What `to_json` wrote, other keys ignored. Written by us: a wrong shape is an exception."""
    return Explanation(
        position=body["position"],
        queue_length=body["queue_length"],
        needs=body["needs"],
        reason=body["reason"],
        blockers=tuple(
            Blocker(
                resource=row["resource"],
                needed=row["needed"],
                free=row["free"],
                holders=tuple(
                    Holder(holder["job"], holder["account"], holder["amount"])
                    for holder in row["holders"]
                ),
            )
            for row in body["blockers"]
        ),
        ahead=tuple(body["ahead"]),
        start_earliest_s=body["start_earliest_s"],
        start_latest_s=body["start_latest_s"],
        start_basis=body["start_basis"],
        remedies=tuple(Remedy(row["change"], row["effect"]) for row in body["remedies"]),
        group=body["group"],
        group_stands=body["group_stands"],
        rule=body["rule"],
    )
