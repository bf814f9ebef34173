"""Whose share of the cluster a job uses: `ResourceGroup` objects and the quota of a namespace.

A job belongs to the group that its `schedulingPolicy.group` names, if that group lists the job's
namespace; a namespace listed in exactly one group uses that one unasked; every other namespace is a
group of its own. Pure: objects in, the planner's values and what is odd about them out. Read by
the operator and by the server's engine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paddlecloud.core.resources import BadQuantity, parse_cpu, parse_gpus, parse_memory
from paddlecloud.forms.custom_resources import Warned
from paddlecloud.kube.words import ACCOUNT_ANNOTATION, ACCOUNT_ID_ANNOTATION, QUOTA_ANNOTATION
from paddlecloud.scheduling.snapshot import Group, Quota

Json = Mapping[str, Any]

MAX_REPLICAS, MAX_WEIGHT = 10**6, 10**6
UNLIMITED = Quota()


# --- amounts -----------------------------------------------------------------------------------


def _replicas(text: str) -> int:
    if not text.isdecimal() or int(text) > MAX_REPLICAS:
        raise BadQuantity(f"must be a whole number from 0 to {MAX_REPLICAS}")
    return int(text)


_READERS: dict[str, Callable[[str], int]] = {
    "cpu": parse_cpu,
    "memory": parse_memory,
    "gpu": parse_gpus,
    "replicas": _replicas,
}


def read_amounts(where: str, body: object, odd: list[Warned]) -> Quota:
    """An object of cpu, memory, gpu and replicas; what cannot be read is left out and told."""
    if body is None:
        return Quota()
    if not isinstance(body, Mapping):
        odd.append(Warned(where, f"must be an object of {', '.join(_READERS)}"))
        return Quota()
    found: dict[str, int | None] = dict.fromkeys(_READERS)
    for name, value in body.items():
        if name not in _READERS:
            odd.append(Warned(f"{where}.{name}", f"is none of {', '.join(_READERS)}; ignored"))
        elif value is not None:
            try:
                found[name] = _READERS[name](str(value))
            except BadQuantity as error:
                odd.append(Warned(f"{where}.{name}", f"{error}; ignored"))
    return Quota(found["cpu"], found["memory"], found["gpu"], found["replicas"])


# --- groups ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupSeen:
    group: Group
    namespaces: frozenset[str] = frozenset()
    odd: tuple[Warned, ...] = ()


def read_group(body: Json) -> GroupSeen:
    spec, odd = body.get("spec") or {}, list[Warned]()
    guarantee = read_amounts("spec.guarantee", spec.get("guarantee"), odd)
    limit = read_amounts("spec.limit", spec.get("limit"), odd)
    for name, least, most in (
        ("cpu", guarantee.cpu_milli, limit.cpu_milli),
        ("memory", guarantee.memory_bytes, limit.memory_bytes),
        ("gpu", guarantee.gpu, limit.gpu),
        ("replicas", guarantee.replicas, limit.replicas),
    ):
        if least is not None and most is not None and least > most:
            odd.append(Warned(f"spec.guarantee.{name}", f"is more than spec.limit.{name}"))
    weight = spec.get("weight", 1)
    if not isinstance(weight, int) or not 1 <= weight <= MAX_WEIGHT:
        odd.append(Warned("spec.weight", f"must be a whole number from 1 to {MAX_WEIGHT}"))
        weight = 1
    names = spec.get("namespaces")
    if not isinstance(names, list):
        names = []
    if not names:
        odd.append(Warned("spec.namespaces", "is empty: nobody may use the group"))
    found = Group(body["metadata"]["name"], guarantee, limit, weight)
    return GroupSeen(found, frozenset(map(str, names)), tuple(odd))


# --- namespaces --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NamespaceSeen:
    name: str
    account_id: int
    account: str
    quota: Quota = UNLIMITED
    odd: tuple[Warned, ...] = ()


def read_namespace(body: Json) -> NamespaceSeen:
    metadata, odd = body["metadata"], list[Warned]()
    notes = metadata.get("annotations") or {}
    where, text, quota = f"namespace's {QUOTA_ANNOTATION}", notes.get(QUOTA_ANNOTATION), UNLIMITED
    if text:
        try:
            quota = read_amounts(where, json.loads(text), odd)
        except ValueError:
            odd.append(Warned(where, 'is not JSON such as {"cpu": "8", "gpu": 2}; ignored'))
    number = str(notes.get(ACCOUNT_ID_ANNOTATION) or "")
    name = metadata["name"]
    return NamespaceSeen(
        name,
        int(number) if number.isdecimal() and len(number) < 18 else number_of(name),
        str(notes.get(ACCOUNT_ANNOTATION) or name),
        quota,
        tuple(odd),
    )


def number_of(namespace: str) -> int:
    """A number that is always the same and that no account of the platform has."""
    digest = hashlib.sha256(namespace.encode()).digest()
    return (1 << 62) | int.from_bytes(digest[:7], "big")


# --- who is who --------------------------------------------------------------------------------


def own_group(namespace: str) -> str:
    """Of a namespace without one; no object can have such a name."""
    return f"namespace/{namespace}"


@dataclass(frozen=True)
class Shares:
    """All groups and namespaces of a cluster, with the answers about one job."""

    groups: Mapping[str, GroupSeen] = field(default_factory=dict)
    namespaces: Mapping[str, NamespaceSeen] = field(default_factory=dict)

    def namespace(self, name: str) -> NamespaceSeen:
        return self.namespaces.get(name) or NamespaceSeen(name, number_of(name), name)

    def group_of(self, namespace: str, asked: str) -> tuple[str, str]:
        """The group's name, and what is odd about the wish; or nothing."""
        listed = [name for name, seen in self.groups.items() if namespace in seen.namespaces]
        if not asked:
            return (listed[0] if len(listed) == 1 else own_group(namespace)), ""
        if asked in listed:
            return asked, ""
        why = "does not list this namespace" if asked in self.groups else "does not exist"
        return own_group(namespace), f"{asked} {why}; the namespace's own share is used"

    def planned_groups(self, namespaces: Iterable[str]) -> dict[str, Group]:
        """For the planner: every group there is, and those that namespaces are by themselves."""
        found = {name: seen.group for name, seen in self.groups.items()}
        for namespace in namespaces:
            name = own_group(namespace)
            found.setdefault(name, Group(name))
        return found

    def quotas(self) -> dict[int, Quota]:
        return {
            seen.account_id: seen.quota
            for seen in self.namespaces.values()
            if seen.quota != UNLIMITED
        }
