"""Pods that are held until their logs are stored, and for how long.

Where a job asks for it, its pods carry a finalizer that an archiver takes away when it has the
log. If nobody does, the operator lets the pod go a while after its end or its deletion, so that
neither a job nor a namespace ever waits longer for a missing archiver. Pure; `operator` calls it,
for pods whose job is gone too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from paddlecloud.controller.identity import Json
from paddlecloud.controller.remembering import seconds
from paddlecloud.kube.words import LOG_FINALIZER

WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Held:
    """What to do about the pods of one job that are held."""

    lost: tuple[Json, ...] = ()  # to let go; nobody came for their logs
    empty: tuple[Json, ...] = ()  # to let go; they never had one
    wake_after_s: float | None = None  # when the next one is due


def due(pods: Iterable[Json], wait_s: float, now: float) -> Held:
    lost, empty, later = [], [], []
    for pod in pods:
        if not is_held(pod):
            continue
        if not (pod.get("spec") or {}).get("nodeName"):
            if pod["metadata"].get("deletionTimestamp"):
                empty.append(pod)
            continue
        over_at = _over_at(pod)
        if over_at is None:
            continue
        if over_at + wait_s <= now:
            lost.append(pod)
        else:
            later.append(over_at + wait_s - now)
    return Held(tuple(lost), tuple(empty), min(later, default=None))


def is_held(pod: Json) -> bool:
    return LOG_FINALIZER in (pod["metadata"].get("finalizers") or ())


def is_to_be_read(pod: Json) -> bool:
    """Ended, and its log is not stored yet. It must not be deleted: although the finalizer keeps
    the object, its node would throw the log away."""
    return is_held(pod) and (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _over_at(pod: Json) -> float | None:
    """When it ended, or is gone at the latest; None while it runs."""
    status, metadata = pod.get("status") or {}, pod["metadata"]
    if status.get("phase") in ("Succeeded", "Failed"):
        ends = [
            seconds(((one.get("state") or {}).get("terminated") or {}).get("finishedAt"))
            for one in status.get("containerStatuses") or ()
        ]
        known = [end for end in ends if end is not None]
        created = seconds(metadata.get("creationTimestamp"))
        return max(known) if known else created
    return seconds(metadata.get("deletionTimestamp"))


def without(pod: Json) -> list[str]:
    """The finalizers that stay."""
    return [one for one in pod["metadata"].get("finalizers") or () if one != LOG_FINALIZER]
