"""What the engine sees of a cluster: copies kept by informers, filed by the job they belong to.

`ClusterView` calls `changed(place)` whenever something of a job came, changed or went, and answers
questions about what is there now. It never writes and never waits for the API server.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from paddlecloud.engines.kubernetes.journal import Place
from paddlecloud.kube.client import Client, collection
from paddlecloud.kube.informers import Informer, Watched, key_of
from paddlecloud.kube.kinds import KINDS, PADDLE_JOB, Kind, kind_named
from paddlecloud.kube.pods import owner_uid
from paddlecloud.kube.words import JOB_LABEL, KIND_LABEL

Json = dict[str, Any]

GROUPS_VERSION, GROUPS_PLURAL = "paddlepaddle.org/v1", "resourcegroups"
COMPONENT = "paddlecloud"  # whose events are believed: the operator's


def place_of(body: Json, kind: Kind) -> Place:
    return kind.name, body["metadata"].get("namespace", ""), body["metadata"]["name"]


def _job_of_pod(pod: Json) -> Place | None:
    labels = pod["metadata"].get("labels") or {}
    job = labels.get(JOB_LABEL)
    kind = kind_named(labels.get(KIND_LABEL, "")) or PADDLE_JOB
    return (kind.name, pod["metadata"].get("namespace", ""), job) if job else None


def _job_of_event(event: Json) -> Place | None:
    about = event.get("involvedObject") or {}
    if (event.get("source") or {}).get("component") != COMPONENT:
        return None
    return str(about.get("kind")), str(about.get("namespace")), str(about.get("name"))


class _Filed:
    """An informer whose objects belong to jobs, and which of them belong to which."""

    def __init__(
        self,
        client: Client,
        what: Watched,
        job_of: Callable[[Json], Place | None],
        changed: Callable[[Place, Json], None],
    ) -> None:
        self._job_of, self._changed = job_of, changed
        self._lock = threading.Lock()
        self._by_job: dict[Place, dict[str, Json]] = defaultdict(dict)
        self.informer = Informer(client, what, self._heard)

    def _heard(self, body: Json) -> None:
        place = self._job_of(body)
        if place is None:
            return
        name = body["metadata"]["name"]
        with self._lock:
            # What is in the informer's copy counts, not the event.
            now = self.informer.find(key_of(body))
            if now is not None:
                self._by_job[place][name] = now
            else:
                family = self._by_job.get(place, {})
                family.pop(name, None)
                if not family:
                    self._by_job.pop(place, None)
        self._changed(place, body)

    def of(self, place: Place) -> list[Json]:
        with self._lock:
            return list(self._by_job.get(place, {}).values())


class ClusterView:
    def __init__(
        self,
        client: Client,
        changed: Callable[[Place], None],
        pod_changed: Callable[[Json], None],
        pod_gone: Callable[[Json], None],
    ) -> None:
        self._pod_changed, self._pod_gone = pod_changed, pod_gone
        self._changed = changed
        self._jobs = {
            kind.name: Informer(
                client,
                Watched(collection(kind.api_version, kind.plural)),
                lambda body, kind=kind: changed(place_of(body, kind)),  # type: ignore[misc]
            )
            for kind in KINDS
        }
        self._pods = _Filed(
            client, Watched(collection("v1", "pods"), JOB_LABEL), _job_of_pod, self._on_pod
        )
        self._events = [
            _Filed(
                client,
                Watched(
                    collection("v1", "events"), field_selector=f"involvedObject.kind={kind.name}"
                ),
                _job_of_event,
                lambda place, _: changed(place),
            )
            for kind in KINDS
        ]
        self._nodes = Informer(client, Watched(collection("v1", "nodes")), self._on_node)
        self._lost: frozenset[str] = frozenset()
        self._namespaces = Informer(client, Watched(collection("v1", "namespaces")), self._on_home)
        self._strangers = Informer(
            client, Watched(collection("v1", "pods"), f"!{JOB_LABEL}"), lambda _: None
        )
        self._groups = Informer(
            client, Watched(collection(GROUPS_VERSION, GROUPS_PLURAL)), lambda _: None
        )

    def _on_pod(self, place: Place, body: Json) -> None:
        is_there = self._pods.informer.find(key_of(body)) is not None
        (self._pod_changed if is_there else self._pod_gone)(body)
        self._changed(place)

    def _on_node(self, body: Json) -> None:
        """A node fell silent, or is heard of again: so it is to be told of its pods."""
        name = body["metadata"]["name"]
        is_lost = self._nodes.find(("", name)) is not None and _is_silent(body)
        if is_lost == (name in self._lost):
            return
        self._lost = self._lost | {name} if is_lost else self._lost - {name}
        for pod in self.all_pods():
            place = _job_of_pod(pod)
            if place is not None and (pod.get("spec") or {}).get("nodeName") == name:
                self._changed(place)

    def _on_home(self, body: Json) -> None:
        """A namespace became an account's: what was found in it may now be told."""
        name = body["metadata"]["name"]
        for kind in KINDS:
            for job in self._jobs[kind.name].all():
                if job["metadata"].get("namespace") == name:
                    self._changed(place_of(job, kind))

    @property
    def _all(self) -> list[Informer]:
        return [
            *self._jobs.values(),
            self._pods.informer,
            self._namespaces,
            self._nodes,
            self._strangers,
            self._groups,
            *(one.informer for one in self._events),
        ]

    def start(self) -> None:
        for informer in self._all:
            informer.start()

    def stop(self) -> None:
        for informer in self._all:
            informer.stop()
        for informer in self._all:
            informer.join(5.0)

    @property
    def is_whole(self) -> bool:
        """Whether jobs and pods were listed: before that, what is missing may just be unknown."""
        needed = [*self._jobs.values(), self._pods.informer, self._namespaces]
        return all(informer.listed.is_set() for informer in needed)

    def has_nodes(self, patience_s: float = 0.0) -> bool:
        """Whether what the cluster has is known; right after the start that takes a moment."""
        if not self._nodes.listed.wait(patience_s):
            return False
        return self._strangers.listed.wait(patience_s)

    # --- what is there -----------------------------------------------------------------------

    def job(self, place: Place) -> Json | None:
        informer = self._jobs.get(place[0])
        body = informer.find(place[1:]) if informer else None
        # Objects in a list do not say their kind.
        return {"kind": place[0], **body} if body is not None else None

    def jobs(self) -> Iterable[tuple[Place, Json]]:
        for kind in KINDS:
            for body in self._jobs[kind.name].all():
                yield place_of(body, kind), {"kind": kind.name, **body}

    def learn(self, place: Place, body: Json) -> None:
        """The answer to a write of ours, so that the next look sees it."""
        self._jobs[place[0]].learn(body)

    def pods(self, place: Place, uid: str) -> list[Json]:
        """Those made for the object of this uid, not for an earlier one of the same name."""
        return [pod for pod in self._pods.of(place) if owner_uid(pod) == uid]

    def all_pods(self) -> list[Json]:
        return self._pods.informer.all()

    def pod(self, namespace: str, name: str) -> Json | None:
        return self._pods.informer.find((namespace, name))

    def strangers(self) -> list[Json]:
        return self._strangers.all()

    def events(self, place: Place, uid: str) -> list[Json]:
        """In the order they were first told."""
        found = [
            event
            for filed in self._events
            for event in filed.of(place)
            if (event.get("involvedObject") or {}).get("uid") == uid
        ]
        return sorted(found, key=lambda one: int(one["metadata"].get("resourceVersion") or 0))

    def nodes(self) -> list[Json]:
        return self._nodes.all()

    def groups(self) -> list[Json]:
        return self._groups.all()

    def namespaces(self) -> list[Json]:
        return self._namespaces.all()

    def namespace(self, name: str) -> Json | None:
        return self._namespaces.find(("", name))

    def lost_nodes(self) -> frozenset[str]:
        """Nodes of which the control plane has not heard for a while."""
        return self._lost


def _is_silent(node: Json) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "Unknown" for one in conditions)
