"""`status.allocation` of a job: what the planner granted it, and what it took back. Pure.

Written by the operator alone, in the same patch as the rest of the status; read by it after a
restart, and by the server's engine. The spec is the user's and is never written.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paddlecloud.engines.kubernetes.inventory import seconds

KEY = "allocation"


@dataclass(frozen=True, slots=True)
class Allocation:
    workers: int = 0  # 0: it waits
    revision: int = 0  # grows with each change of `workers`
    reason: str = ""  # why it waits, or why it has not all that it wants
    cause: str = ""  # the same for programs: `NoRoom`, `OverQuota`; empty when it does not wait
    preemptions: int = 0
    preempted_at: float | None = None  # when it was last stopped for another


def read(status: Mapping[str, Any] | None) -> Allocation | None:
    """None where the planner has never said anything, or something unreadable."""
    found = (status or {}).get(KEY)
    if not isinstance(found, Mapping) or not isinstance(found.get("workers"), int):
        return None

    def whole(name: str) -> int:
        value = found.get(name)
        return value if isinstance(value, int) else 0

    return Allocation(
        max(0, whole("workers")),
        whole("revision"),
        str(found.get("reason") or ""),
        str(found.get("cause") or ""),
        whole("preemptions"),
        seconds(found.get("preemptedAt")),
    )


def write(allocation: Allocation) -> dict[str, Any]:
    body: dict[str, Any] = {"workers": allocation.workers, "revision": allocation.revision}
    if allocation.reason:
        body["reason"] = allocation.reason
    if allocation.cause:
        body["cause"] = allocation.cause
    if allocation.preemptions:
        body["preemptions"] = allocation.preemptions
    if allocation.preempted_at is not None:
        moment = datetime.datetime.fromtimestamp(allocation.preempted_at, datetime.UTC)
        body["preemptedAt"] = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return body
