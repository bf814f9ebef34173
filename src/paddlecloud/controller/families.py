"""What belongs to which job: pods, services and ConfigMaps, filed by the labels they carry.

`Families.file` is told of everything that came, changed or went, and says whose it is; `of` and
`pods` answer without asking the API server. Safe to use from several threads.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from paddlecloud.controller.identity import Identity, Json, kind_of_job
from paddlecloud.controller.plans import CONFIG_MAPS, PODS, SERVICES, Children
from paddlecloud.kube.informers import Key, key_of
from paddlecloud.kube.kinds import Kind
from paddlecloud.kube.words import JOB_LABEL

PLURALS = (PODS, SERVICES, CONFIG_MAPS)

ABOUT = "about"  # what a record of the log calls the job it is about

Find = Callable[[str, Key], Json | None]  # plural, name -> the copy there is of it


@dataclass(frozen=True, slots=True)
class JobKey:
    """What a job is called in the queue."""

    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.name} {self.namespace}/{self.name}"

    @property
    def logged(self) -> dict[str, dict[str, str]]:
        """For a line of the log, to be found by."""
        named = {"kind": self.kind.name, "namespace": self.namespace, "name": self.name}
        return {ABOUT: named}


def job_key(kind: Kind, body: Json) -> JobKey:
    return JobKey(kind, *key_of(body))


class Families:
    def __init__(self, find: Find) -> None:
        self._find = find
        self._lock = threading.Lock()
        self._filed: dict[str, dict[JobKey, dict[str, Json]]] = {
            plural: defaultdict(dict) for plural in PLURALS
        }

    def file(self, plural: str, body: Json) -> JobKey | None:
        """File the child under its job; what is in the informer's copy counts, not the event."""
        job = (body["metadata"].get("labels") or {}).get(JOB_LABEL)
        if not job:
            return None
        child = key_of(body)
        key = JobKey(kind_of_job(body), child[0], job)
        with self._lock:
            now = self._find(plural, child)
            family = self._filed[plural][key]
            if now is None:
                family.pop(child[1], None)
                if not family:
                    del self._filed[plural][key]
            else:
                family[child[1]] = now
        return key

    def pods(self, key: JobKey) -> list[Json]:
        with self._lock:
            return list(self._filed[PODS].get(key, {}).values())

    def of(self, who: Identity, group: Json | None = None) -> Children:
        """`group` is the job's PodGroup, which somebody else keeps."""
        key = JobKey(who.kind, who.namespace, who.name)
        with self._lock:
            pods, services, maps = (dict(self._filed[plural].get(key) or {}) for plural in PLURALS)
        names = (who.peers_name, who.gate_name, who.runtime_name)
        peers, gate, runtime = (maps.get(name) for name in names)
        return Children(list(pods.values()), list(services.values()), peers, gate, group, runtime)
