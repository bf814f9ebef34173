"""Pods whose kubelet should look again: it met a ConfigMap of ours before we had made it.

A kubelet that misses a ConfigMap tries again after ten to fifteen seconds, or at once when the pod
changes. So a pod that says it misses one that is there now is changed a little. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from paddlecloud.kube.words import NUDGED_ANNOTATION

Json = dict[str, Any]

# A kubelet hears of a ConfigMap by a watch of its own, so the first nudge may come too early.
AGAIN_S = 1.0


def misses(pod: Json, names: Iterable[str]) -> bool:
    """Whether a container of the pod waits for a ConfigMap of one of these names."""
    rows = (pod.get("status") or {}).get("containerStatuses") or ()
    messages = [
        str(waiting.get("message") or "")
        for row in rows
        if (waiting := (row.get("state") or {}).get("waiting") or {}).get("reason")
        == "CreateContainerConfigError"
    ]
    return any(f'"{name}"' in message for name in names for message in messages)


def left_s(pod: Json, now: float) -> float:
    """How long to wait before it is nudged, or nudged again; not at all if that is over."""
    text = str((pod["metadata"].get("annotations") or {}).get(NUDGED_ANNOTATION) or "")
    try:
        return max(0.0, float(text) + AGAIN_S - now)
    except ValueError:
        return 0.0


def waiting(pods: Iterable[Json], there: Sequence[str]) -> list[Json]:
    """The pods that miss one of the ConfigMaps that are there."""
    return [pod for pod in pods if misses(pod, there)]
