"""What a cluster has and has left, by what informers saw of it."""

from __future__ import annotations

from typing import Any

from paddlecloud.core.resources import Resources
from paddlecloud.engines.kubernetes.surveying import Survey

Json = dict[str, Any]


class View:
    """The part of a `ClusterView` that is asked here."""

    def __init__(self, nodes: list[Json], pods: list[Json], strangers: list[Json]) -> None:
        self._nodes, self._pods, self._strangers = nodes, pods, strangers

    def nodes(self) -> list[Json]:
        return self._nodes

    def all_pods(self) -> list[Json]:
        return self._pods

    def strangers(self) -> list[Json]:
        return self._strangers


def node(name: str, ready: str = "True") -> Json:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    conditions = [{"type": "Ready", "status": ready}]
    return {
        "metadata": {"name": name},
        "spec": {},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": conditions},
    }


def pod(name: str, where: str, cpu: str) -> Json:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return {
        "metadata": {"name": name, "namespace": "x"},
        "spec": {"nodeName": where, "containers": [container]},
        "status": {"phase": "Running"},
    }


def free(*args: list[Json]) -> Resources:
    return Survey(View(*args), None).free()  # type: ignore[arg-type]


def test_counts_what_jobs_and_others_hold_on_nodes_that_may_be_used() -> None:
    left = free([node("a"), node("b")], [pod("mine", "a", "1")], [pod("theirs", "b", "500m")])
    assert left == Resources(6500, 14 * 2**30)


def test_a_pod_on_a_node_that_fell_silent_takes_nothing_from_the_others() -> None:
    left = free([node("a"), node("b", "Unknown")], [pod("mine", "b", "3")], [])
    assert left == Resources(4000, 8 * 2**30)


def test_is_never_less_than_nothing() -> None:
    left = free([node("a", "Unknown")], [pod("mine", "a", "3")], [])
    assert left == Resources()
    crowded = [pod("mine", "a", "3"), pod("more", "a", "3")]
    assert free([node("a")], crowded, []) == Resources(0, 6 * 2**30)
