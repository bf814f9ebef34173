"""Copies of what planning looks at besides jobs: nodes, others' pods, groups and namespaces.

An edge: it runs informers, and keeps of every object only the plain value the planner needs
(`engines.kubernetes`). `changed` is called when such a value changes, not at every heartbeat of a
node. `admission` asks it for everything at once. It never writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from paddlecloud.engines.kubernetes.inventory import NodeSeen, PodSeen, read_node, read_pod
from paddlecloud.engines.kubernetes.shares import GroupSeen, Shares, read_group, read_namespace
from paddlecloud.forms import trainingjob
from paddlecloud.kube.client import Client, collection
from paddlecloud.kube.definitions import RESOURCE_GROUPS
from paddlecloud.kube.informers import Informer, Key, Watched, key_of
from paddlecloud.kube.words import JOB_LABEL

Json = dict[str, Any]
T = TypeVar("T")

GROUPS_VERSION = f"{trainingjob.GROUP}/{trainingjob.VERSION}"
_POD_METADATA = (
    "name namespace uid resourceVersion labels ownerReferences deletionTimestamp creationTimestamp"
).split()
_NOT_OVER = "status.phase!=Succeeded,status.phase!=Failed"


def trim_node(body: Json) -> Json:
    """Without the list of images, which is most of it."""
    status, metadata = body.get("status") or {}, body["metadata"]
    kept = {key: status[key] for key in ("allocatable", "capacity", "conditions") if key in status}
    about = {key: value for key, value in metadata.items() if key != "managedFields"}
    return {"metadata": about, "spec": body.get("spec") or {}, "status": kept}


def trim_pod(body: Json) -> Json:
    metadata, spec = body["metadata"], body.get("spec") or {}

    def containers(key: str) -> list[Json]:
        return [
            {name: one[name] for name in ("resources", "restartPolicy") if name in one}
            for one in spec.get(key) or ()
        ]

    return {
        "metadata": {key: metadata[key] for key in _POD_METADATA if key in metadata},
        "spec": {
            "nodeName": spec.get("nodeName"),
            "containers": containers("containers"),
            "initContainers": containers("initContainers"),
            "overhead": spec.get("overhead"),
        },
        "status": {"phase": (body.get("status") or {}).get("phase")},
    }


class Readings(Generic[T]):
    """What the objects of an informer mean, read once per version."""

    def __init__(self, read: Callable[[Json], T]) -> None:
        self._read = read
        self._known: dict[Key, tuple[str, T]] = {}

    def of(self, body: Json) -> T:
        key, version = key_of(body), str(body["metadata"].get("resourceVersion"))
        known = self._known.get(key)
        if known is None or known[0] != version:
            known = self._known[key] = (version, self._read(body))
        return known[1]

    def all(self, bodies: Iterable[Json]) -> list[T]:
        found = [(key_of(body), self.of(body)) for body in bodies]
        if len(self._known) > 2 * len(found) + 100:
            present = {key for key, _ in found}
            self._known = {key: row for key, row in list(self._known.items()) if key in present}
        return [reading for _, reading in found]

    def is_other(self, body: Json, is_there: bool) -> bool:
        """Whether this object means something else than when it was last asked for."""
        known = self._known.get(key_of(body))
        if not is_there:
            return self._known.pop(key_of(body), None) is not None
        return known is None or self.of(body) != known[1]


class Inventory:
    def __init__(self, client: Client, namespace: str) -> None:
        self._namespace = namespace
        self.changed: Callable[[], None] = lambda: None
        self.group_changed: Callable[[], None] = lambda: None
        self._shares: Shares | None = None  # until something changes
        self._nodes, self._pods = Readings(read_node), Readings(read_pod)
        self._groups, self._namespaces = Readings(read_group), Readings(read_namespace)

        def informer(
            what: Watched, readings: Readings[Any], trim: Callable[[Json], Json] | None = None
        ) -> Informer:
            made: Informer

            def heard(body: Json) -> None:
                self._shares = None
                if readings is self._groups:
                    self.group_changed()
                if readings.is_other(body, made.find(key_of(body)) is not None):
                    self.changed()

            made = Informer(client, what, heard, trim)
            return made

        only = f"metadata.name={namespace}" if namespace else ""
        # Of one namespace the operator has the job's pods anyway; those elsewhere are strangers'.
        others = "" if namespace else f"!{JOB_LABEL}"
        groups = Watched(collection(GROUPS_VERSION, RESOURCE_GROUPS))
        self._informers = {
            "nodes": informer(Watched(collection("v1", "nodes")), self._nodes, trim_node),
            "pods": informer(
                Watched(collection("v1", "pods"), others, _NOT_OVER), self._pods, trim_pod
            ),
            "groups": informer(groups, self._groups),
            "namespaces": informer(
                Watched(collection("v1", "namespaces"), field_selector=only), self._namespaces
            ),
        }

    @property
    def informers(self) -> list[Informer]:
        return list(self._informers.values())

    def nodes(self) -> list[NodeSeen]:
        return self._nodes.all(self._informers["nodes"].all())

    def strangers(self) -> list[PodSeen]:
        """Pods that hold something and were not made for the jobs that are planned for."""
        found = self._pods.all(self._informers["pods"].all())
        return [pod for pod in found if not (pod.is_ours and pod.namespace == self._namespace)]

    def groups(self) -> list[tuple[Json, GroupSeen]]:
        """The objects, and what they mean."""
        return [(body, self._groups.of(body)) for body in self._informers["groups"].all()]

    def shares(self) -> Shares:
        found = self._shares
        if found is None:
            groups = self._groups.all(self._informers["groups"].all())
            namespaces = self._namespaces.all(self._informers["namespaces"].all())
            found = self._shares = Shares(
                {seen.group.name: seen for seen in groups},
                {seen.name: seen for seen in namespaces},
            )
        return found
