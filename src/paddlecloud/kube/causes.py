"""Why a pod does not run, in words: what the kubelet or the scheduler says, for who submitted it.

`cause_of(pod)` gives nothing for a pod that is merely on its way, such as one that waits for its
peers' addresses. Pure; asked by the engine for Kubernetes and by the operator.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from paddlecloud.kube.words import JOB_LABEL

Json = dict[str, Any]

_MAX_WORDS = 600


@dataclass(frozen=True, slots=True)
class Cause:
    reason: str  # the word of the kubelet or the scheduler: ImagePullBackOff, Unschedulable
    words: str


_IMAGE = frozenset(
    "ImagePullBackOff ErrImagePull InvalidImageName ErrImageNeverPull ImageInspectError "
    "RegistryUnavailable SignatureValidationFailed".split()
)
_ON_ITS_WAY = frozenset({"ContainerCreating", "PodInitializing", ""})
# `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {x: }.`
_INSUFFICIENT = re.compile(r"(\d+) Insufficient ([\w/-]+(?:\.[\w/-]+)*)")
_TOO_MANY = re.compile(r"(\d+) Too many pods")
# What the scheduler tried besides, in vain.
_AFTERTHOUGHT = re.compile(r"[ ,.]+(?:preemption: |no new claims to deallocate)")


def cause_of(pod: Json, lost_nodes: Container[str] = ()) -> Cause | None:
    status = pod.get("status") or {}
    node = str((pod.get("spec") or {}).get("nodeName") or "")
    if status.get("phase") in ("Succeeded", "Failed"):
        return None
    if node and node in lost_nodes:
        return Cause("NodeLost", f"its node {node} does not answer")
    if status.get("phase") not in (None, "", "Pending"):
        return _in_trouble_while_running(status)
    return _unschedulable(status) or _waiting(pod, status)


def _unschedulable(status: Json) -> Cause | None:
    for one in status.get("conditions") or ():
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            reason = str(one.get("reason") or "Unschedulable")
            if reason == "SchedulingGated":
                return None
            return Cause(reason, _placing_words(str(one.get("message") or "")))
    return None


def _placing_words(message: str) -> str:
    """`cannot be placed: not enough nvidia.com/gpu on 2 nodes (0/3 nodes are available: …)`"""
    short = _AFTERTHOUGHT.split(message, maxsplit=1)[0].strip(" ,.")
    missing = [
        f"{resource} on {_nodes(int(count))}" for count, resource in _INSUFFICIENT.findall(short)
    ]
    missing += [f"room for pods on {_nodes(int(count))}" for count in _TOO_MANY.findall(short)]
    if not missing:
        return _cut(f"cannot be placed: {short}" if short else "cannot be placed yet")
    return _cut(f"cannot be placed: not enough {', '.join(missing)} ({short})")


def _nodes(count: int) -> str:
    return f"{count} node{'s' if count != 1 else ''}"


def _waiting(pod: Json, status: Json) -> Cause | None:
    rows = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    for row in rows:
        waiting = (row.get("state") or {}).get("waiting") or {}
        found = _wait_words(pod, row, waiting)
        if found is not None:
            return found
    return None


def _wait_words(pod: Json, row: Json, waiting: Mapping[str, Any]) -> Cause | None:
    reason = str(waiting.get("reason") or "")
    message = str(waiting.get("message") or "").strip()
    tail = f": {message}" if message else ""
    if reason in _ON_ITS_WAY:
        return None
    if reason in _IMAGE:
        image = row.get("image") or "of its container"
        return Cause(reason, _cut(f"the image {image} cannot be pulled{tail}"))
    if reason == "CreateContainerConfigError":
        return None if _is_for_peers(pod, message) else Cause(reason, _cut(f"cannot start{tail}"))
    if reason == "CrashLoopBackOff":
        last = (row.get("lastState") or {}).get("terminated") or {}
        words = f"its program ends again and again, last with exit {last.get('exitCode')}"
        return Cause(reason, words if last else f"its program ends again and again{tail}")
    return Cause(reason, _cut(f"cannot start{tail}" if tail else f"cannot start: {reason}"))


def _is_for_peers(pod: Json, message: str) -> bool:
    """Containers wait for a ConfigMap of the job's until the peers are known: that is normal.

    So do they for a moment for the secret that is made right after the job.
    """
    job = (pod["metadata"].get("labels") or {}).get(JOB_LABEL, "")
    ours = [f'configmap "{job}', f'configmaps "{job}', f'secret "{job}.env"']
    return bool(job) and any(name in message for name in ours)


def _in_trouble_while_running(status: Json) -> Cause | None:
    for row in status.get("containerStatuses") or ():
        waiting = (row.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") == "CrashLoopBackOff":
            return _wait_words({"metadata": {}}, row, waiting)
    return None


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_WORDS else f"{text[: _MAX_WORDS - 1]}…"
