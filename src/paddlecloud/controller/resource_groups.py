"""What the operator says about a `ResourceGroup`: whether it could be read. Pure.

What cannot be read of a group is left out and the rest holds; the condition `Valid` says which part
that is. Written by `operator` when it is not what the object says already.
"""

from __future__ import annotations

from paddlecloud.controller.identity import Json
from paddlecloud.controller.statuses import condition_row
from paddlecloud.engines.kubernetes.shares import GroupSeen


def status(body: Json, seen: GroupSeen, now: float) -> Json:
    old = body.get("status") or {}
    problem = "; ".join(map(str, seen.odd))
    reason = "InvalidSpec" if problem else "Understood"
    return {
        "conditions": [
            {
                **condition_row("Valid", not problem, reason, problem, old=old, now=now),
                "observedGeneration": int(body["metadata"].get("generation") or 0),
            }
        ]
    }
