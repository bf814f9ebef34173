"""What the pods of a job say, in the words of `core.observed`.

Attempts whose pods are gone are taken from the job's status (`remembering`). Pure; `planning`
calls it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from paddlecloud.controller import remembering
from paddlecloud.controller.identity import Identity, Json, slot_of
from paddlecloud.controller.remembering import RUN, seconds
from paddlecloud.core import restart
from paddlecloud.core.jobspec import JobSpec
from paddlecloud.core.observed import ReplicaKey, ReplicaObserved, ReplicaState
from paddlecloud.forms.custom_resources import Intranet
from paddlecloud.kube.causes import cause_of
from paddlecloud.kube.pods import container_status, exit_of
from paddlecloud.kube.words import PROBED_ANNOTATION, STOPPED_ANNOTATION

# A server that listens elsewhere than where it was told to is believed after this long.
PROBE_PATIENCE_S = 60.0


def observe(
    who: Identity,
    spec: JobSpec,
    intranet: Intranet,
    pods: Iterable[Json],
    status: Json,
    now: float,
) -> tuple[ReplicaObserved, ...]:
    """Every attempt there is or, by the job's own record, was."""
    past = remembering.replaced(who, status)
    recorded = {seen.key for seen in past}
    done = {seen.key: seen for seen in remembering.succeeded(who, status)}
    present = []
    for pod in pods:
        slot = slot_of(pod)
        if slot is None:
            continue
        seen = _pod(pod, ReplicaKey(who.job_id, RUN, *slot), spec, intranet, now)
        if seen.key in done:  # it had ended well before somebody deleted it
            seen = replace(seen, stopping=False)
        if seen.key not in recorded:
            present.append(seen)
    there = {seen.key for seen in present}
    stopped = remembering.preempted(who, status)
    past += [seen for seen in (*done.values(), *stopped) if seen.key not in there]
    return (*past, *present, *_missing_of_this_round(who, spec, past, present))


def _missing_of_this_round(
    who: Identity,
    spec: JobSpec,
    past: Sequence[ReplicaObserved],
    present: Sequence[ReplicaObserved],
) -> list[ReplicaObserved]:
    """Replicas of a restarted gang whose pods are not made yet, as if they were pending.

    Without this a look in the middle of a restart would see only the old failure of the missing
    ones, and restart the gang again.
    """

    def is_gang(seen: ReplicaObserved) -> bool:
        return not restart.restarts_alone(spec, seen.key.role)

    current = max(
        (
            seen.key.attempt
            for seen in present
            if is_gang(seen) and seen.alive and not seen.stopping
        ),
        default=0,
    )
    if current < 2 or current <= max((s.key.attempt for s in past if is_gang(s)), default=0):
        return []
    there = {(seen.key.role, seen.key.index) for seen in present}
    return [
        ReplicaObserved(
            ReplicaKey(who.job_id, RUN, role.role, index, current), ReplicaState.PENDING
        )
        for role in spec.roles
        if not restart.restarts_alone(spec, role.role)
        for index in range(role.replicas)
        if (role.role, index) not in there
    ]


# --- one pod -----------------------------------------------------------------------------------


def _pod(
    pod: Json, key: ReplicaKey, spec: JobSpec, intranet: Intranet, now: float
) -> ReplicaObserved:
    status, metadata = pod.get("status") or {}, pod["metadata"]
    container = container_status(pod)
    end = exit_of(pod)
    state = ReplicaState.ENDED if end is not None else _state(pod, container, now)
    # How it ends now says nothing, and nodes' clocks do not tell whether it ended before.
    is_leaving = bool(metadata.get("deletionTimestamp"))
    was_stopped = STOPPED_ANNOTATION in (metadata.get("annotations") or {})
    # Deleted by somebody else: a worker that may restart alone is simply made again.
    if is_leaving and end is None and restart.restarts_alone(spec, key.role):
        state, is_leaving = ReplicaState.PENDING, False
    ran = container.get("state") or {}
    times = ran.get("terminated") or ran.get("running") or {}
    return ReplicaObserved(
        key=key,
        state=state,
        started_at=seconds(times.get("startedAt")) if state != ReplicaState.PENDING else None,
        ended_at=None if end is None else _ended_at(pod, times),
        exit=end,
        stopping=is_leaving or was_stopped,
        address=str(status.get("hostIP" if intranet == Intranet.HOST else "podIP") or ""),
        node=str((pod.get("spec") or {}).get("nodeName") or ""),
    )


def _state(pod: Json, container: Json, now: float) -> ReplicaState:
    status = pod.get("status") or {}
    if status.get("phase") != "Running":
        return ReplicaState.PENDING
    is_ready = all(one.get("ready") for one in status.get("containerStatuses") or ())
    left_s = probe_left_s(pod, now)
    if is_ready or (left_s is not None and left_s <= 0):
        return ReplicaState.RUNNING
    return ReplicaState.PENDING


def probe_left_s(pod: Json, now: float) -> float | None:
    """How long a server that runs but does not listen is still waited for; None if it is not."""
    if PROBED_ANNOTATION not in (pod["metadata"].get("annotations") or {}):
        return None
    container = container_status(pod)
    began = seconds(((container.get("state") or {}).get("running") or {}).get("startedAt"))
    if began is None or container.get("ready"):
        return None
    return began + PROBE_PATIENCE_S - now


def _ended_at(pod: Json, times: Json) -> float | None:
    ended = seconds(times.get("finishedAt"))
    return ended if ended is not None else seconds(pod["metadata"].get("creationTimestamp"))


# --- why a pod is not running --------------------------------------------------------------------


def trouble(pods: Iterable[Json]) -> str:
    """What keeps a pod from running; a sentence, or nothing."""
    for pod in pods:
        cause = cause_of(pod)
        if cause is not None:
            return f"{pod['metadata']['name']} {cause.words}"
    return ""
