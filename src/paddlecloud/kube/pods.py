"""What a pod of ours says about itself: whose it is, and how it ended. Pure.

Reads the JSON of a pod as the API server has it; asked by the engine for Kubernetes.
"""

from __future__ import annotations

import datetime
from typing import Any

from paddlecloud.core.contract import termination_message
from paddlecloud.core.jobspec import Role
from paddlecloud.core.observed import EndCause, Exit, signal_of
from paddlecloud.core.topology import role_from_word
from paddlecloud.forms.start_command import CANNOT_START
from paddlecloud.kube.words import ATTEMPT_LABEL, INDEX_LABEL, ROLE_LABEL

Json = dict[str, Any]

# What the kubelet says of a container whose program could not be executed.
_NEVER_RAN = frozenset({"StartError", "ContainerCannotRun", "ContainerCannotStart"})


def seconds(text: str | None) -> float | None:
    """Unix seconds of a time as the API server writes it."""
    if not text:
        return None
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def slot_of(pod: Json) -> tuple[Role, int, int] | None:
    """Role, index and attempt of a pod of ours, by its labels; None if they are not ours."""
    labels = pod["metadata"].get("labels") or {}
    role = role_from_word(labels.get(ROLE_LABEL, ""))
    index, attempt = labels.get(INDEX_LABEL, ""), labels.get(ATTEMPT_LABEL, "")
    if role is None or not index.isdecimal() or not attempt.isdecimal():
        return None
    return role, int(index), int(attempt)


def owner_uid(pod: Json) -> str:
    """The uid of the job it was made for."""
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner.get("uid") or "")
    return ""


def ordered_to_go_at(pod: Json) -> float | None:
    """When its deletion was asked for, at the earliest; None if it was not.

    The API server writes when a pod will be gone at the latest, and what it was given until then.
    When its kubelet is done with a pod that a finalizer holds, both are written anew and say
    nothing: the order may then be as old as the pod.
    """
    metadata = pod["metadata"]
    gone_at = seconds(metadata.get("deletionTimestamp"))
    if gone_at is None:
        return None
    given_s = float(metadata.get("deletionGracePeriodSeconds") or 0)
    if given_s or not metadata.get("finalizers"):
        return gone_at - given_s
    return seconds(metadata.get("creationTimestamp")) or 0.0


def training_container(pod: Json) -> str:
    """The name of the container that trains: the first."""
    return str(_first_container(pod).get("name") or "")


def _first_container(pod: Json) -> Json:
    containers = (pod.get("spec") or {}).get("containers")
    return containers[0] if containers else {}


def container_status(pod: Json) -> Json:
    """Of the first container, or of one that failed when the first did not."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    by_name: dict[str, Json] = {str(one.get("name")): one for one in statuses}
    first = by_name.get(training_container(pod), {})

    def code(one: Json) -> int:
        return int(((one.get("state") or {}).get("terminated") or {}).get("exitCode") or 0)

    if code(first) == 0:
        return next((one for one in by_name.values() if code(one)), first)
    return first


def exit_of(pod: Json) -> Exit | None:
    """How the pod ended, in words a user understands; None while it has not."""
    status = pod.get("status") or {}
    phase = status.get("phase")
    if phase == "Succeeded":
        return Exit(EndCause.EXITED)
    if phase != "Failed":
        return None
    ended = (container_status(pod).get("state") or {}).get("terminated")
    why = _why_the_pod_failed(pod, status)
    if not ended:
        return Exit(EndCause.START_FAILED, 127, 0, why or "the pod failed before its program ran")
    code, signal = int(ended.get("exitCode") or 0), int(ended.get("signal") or 0)
    own_words = str(ended.get("message") or "").strip()
    if ended.get("reason") in _NEVER_RAN or own_words.startswith(CANNOT_START):
        return Exit(EndCause.START_FAILED, code or 127, 0, own_words.removeprefix(CANNOT_START))
    if ended.get("reason") == "OOMKilled":
        return Exit(EndCause.OUT_OF_MEMORY, code, signal or 9, _out_of_memory(pod))
    if signal := signal or signal_of(code):
        return Exit(EndCause.SIGNALED, code, signal, why or own_words)
    # A pod can fail although its program ended well: evicted, past its deadline.
    return Exit(EndCause.EXITED, code or 1, 0, why or own_words or termination_message(code))


def _why_the_pod_failed(pod: Json, status: Json) -> str:
    reason, message = str(status.get("reason") or ""), str(status.get("message") or "").strip()
    node = (pod.get("spec") or {}).get("nodeName") or "its node"
    tail = f": {message}" if message else ""
    if reason == "Evicted":
        return f"evicted from {node}{tail}"
    if reason in ("NodeLost", "NodeShutdown", "Terminated", "Shutdown"):
        return f"{node} went away{tail}"
    if reason == "Preempting" or _is_disrupted(status, "PreemptionByScheduler"):
        return f"removed from {node} for a pod of higher priority{tail}"
    return f"{reason}{tail}" if reason else message


def _is_disrupted(status: Json, reason: str) -> bool:
    return any(
        one.get("type") == "DisruptionTarget" and one.get("reason") == reason
        for one in status.get("conditions") or ()
    )


def _out_of_memory(pod: Json) -> str:
    limit = ((_first_container(pod).get("resources") or {}).get("limits") or {}).get("memory")
    of = f" of {limit}" if limit else ""
    return f"killed for exceeding its memory limit{of}; ask for more memory"
