"""What a cluster has, and what pods hold of it: nodes and pods of the API as plain values. Pure.

A node counts if it is ready and not cordoned. Which of them may take a pod is worked out from the
pod's template as kube-scheduler would: `nodeSelector`, the required node affinity, and taints that
are not tolerated. What else keeps pods off nodes (affinity between pods, topology spread, volumes
of one zone, the number of pods of a node) is left to kube-scheduler.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paddlecloud.core.jobspec import Role
from paddlecloud.core.resources import BadQuantity, Resources, parse_cpu, parse_gpus, parse_memory
from paddlecloud.core.topology import role_from_word
from paddlecloud.forms.custom_resources import GPU_NAMES
from paddlecloud.kube.words import INDEX_LABEL, JOB_LABEL, ROLE_LABEL

Json = Mapping[str, Any]

_OVER = ("Succeeded", "Failed")
_KEEPS_OFF = ("NoSchedule", "NoExecute")


def seconds(text: object) -> float | None:
    """Unix seconds of a time as the API server writes it; None for anything else."""
    try:
        return datetime.datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def amounts(asked: object) -> Resources:
    """A `requests` or `allocatable`; what cannot be read counts as nothing."""
    if not isinstance(asked, Mapping):
        return Resources()

    def amount(name: str, read: Any) -> int:
        try:
            return int(read(str(asked[name]))) if name in asked else 0
        except BadQuantity:
            return 0

    return Resources(
        amount("cpu", parse_cpu),
        amount("memory", parse_memory),
        sum(amount(name, parse_gpus) for name in GPU_NAMES),
    )


def larger(a: Resources, b: Resources) -> Resources:
    return Resources(
        max(a.cpu_milli, b.cpu_milli), max(a.memory_bytes, b.memory_bytes), max(a.gpu, b.gpu)
    )


# --- nodes -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeSeen:
    name: str
    total: Resources
    labels: Mapping[str, str]
    taints: tuple[tuple[str, str, str], ...] = ()  # key, value, effect, of those that keep off
    is_usable: bool = True


def read_node(body: Json) -> NodeSeen:
    metadata, spec, status = body["metadata"], body.get("spec") or {}, body.get("status") or {}
    ready = any(
        one.get("type") == "Ready" and one.get("status") == "True"
        for one in status.get("conditions") or ()
    )
    taints = tuple(
        (str(one.get("key", "")), str(one.get("value") or ""), str(one.get("effect")))
        for one in spec.get("taints") or ()
        if one.get("effect") in _KEEPS_OFF
    )
    return NodeSeen(
        metadata["name"],
        amounts(status.get("allocatable") or status.get("capacity")),
        {**(metadata.get("labels") or {}), "metadata.name": metadata["name"]},
        taints,
        ready and not spec.get("unschedulable"),
    )


class Eligibility:
    """Which nodes may take the pods of a template; asked for many that are alike."""

    def __init__(self, nodes: Iterable[NodeSeen]) -> None:
        self._nodes = [node for node in nodes if node.is_usable]
        self._found: dict[str, frozenset[str] | None] = {}

    def of(self, template: object) -> frozenset[str] | None:
        """Their names; None if they are all."""
        spec = template.get("spec") if isinstance(template, Mapping) else None
        spec = spec if isinstance(spec, Mapping) else {}
        wishes = [spec.get(key) for key in ("nodeSelector", "affinity", "tolerations")]
        key = json.dumps(wishes, sort_keys=True, default=str) if any(wishes) else ""
        if key not in self._found:
            names = frozenset(node.name for node in self._nodes if may_take(node, spec))
            self._found[key] = None if len(names) == len(self._nodes) else names
        return self._found[key]


def may_take(node: NodeSeen, spec: Json) -> bool:
    """Whether the pod's own words let it run there."""
    selector, tolerations = spec.get("nodeSelector"), spec.get("tolerations")
    for key, value in (selector if isinstance(selector, Mapping) else {}).items():
        if node.labels.get(key) != str(value):
            return False
    tolerated = [one for one in _listed(tolerations) if isinstance(one, Mapping)]
    if not all(any(_tolerates(one, taint) for one in tolerated) for taint in node.taints):
        return False
    terms = _required_terms(spec)
    return terms is None or any(_matches(term, node) for term in terms)


