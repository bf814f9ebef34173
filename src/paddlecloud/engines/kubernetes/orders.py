"""What the engine writes to the API server: objects of runs, orders on them, groups.

Every write may be made twice. A server that does not answer, or has no time, is `Unavailable`, and
whoever called comes again; what it refuses for good is `Rejected`, with the server's own words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from paddlecloud.core.errors import Conflict, Unavailable
from paddlecloud.core.names import dns_label
from paddlecloud.core.observed import Move
from paddlecloud.core.resources import format_cpu, format_memory
from paddlecloud.engines.kubernetes import reading, rendering
from paddlecloud.engines.kubernetes.journal import Entry, Place
from paddlecloud.engines.kubernetes.watching import GROUPS_PLURAL, GROUPS_VERSION
from paddlecloud.engines.protocols import JobRun
from paddlecloud.kube import words
from paddlecloud.kube.client import Client, collection, member
from paddlecloud.kube.kinds import KINDS, PADDLE_JOB, kind_named
from paddlecloud.kube.refusals import Refused
from paddlecloud.scheduling.snapshot import Group, Quota

Json = dict[str, Any]

GROUP_KIND = "ResourceGroup"
OURS_LABEL, OURS = "app.kubernetes.io/managed-by", "paddlecloud-server"
_TRIES = 5  # of a change that others make at the same time


class Rejected(Exception):
    """The API server will never take this object; the message says why."""


@contextmanager
def answered(what: str) -> Iterator[None]:
    """Refusals as errors of the platform."""
    try:
        yield
    except Refused as error:
        raise Unavailable(
            f"{what}: {error.message}", hint="the cluster is asked again by itself"
        ) from None


class Orders:
    def __init__(self, client: Client, learn: Callable[[Place, Json], None]) -> None:
        self._client = client
        self._learn = learn

    # --- runs --------------------------------------------------------------------------------

    def make(self, job: JobRun, body: Json) -> Json:
        """The run's object, there when this returns, with its secret."""
        namespace = body["metadata"]["namespace"]
        kind = kind_named(body["kind"]) or PADDLE_JOB
        with answered(f"{job.spec.name} could not be given to the cluster"):
            hidden = rendering.secret(job, body)
            if hidden is not None:
                # Before the object: a kubelet that misses it looks again only after 10 s.
                self._create_or_find(collection("v1", "secrets", namespace), hidden)
            made = self._find_or_create(job, body, kind.api_version, kind.plural)
            self._learn((kind.name, namespace, body["metadata"]["name"]), made)
            made = {**made, "kind": kind.name, "apiVersion": kind.api_version}
            if hidden is not None:
                path = member("v1", "secrets", namespace, hidden["metadata"]["name"])
                self._client.patch(path, rendering.owned_patch(made))
        return made

    def _find_or_create(self, job: JobRun, body: Json, version: str, plural: str) -> Json:
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        try:
            return self._client.create(collection(version, plural, namespace), body)
        except Refused as error:
            if error.status in (400, 413, 422):
                raise Rejected(error.message) from None
            if not error.is_taken:
                raise
        found = self._client.get(member(version, plural, namespace, name))
        labels = found["metadata"].get("labels") or {}
        mine = (job.job_id, str(job.run))
        if (labels.get(words.JOB_ID_LABEL), labels.get(words.RUN_LABEL)) != mine:
            raise Conflict(
                f"{plural} {namespace}/{name} exists and is not of this run",
                hint="delete it, or submit under another name",
            )
        return found

    def _create_or_find(self, path: str, body: Json) -> None:
        try:
            self._client.create(path, body)
        except Refused as error:
            if not error.is_taken:
                raise

    def find(self, job_id: str, run: int) -> Json | None:
        """The object of this run, wherever it is; raises Unavailable."""
        selector = f"{words.JOB_ID_LABEL}={job_id},{words.RUN_LABEL}={run}"
        with answered("the cluster could not be asked"):
            for kind in KINDS:
                path = collection(kind.api_version, kind.plural)
                items = self._client.get(path, labelSelector=selector).get("items") or ()
                if items:
                    return {"kind": kind.name, **items[0]}
        return None

    def _path(self, place: Place) -> str:
        kind = kind_named(place[0]) or PADDLE_JOB
        return member(kind.api_version, kind.plural, *place[1:])

    def cancel(self, entry: Entry, reason: str) -> bool:
        """False: there is no such object."""

        def patch(body: Json) -> Json | None:
            notes = body["metadata"].get("annotations") or {}
            return None if words.CANCEL_ANNOTATION in notes else rendering.cancel_patch(reason)

        return self._change(entry, patch, "be killed")

    def move(self, entry: Entry, moves: Sequence[Move]) -> bool:
        def patch(body: Json) -> Json | None:
            rows = reading.move_rows(body)
            known = {(row.get("role"), row.get("index"), row.get("attempt")) for row in rows}
            new = [
                row
                for row in map(reading.move_row, moves)
                if (row["role"], row["index"], row["attempt"]) not in known
            ]
            version = str(body["metadata"]["resourceVersion"])
            return rendering.moves_patch([*rows, *new], version) if new else None

        return self._change(entry, patch, "be moved")

    def scale(self, entry: Entry, trainers: int) -> bool:
        role = "worker" if entry.place[0] == PADDLE_JOB.name else "trainer"
        return self._change(entry, lambda _: {"spec": {role: {"replicas": trainers}}}, "be scaled")

    def _change(self, entry: Entry, patch: Callable[[Json], Json | None], what: str) -> bool:
        path = self._path(entry.place)
        with answered(f"{entry.place[2]} could not {what}"):
            for attempt in range(_TRIES):
                try:
                    body = self._client.get(path)
                    if entry.uid and body["metadata"]["uid"] != entry.uid:
                        return False
                    change = patch(body)
                    if change is not None:
                        self._learn(entry.place, self._client.patch(path, change))
                    return True
                except Refused as error:
                    if error.is_missing:
                        return False
                    if not error.is_outdated or attempt == _TRIES - 1:
                        raise
        return False

    def remove(self, entry: Entry) -> None:
        """Delete the object; what it owns goes with it."""
        with answered(f"{entry.place[2]} could not be deleted"):
            try:
                self._client.delete(self._path(entry.place), uid=entry.uid)
            except Refused as error:
                if not (error.is_missing or error.is_outdated):
                    raise

    def hold(self, pod: Json) -> None:
        """Keep a pod until its log is stored; one that changed meanwhile is looked at again."""
        metadata = pod["metadata"]
        path = member("v1", "pods", metadata["namespace"], metadata["name"])
        change = {
            "finalizers": [*(metadata.get("finalizers") or ()), words.LOG_FINALIZER],
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        }
        with answered(f"the log of {metadata['name']} could not be claimed"):
            try:
                self._client.patch(path, {"metadata": change})
            except Refused as error:
                # 422: it is being deleted by now.
                if not (error.is_missing or error.is_outdated or error.status == 422):
                    raise

    def release(self, pod: Json) -> None:
        """Let a pod go whose log is stored. Raises Refused."""
        metadata = pod["metadata"]
        path = member("v1", "pods", metadata["namespace"], metadata["name"])
        for attempt in range(_TRIES):
            kept = [one for one in metadata.get("finalizers") or () if one != words.LOG_FINALIZER]
            change = {
                "finalizers": kept,
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            }
            try:
                self._client.patch(path, {"metadata": change})
                return
            except Refused as error:
                if error.is_missing:
                    return
                if not error.is_outdated or attempt == _TRIES - 1:
                    raise
            fresh = self._pod(path)
            if fresh is None or fresh["uid"] != metadata["uid"]:
                return
            metadata = fresh

    def _pod(self, path: str) -> Json | None:
        try:
            found: Json = self._client.get(path)["metadata"]
            return found
        except Refused as error:
            if error.is_missing:
                return None
            raise

    # --- groups ------------------------------------------------------------------------------

    def publish(self, groups: Mapping[str, Group], members: Mapping[str, Sequence[str]]) -> None:
        """Make the cluster's groups of ours these, no more and no fewer."""
        path = collection(GROUPS_VERSION, GROUPS_PLURAL)
        wanted = {
            dns_label(name): group_body(group, members.get(name, ()))
            for name, group in groups.items()
        }
        with answered("groups could not be published"):
            there = self._client.get(path, labelSelector=f"{OURS_LABEL}={OURS}").get("items") or ()
            known = {body["metadata"]["name"]: body for body in there}
            for name, body in wanted.items():
                if name not in known:
                    self._create_or_find(path, body)
                elif known[name].get("spec") != body["spec"]:
                    metadata = known[name]["metadata"]
                    self._client.replace(
                        member(GROUPS_VERSION, GROUPS_PLURAL, "", name),
                        {**body, "metadata": metadata | body["metadata"]},
                    )
            for name in known.keys() - wanted.keys():
                self._client.delete(member(GROUPS_VERSION, GROUPS_PLURAL, "", name))


def group_body(group: Group, namespaces: Sequence[str]) -> Json:
    return {
        "apiVersion": GROUPS_VERSION,
        "kind": GROUP_KIND,
        "metadata": {"name": dns_label(group.name), "labels": {OURS_LABEL: OURS}},
        "spec": {
            "guarantee": amounts(group.guarantee),
            "limit": amounts(group.limit),
            "weight": group.weight,
            "namespaces": sorted(namespaces),
        },
    }


def amounts(quota: Quota) -> Json:
    """In quantities of Kubernetes; what is not limited is left out."""
    found: Json = {
        "cpu": None if quota.cpu_milli is None else format_cpu(quota.cpu_milli),
        "memory": None if quota.memory_bytes is None else format_memory(quota.memory_bytes),
        "gpu": quota.gpu,
        "replicas": quota.replicas,
    }
    return {name: value for name, value in found.items() if value is not None}
