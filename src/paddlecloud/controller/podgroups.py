"""Volcano's pod groups: one per job that names Volcano as its scheduler.

A group of the job's name that somebody made by hand is used as it is. Otherwise the operator makes
one, owned by the job: all replicas at once (or `schedulingPolicy.minAvailable` of them), the queue
and the priority class of the policy, and what they need together. It follows the job's size, goes
while the job waits for its turn, and goes at the job's end. `changes` is pure; `PodGroups` is the
edge that watches, and only where somebody asks for Volcano.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from paddlecloud.controller.identity import Identity, Json, is_owned_by
from paddlecloud.core.jobspec import RoleSpec
from paddlecloud.core.resources import BadQuantity, format_cpu, format_memory, parse_number
from paddlecloud.forms.custom_resources import ClusterJob, GangPolicy
from paddlecloud.kube.client import Client, collection
from paddlecloud.kube.informers import Informer, Key, Watched, key_of

POD_GROUPS, GROUP_VERSION, KIND = "podgroups", "scheduling.volcano.sh/v1beta1", "PodGroup"
VOLCANO = "volcano"
PATIENCE_S = 10.0


def names_volcano(body: Json) -> bool:
    """Whether a template of the object names Volcano, without reading all of it."""
    spec = body.get("spec")
    roles = spec.values() if isinstance(spec, Mapping) else ()
    for role in roles:
        for template in role.values() if isinstance(role, Mapping) else ():
            pod = template.get("spec") if isinstance(template, Mapping) else None
            if isinstance(pod, Mapping) and pod.get("schedulerName") == VOLCANO:
                return True
    return False


# --- what it says ------------------------------------------------------------------------------


def pod_group(who: Identity, job: ClusterJob, size: int) -> Json:
    policy = job.gang or GangPolicy()
    replicas = job.spec.replicas_at(size)
    least = min(policy.min_available or replicas, replicas)
    spec: Json = {"minMember": least}
    needs = dict(policy.min_resources) or least_needs(job, size, least)
    optional = {
        "queue": policy.queue,
        "priorityClassName": policy.priority_class,
        "minResources": needs,
    }
    spec |= {key: value for key, value in optional.items() if value}
    return {
        "apiVersion": GROUP_VERSION,
        "kind": KIND,
        "metadata": who.metadata(who.group_name),
        "spec": spec,
    }


def least_needs(job: ClusterJob, size: int, least: int) -> dict[str, str]:
    """The least that so many replicas could need: Volcano lets a group in by it."""
    each: list[dict[str, Decimal]] = []
    for role in job.spec.roles:
        count = size if role is job.spec.trainers else role.replicas
        each += [_requests(role)] * count
    each.sort(key=lambda needs: sorted(needs.items()))
    total: dict[str, Decimal] = {}
    for needs in each[:least]:
        for name, amount in needs.items():
            total[name] = total.get(name, Decimal(0)) + amount
    return {name: _written(name, amount) for name, amount in sorted(total.items()) if amount}


def _requests(role: RoleSpec) -> dict[str, Decimal]:
    pod = (role.template or {}).get("spec")
    containers = pod.get("containers") if isinstance(pod, Mapping) else None
    total: dict[str, Decimal] = {}
    for container in containers if isinstance(containers, list) else ():
        asked = container.get("resources") if isinstance(container, Mapping) else None
        for name, text in _asked(asked).items():
            try:
                total[name] = total.get(name, Decimal(0)) + parse_number(str(text))
            except BadQuantity:
                continue  # the API server will say so
    return total


def _asked(resources: object) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind in ("limits", "requests"):
        amounts = resources.get(kind) if isinstance(resources, Mapping) else None
        found |= amounts if isinstance(amounts, Mapping) else {}
    return found


def _written(name: str, amount: Decimal) -> str:
    if name == "cpu":
        return format_cpu(int(amount * 1000))
    return format_memory(int(amount))


# --- what to do --------------------------------------------------------------------------------


def is_as_wanted(there: Json, wanted: Json) -> bool:
    """Whether it says what ours would; what Volcano adds to it does not count."""
    spec = there.get("spec") or {}
    return all(spec.get(key) == value for key, value in wanted["spec"].items())


def updated(there: Json, wanted: Json) -> Json:
    return {**there, "spec": {**(there.get("spec") or {}), **wanted["spec"]}}


def is_ours(there: Json | None, who: Identity) -> bool:
    return there is not None and is_owned_by(there, who.uid)


# --- the edge ----------------------------------------------------------------------------------


class PodGroups:
    """The pod groups of the cluster, watched from the first time that somebody asks."""

    def __init__(self, client: Client, namespace: str, changed: Callable[[Key], None]) -> None:
        self._make = lambda: Informer(
            client,
            Watched(collection(GROUP_VERSION, POD_GROUPS, namespace)),
            lambda body: changed(key_of(body)),
        )
        self._lock = threading.Lock()
        self._informer: Informer | None = None

    def find(self, namespace: str, name: str) -> Json | None:
        with self._lock:
            if self._informer is None:
                self._informer = self._make()
                self._informer.start()
        deadline = time.monotonic() + PATIENCE_S
        while not self._informer.listed.wait(0.1):
            if self._informer.is_missing or time.monotonic() > deadline:
                break
        return self._informer.find((namespace, name))

    def learn(self, body: Json) -> None:
        if self._informer is not None:
            self._informer.learn(body)

    def stop(self) -> None:
        if self._informer is not None:
            self._informer.stop()
