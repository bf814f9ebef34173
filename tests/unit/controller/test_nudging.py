"""Kubelets that missed a ConfigMap look again; a trainer 0 that comes back is modest."""

from __future__ import annotations

from typing import Any

from paddlecloud.controller.plans import Nudge
from paddlecloud.core.jobspec import Role
from paddlecloud.core.observed import ReplicaKey, ReplicaObserved, ReplicaState
from paddlecloud.core.restart import joins_trained_servers
from paddlecloud.kube.words import NUDGED_ANNOTATION
from tests.unit.controller.pretended import Namespace, role


def missing(name: str) -> dict[str, Any]:
    message = f'configmap "{name}" not found'
    waiting = {"waiting": {"reason": "CreateContainerConfigError", "message": message}}
    return {"containerStatuses": [{"name": "paddle", "ready": False, "state": waiting}]}


def a_job_whose_pod_misses(name: str) -> Namespace:
    namespace = Namespace(worker=role(1))
    for _ in range(3):
        for action in namespace.look().actions:
            namespace.apply(action)
        for key, body in namespace.stored.items():
            if key[0] == "pods":
                body["status"] = {"phase": "Pending", "podIP": "10.0.0.1", **missing(name)}
    assert ("configmaps", "job") in namespace.stored
    return namespace


def nudges(namespace: Namespace) -> list[str]:
    return [one.name for one in namespace.look().actions if isinstance(one, Nudge)]


def test_nudges_a_pod_that_misses_what_is_there_by_now():
    namespace = a_job_whose_pod_misses("job")
    assert nudges(namespace) == ["job-worker-0"]


def test_nudges_again_a_second_later_and_not_before():
    namespace = a_job_whose_pod_misses("job")
    pod = namespace.stored["pods", "job-worker-0"]
    pod["metadata"].setdefault("annotations", {})[NUDGED_ANNOTATION] = repr(namespace.now)
    assert nudges(namespace) == []
    assert namespace.look().wake_after_s == 1.0
    namespace.now += 1.0
    assert nudges(namespace) == ["job-worker-0"]


def test_leaves_a_pod_alone_that_misses_something_of_its_users():
    assert nudges(a_job_whose_pod_misses("of-the-user")) == []


def test_trainer_0_is_modest_only_towards_servers_older_than_itself():
    def seen(attempt: int, state: ReplicaState = ReplicaState.RUNNING) -> list[ReplicaObserved]:
        return [ReplicaObserved(ReplicaKey("j", 1, Role.PSERVER, 0, attempt), state)]

    again = ReplicaKey("j", 1, Role.TRAINER, 0, 2)
    assert joins_trained_servers(again, seen(1))
    assert not joins_trained_servers(again, seen(2))  # everybody starts again
    assert not joins_trained_servers(again, seen(1, ReplicaState.LOST))
    assert not joins_trained_servers(ReplicaKey("j", 1, Role.TRAINER, 1, 2), seen(1))
    assert not joins_trained_servers(ReplicaKey("j", 1, Role.TRAINER, 0, 1), seen(1))
