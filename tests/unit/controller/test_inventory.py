"""What the operator keeps of nodes and pods for planning: all that counts, and little else."""

from __future__ import annotations

from typing import Any

from paddlecloud.controller.inventory import Readings, trim_node, trim_pod
from paddlecloud.engines.kubernetes.inventory import NodeSeen, read_node, read_pod

POD: dict[str, Any] = {
    "metadata": {
        "name": "p",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "1",
        "labels": {"paddlepaddle.org/job": "j", "paddle-res-type": "ps"},
        "annotations": {"long": "x" * 1000},
        "ownerReferences": [{"uid": "o", "controller": True}],
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-01T00:00:01Z",
    },
    "spec": {
        "nodeName": "n",
        "containers": [{"env": [{"name": "x"}], "resources": {"requests": {"cpu": "1"}}}],
        "initContainers": [{"restartPolicy": "Always", "resources": {"limits": {"cpu": "2"}}}],
        "overhead": {"memory": "1Mi"},
    },
    "status": {"phase": "Running", "conditions": [{"type": "Ready"}]},
}
NODE: dict[str, Any] = {
    "metadata": {"name": "n", "resourceVersion": "1", "labels": {"zone": "a"}},
    "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
    "status": {
        "allocatable": {"cpu": "4"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "images": [{"names": ["x" * 1000]}],
    },
}


def test_keeps_what_counts():
    assert read_pod(trim_pod(POD)) == read_pod(POD)
    assert read_node(trim_node(NODE)) == read_node(NODE)
    assert len(str(trim_pod(POD))) < len(str(POD)) / 2
    assert len(str(trim_node(NODE))) < len(str(NODE)) / 2


def test_reads_an_object_once_per_version():
    read: list[str] = []

    def reading(body: dict[str, Any]) -> NodeSeen:
        read.append(body["metadata"]["resourceVersion"])
        return read_node(body)

    readings = Readings(reading)
    later = {**NODE, "metadata": {**NODE["metadata"], "resourceVersion": "2"}}
    for body in (NODE, NODE, later, later):
        readings.all([body])
    assert read == ["1", "2"]


def test_tells_a_heartbeat_from_news():
    readings = Readings(read_node)
    readings.all([NODE])
    beat = {**NODE, "metadata": {**NODE["metadata"], "resourceVersion": "2"}}
    assert not readings.is_other(beat, is_there=True)
    cordoned = {**beat, "spec": {"unschedulable": True}}
    cordoned["metadata"] = {**NODE["metadata"], "resourceVersion": "3"}
    assert readings.is_other(cordoned, is_there=True)
    assert readings.is_other(cordoned, is_there=False)
    assert not readings.is_other(cordoned, is_there=False)  # it was not known any more
