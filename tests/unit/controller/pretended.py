"""A namespace in memory for tests of `controller.planning`: it applies plans and plays kubelet.

Only what the API server guarantees: a name exists once, a delete needs the right uid, a deleted
pod is gone only when its kubelet says so, what a job owns goes with it.
"""

from __future__ import annotations

import copy
import itertools
from typing import Any

from paddlecloud.controller.allotments import Allotted
from paddlecloud.controller.identity import identity_of
from paddlecloud.controller.peers import Site
from paddlecloud.controller.planning import plan
from paddlecloud.controller.plans import Action, Children, Create, Delete, End, Plan, Replace
from paddlecloud.controller.remembering import written_time
from paddlecloud.kube.kinds import PADDLE_JOB, Kind
from paddlecloud.kube.words import STOPPED_ANNOTATION

START = 1_000_000.0


def template(**pod: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "paddle", "image": "demo:v1"}], **pod}}


def role(replicas: int, **keys: Any) -> dict[str, Any]:
    return {"replicas": replicas, "template": template(), **keys}


class Namespace:
    """One job and what belongs to it."""

    def __init__(
        self,
        site: Site | None = None,
        uid: str = "u-1",
        kind: Kind = PADDLE_JOB,
        **spec: Any,
    ) -> None:
        self.site = site or Site()
        self.kind = kind
        self.now = START
        self.numbers = itertools.count(1)
        self.stored: dict[tuple[str, str], dict[str, Any]] = {}
        self.body: dict[str, Any] = {
            "metadata": {
                "name": "job",
                "namespace": "ns",
                "uid": uid,
                "generation": 1,
                "creationTimestamp": written_time(START),
            },
            "spec": spec,
        }
        self.events: list[tuple[str, str]] = []
        self.allotted: Allotted | None = None  # by a planner; None: nobody plans
        self.most_pods = 0

    # --- the API server ------------------------------------------------------------------------

    def children(self) -> Children:
        def of(plural: str) -> list[dict[str, Any]]:
            return [copy.deepcopy(body) for key, body in self.stored.items() if key[0] == plural]

        maps = {body["metadata"]["name"]: body for body in of("configmaps")}
        who = identity_of(self.body, self.kind)
        names = (who.peers_name, who.gate_name, who.runtime_name)
        peers, gate, runtime = (maps.get(name) for name in names)
        group = next(iter(of("podgroups")), None)
        return Children(of("pods"), of("services"), peers, gate, group, runtime)

    def look(self) -> Plan:
        body = copy.deepcopy(self.body)
        return plan(body, self.children(), self.site, self.now, self.kind, self.allotted)

    def apply(self, action: Action) -> None:
        match action:
            case Create(plural, body):
                key = (plural, body["metadata"]["name"])
                assert key not in self.stored, f"{key} is made twice"
                made = copy.deepcopy(body)
                made["metadata"]["uid"] = f"child-{next(self.numbers)}"
                self.stored[key] = made
            case Replace(plural, body):
                self.stored[plural, body["metadata"]["name"]] = copy.deepcopy(body)
            case Delete(plural, name, uid):
                there = self.stored.get((plural, name))
                if there is None or there["metadata"]["uid"] != uid:
                    return
                if plural == "pods" and self.is_alive(name):
                    there["metadata"]["deletionTimestamp"] = written_time(self.now)
                else:
                    del self.stored[plural, name]
            case End(name, uid, reason):
                there = self.stored["pods", name]
                if there["metadata"]["uid"] != uid:
                    return
                there["metadata"].setdefault("annotations", {})[STOPPED_ANNOTATION] = reason
                self.end(name, 143, reason="DeadlineExceeded")
        self.most_pods = max(self.most_pods, len(self.pods()))

    def step(self) -> bool:
        """One whole pass; whether anything changed."""
        decided = self.look()
        for action in decided.actions:
            self.apply(action)
        self.events += [(event.reason, event.message) for event in decided.events]
        changed = bool(decided.actions)
        if decided.status is not None and decided.status != self.body.get("status"):
            self.body["status"] = decided.status
            changed = True
        if decided.wake_after_s is not None and not changed:
            self.now += decided.wake_after_s
            return True
        return changed

    def settle(self) -> None:
        """Pass after pass until nothing changes, with deleted pods leaving in between."""
        for _ in range(60):
            leaving = self.leave()
            if not (self.step() or leaving):
                return
        raise AssertionError("it never comes to rest")

    # --- the kubelets ----------------------------------------------------------------------------

    def pods(self) -> dict[str, dict[str, Any]]:
        return {name: body for (plural, name), body in self.stored.items() if plural == "pods"}

    def is_alive(self, name: str) -> bool:
        phase = self.stored["pods", name].get("status", {}).get("phase")
        return phase not in ("Succeeded", "Failed")

    def leave(self) -> bool:
        gone = [name for name, pod in self.pods().items() if "deletionTimestamp" in pod["metadata"]]
        for name in gone:
            del self.stored["pods", name]
        return bool(gone)

    def run(self, *names: str) -> None:
        """Let these pods run (all, if none is named), each with an address of its own."""
        for name in names or [*self.pods()]:
            pod = self.stored["pods", name]
            if pod.get("status", {}).get("phase"):
                continue
            number = next(self.numbers)
            pod["spec"]["nodeName"] = f"node-{number}"
            pod["status"] = {
                "phase": "Running",
                "podIP": f"10.0.0.{number}",
                "hostIP": f"192.168.0.{number}",
                "containerStatuses": [
                    {
                        "name": "paddle",
                        "ready": True,
                        "state": {"running": {"startedAt": written_time(self.now)}},
                    }
                ],
            }

    def end(self, name: str, code: int, **status: Any) -> None:
        pod = self.stored["pods", name]
        pod["status"] = {
            **pod.get("status", {}),
            **status,
            "phase": "Failed" if code else "Succeeded",
            "containerStatuses": [
                {
                    "name": "paddle",
                    "ready": False,
                    "state": {
                        "terminated": {
                            "exitCode": code,
                            "startedAt": written_time(self.now),
                            "finishedAt": written_time(self.now),
                        }
                    },
                }
            ],
        }

    # --- asking ----------------------------------------------------------------------------------

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.body.get("status", {})
        return found

    @property
    def data(self) -> dict[str, str] | None:
        name = identity_of(self.body, self.kind).peers_name
        found = self.stored.get(("configmaps", name))
        return None if found is None else found["data"]

    def environment(self, name: str) -> dict[str, str]:
        """What the program in this pod sees, as a kubelet works it out."""
        pod = self.stored["pods", name]
        container = pod["spec"]["containers"][0]
        data = self.data or {}
        waits_for = [one["configMapRef"]["name"] for one in container["envFrom"]]
        assert all(("configmaps", one) in self.stored for one in waits_for), f"{name} is held back"
        seen = dict(data)
        for one in container["env"]:
            if "value" in one:
                text = one["value"]
                for known, value in seen.items():
                    text = text.replace(f"$({known})", value)
                seen[one["name"]] = text
            elif "fieldRef" in one["valueFrom"]:
                field = one["valueFrom"]["fieldRef"]["fieldPath"].removeprefix("status.")
                seen[one["name"]] = pod["status"][field]
            else:
                key = one["valueFrom"]["configMapKeyRef"]["key"]
                seen |= {one["name"]: data[key]} if key in data else {}
        return seen


def running(**spec: Any) -> Namespace:
    """A namespace whose job has come to run."""
    world = Namespace(**spec)
    world.settle()
    world.run()
    world.settle()
    assert world.status["phase"] == world.kind.phases.running
    return world
