"""Carries out a plan: the only place of the operator that writes to the API server.

Every write may be repeated and may meet a world that has moved on: what is to be created may be
there, what is to be deleted may be gone. Both are the wished-for state, unless the thing there is
somebody else's. Called by `operator` with one plan at a time per job.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

from paddlecloud import clock
from paddlecloud.controller import holding, podgroups
from paddlecloud.controller.identity import Identity, Json, is_owned_by
from paddlecloud.controller.plans import PODS, Action, Create, Delete, End, Nudge, Replace
from paddlecloud.controller.remembering import written_time
from paddlecloud.core.actions import Event, Severity
from paddlecloud.kube.client import Client, collection, member
from paddlecloud.kube.refusals import Refused
from paddlecloud.kube.words import NUDGED_ANNOTATION, REPLICA_ANNOTATION, STOPPED_ANNOTATION

Learn = Callable[[str, Json], None]  # plural, the object as the server now has it


def merge_patch(old: Json, new: Json) -> Json:
    """The merge patch that makes `new` of `old`: what is gone is null, at every depth."""
    patch: Json = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            value = merge_patch(before, value)
            if not value:
                continue
        elif key in old and before == value:
            continue
        patch[key] = value
    return patch


def _version(plural: str) -> str:
    return podgroups.GROUP_VERSION if plural == podgroups.POD_GROUPS else "v1"


class NameTaken(Exception):
    """Something that is not of this job has a name this job needs."""


class Actor:
    def __init__(self, client: Client, learn: Learn, component: str) -> None:
        self._client = client
        self._learn = learn
        self._component = component
        self.created = self.deleted = self.patched = 0

    def carry_out(self, who: Identity, actions: Iterable[Action]) -> None:
        for action in actions:
            match action:
                case Create(plural, body):
                    self._create(who, plural, body)
                case Replace(plural, body):
                    name = body["metadata"]["name"]
                    path = member(_version(plural), plural, who.namespace, name)
                    self._learn(plural, self._client.replace(path, body))
                case Delete(plural, name, uid):
                    self._delete(who, plural, name, uid)
                case Nudge(name, uid):
                    self._nudge(who, name, uid)
                case End(name, uid, reason):
                    self._end(who, name, uid, reason)

    def _create(self, who: Identity, plural: str, body: Json) -> None:
        try:
            made = self._client.create(collection(_version(plural), plural, who.namespace), body)
        except Refused as error:
            if not error.is_taken:
                raise
            name = body["metadata"]["name"]
            made = self._client.get(member(_version(plural), plural, who.namespace, name))
            if not is_owned_by(made, who.uid):
                raise NameTaken(f"{plural} {name} exists and is not of this job") from None
        else:
            self.created += 1
        self._learn(plural, made)

    def _delete(self, who: Identity, plural: str, name: str, uid: str) -> None:
        try:
            self._client.delete(member(_version(plural), plural, who.namespace, name), uid=uid)
            self.deleted += 1
        except Refused as error:
            if not (error.is_missing or error.is_outdated):
                raise

    def let_go(
        self, pods: Iterable[Json], wait_s: float, who: Identity | None, now: float
    ) -> float | None:
        """Stop holding pods whose logs nobody stored in time; in how long the next one is due.

        Told on the job, if it (`who`) is still there, or else on the pod.
        """
        held = holding.due(pods, wait_s, now)
        for pod in (*held.empty, *held.lost):
            self._let_go(pod)
        for pod in held.lost:
            name = pod["metadata"]["name"]
            words = f"nobody stored the log of {name} within {wait_s:g} s; it goes with the pod"
            event = Event("LogLost", words, Severity.WARNING)
            if who is not None and is_owned_by(pod, who.uid):
                self.tell(who, event, 0, now)
            else:
                self._tell_of_pod(pod, event, now)
        return held.wake_after_s

    def _let_go(self, pod: Json) -> None:
        """Take our finalizer from a pod, if nobody has changed the pod meanwhile."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        version = pod["metadata"]["resourceVersion"]
        change = {"resourceVersion": version, "finalizers": holding.without(pod)}
        path = member("v1", PODS, namespace, name)
        try:
            self._learn(PODS, self._client.patch(path, {"metadata": change}))
        except Refused as error:
            if not error.is_missing:
                raise

    def _nudge(self, who: Identity, name: str, uid: str) -> None:
        note = {NUDGED_ANNOTATION: repr(clock.now())}
        change = {"metadata": {"uid": uid, "annotations": note}}
        try:
            self._learn(
                "pods", self._client.patch(member("v1", "pods", who.namespace, name), change)
            )
        except Refused as error:
            if not (error.is_missing or error.is_outdated):
                raise

    def _end(self, who: Identity, name: str, uid: str, reason: str) -> None:
        change = {
            # The uid is compared: a successor of the same name is left alone.
            "metadata": {"uid": uid, "annotations": {STOPPED_ANNOTATION: reason[:200]}},
            "spec": {"activeDeadlineSeconds": 1},
        }
        try:
            done = self._client.patch(member("v1", "pods", who.namespace, name), change)
            self._learn("pods", done)
        except Refused as error:
            if not (error.is_missing or error.is_outdated):
                raise

    # --- telling -------------------------------------------------------------------------------

    def write_status(self, who: Identity, body: Json, status: Json) -> None:
        """Replace the status, if the object is still the one that was looked at."""
        change = {
            "metadata": {"resourceVersion": body["metadata"]["resourceVersion"]},
            "status": merge_patch(body.get("status") or {}, status),
        }
        path = member(who.kind.api_version, who.kind.plural, who.namespace, who.name, "status")
        self._learn(who.kind.plural, self._client.patch(path, change))
        self.patched += 1

    def tell(self, who: Identity, event: Event, generation: int, now: float) -> None:
        """Once per job, generation and text: the name of an event is made of them."""
        about = {
            "apiVersion": who.kind.api_version,
            "kind": who.kind.name,
            "namespace": who.namespace,
            "name": who.name,
            "uid": who.uid,
        }
        self._tell(about, event, generation, now)

    def _tell_of_pod(self, pod: Json, event: Event, now: float) -> None:
        metadata = pod["metadata"]
        about = {key: metadata[key] for key in ("namespace", "name", "uid")}
        self._tell({"apiVersion": "v1", "kind": "Pod", **about}, event, 0, now)

    def _tell(self, about: Json, event: Event, generation: int, now: float) -> None:
        text = f"{about['uid']} {generation} {event.reason} {event.message}"
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        namespace = about["namespace"]
        body: Json = {
            "metadata": {"name": f"{about['name']}.{digest}", "namespace": namespace},
            "involvedObject": about,
            "reason": event.reason,
            "message": event.message[:1000],
            "type": event.severity.value,
            "source": {"component": self._component},
            "firstTimestamp": written_time(now),
            "lastTimestamp": written_time(now),
            "count": 1,
        }
        if event.replica:
            body["metadata"]["annotations"] = {REPLICA_ANNOTATION: event.replica}
        try:
            self._client.create(collection("v1", "events", namespace), body)
        except Refused as error:
            if not (error.is_taken or error.is_missing or error.is_final):
                raise