def _listed(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _tolerates(toleration: Json, taint: tuple[str, str, str]) -> bool:
    key, value, effect = taint
    if toleration.get("effect") not in (None, "", effect):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", key)
    return bool(toleration.get("key") == key and str(toleration.get("value") or "") == value)


def _required_terms(spec: Json) -> Sequence[Any] | None:
    found: object = spec
    for key in ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return _listed(found.get("nodeSelectorTerms")) if isinstance(found, Mapping) else None


def _matches(term: object, node: NodeSeen) -> bool:
    if not isinstance(term, Mapping):
        return False
    rules = [*_listed(term.get("matchExpressions")), *_listed(term.get("matchFields"))]
    return bool(rules) and all(isinstance(one, Mapping) and _holds(one, node) for one in rules)


def _holds(rule: Json, node: NodeSeen) -> bool:
    have = node.labels.get(str(rule.get("key")))
    values = [str(one) for one in _listed(rule.get("values"))]
    match rule.get("operator"):
        case "In":
            return have is not None and have in values
        case "NotIn":
            return have is None or have not in values
        case "Exists":
            return have is not None
        case "DoesNotExist":
            return have is None
        case "Gt" | "Lt" as operator:
            if have is None or len(values) != 1 or not have.isdecimal():
                return False
            limit = int(values[0]) if values[0].isdecimal() else 0
            return int(have) > limit if operator == "Gt" else int(have) < limit
    return False


# --- pods --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PodSeen:
    namespace: str
    name: str
    node: str  # empty: not placed yet
    holds: Resources
    is_ours: bool = False  # made by an operator of ours
    owner: str = ""  # the uid of the job it was made for
    slot: tuple[Role, int] | None = None
    is_over: bool = False  # it holds nothing any more
    ended_well: bool = False
    is_leaving: bool = False
    created_at: float = 0.0


def read_pod(body: Json) -> PodSeen:
    metadata, spec, status = body["metadata"], body.get("spec") or {}, body.get("status") or {}
    labels = metadata.get("labels") or {}
    role, index = role_from_word(labels.get(ROLE_LABEL, "")), labels.get(INDEX_LABEL, "")
    has_slot = role is not None and index.isdecimal()
    owners: list[Json] = metadata.get("ownerReferences") or []
    owner = next((str(one.get("uid")) for one in owners if one.get("controller")), "")
    phase = status.get("phase")
    return PodSeen(
        metadata.get("namespace", ""),
        metadata["name"],
        str(spec.get("nodeName") or ""),
        pod_needs(spec),
        JOB_LABEL in labels,
        owner,
        (role, int(index)) if has_slot and role is not None else None,
        phase in _OVER,
        phase == "Succeeded",
        bool(metadata.get("deletionTimestamp")),
        seconds(metadata.get("creationTimestamp")) or 0.0,
    )


def pod_needs(spec: Json) -> Resources:
    """What a pod holds on its node, as kube-scheduler counts it."""
    total = Resources()
    for container in _listed(spec.get("containers")):
        total += _container_needs(container)
    kept = Resources()  # by init containers that stay, as sidecars do
    most = Resources()
    for container in _listed(spec.get("initContainers")):
        need = _container_needs(container)
        if isinstance(container, Mapping) and container.get("restartPolicy") == "Always":
            kept += need
            most = larger(most, kept)
        else:
            most = larger(most, kept + need)
    return larger(total + kept, most) + amounts(spec.get("overhead"))


def _container_needs(container: object) -> Resources:
    asked = container.get("resources") if isinstance(container, Mapping) else None
    if not isinstance(asked, Mapping):
        return Resources()
    limits, requests = asked.get("limits"), asked.get("requests")
    return amounts(
        {
            **(limits if isinstance(limits, Mapping) else {}),
            **(requests if isinstance(requests, Mapping) else {}),
        }
    )
