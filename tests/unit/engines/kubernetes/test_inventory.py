"""Which nodes count, which may take a pod, and what a pod holds: as kube-scheduler sees it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.jobspec import Role
from paddlecloud.core.resources import Resources
from paddlecloud.engines.kubernetes.inventory import (
    Eligibility,
    may_take,
    pod_needs,
    read_node,
    read_pod,
)

GI = 2**30


def node(
    name: str = "n", *, ready: str = "True", labels: dict[str, str] | None = None, **spec: Any
):
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "8", "memory": "4Gi", "nvidia.com/gpu": "2", "pods": "110"},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def taint(key: str, effect: str = "NoSchedule", value: str = "") -> dict[str, str]:
    return {"key": key, "effect": effect, "value": value}


def test_reads_what_a_node_has():
    seen = read_node(node())
    assert (seen.total, seen.is_usable) == (Resources(8000, 4 * GI, 2), True)


@pytest.mark.parametrize(
    "body", [node(ready="False"), node(ready="Unknown"), node(unschedulable=True)]
)
def test_leaves_out_nodes_that_take_nothing(body):
    assert not read_node(body).is_usable


def affinity(*rules: dict[str, Any]) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(rules)}]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"nodeAffinity": {required: terms}}}


@pytest.mark.parametrize(
    ("labels", "taints", "spec", "may"),
    [
        ({}, [], {}, True),
        ({"zone": "a"}, [], {"nodeSelector": {"zone": "a"}}, True),
        ({"zone": "b"}, [], {"nodeSelector": {"zone": "a"}}, False),
        ({}, [taint("gpu")], {}, False),
        ({}, [taint("slow", "PreferNoSchedule")], {}, True),
        ({}, [taint("gpu")], {"tolerations": [{"key": "gpu", "operator": "Exists"}]}, True),
        ({}, [taint("gpu", value="v")], {"tolerations": [{"key": "gpu", "value": "w"}]}, False),
        ({}, [taint("gpu", "NoExecute")], {"tolerations": [{"operator": "Exists"}]}, True),
        (
            {},
            [taint("gpu", "NoExecute")],
            {"tolerations": [{"operator": "Exists", "effect": "NoSchedule"}]},
            False,
        ),
        ({"cpu": "9"}, [], affinity({"key": "cpu", "operator": "Gt", "values": ["8"]}), True),
        ({"cpu": "8"}, [], affinity({"key": "cpu", "operator": "Gt", "values": ["8"]}), False),
        ({"a": "1"}, [], affinity({"key": "a", "operator": "In", "values": ["1", "2"]}), True),
        ({"a": "1"}, [], affinity({"key": "a", "operator": "NotIn", "values": ["1"]}), False),
        ({}, [], affinity({"key": "a", "operator": "Exists"}), False),
        ({}, [], affinity({"key": "a", "operator": "DoesNotExist"}), True),
        ({}, [], affinity(), False),
    ],
)
def test_knows_which_nodes_may_take_a_pod(labels, taints, spec, may):
    assert may_take(read_node(node(labels=labels, taints=taints)), spec) is may


def test_finds_the_nodes_of_a_template():
    bodies = [node("a", labels={"zone": "a"}), node("b", taints=[taint("gpu")]), node("c")]
    eligibility = Eligibility([read_node(body) for body in bodies])
    assert eligibility.of({"spec": {}}) == {"a", "c"}
    assert eligibility.of({"spec": {"tolerations": [{"operator": "Exists"}]}}) is None
    assert eligibility.of({"spec": {"nodeSelector": {"zone": "a"}}}) == {"a"}


def container(cpu: str = "1", **more: Any) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}}, **more}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [container("1"), container("500m")]}, 1500),
        ({"containers": [{"resources": {"limits": {"cpu": "2"}}}]}, 2000),
        ({"containers": [container("1")], "initContainers": [container("3")]}, 3000),
        (
            {
                "containers": [container("1")],
                "initContainers": [container("2", restartPolicy="Always"), container("3")],
            },
            5000,
        ),
        ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, 1250),
        ({"containers": [container("nonsense")]}, 0),
    ],
)
def test_counts_what_a_pod_holds(spec, cpu):
    assert pod_needs(spec).cpu_milli == cpu


def test_reads_whose_a_pod_is():
    seen = read_pod(
        {
            "metadata": {
                "name": "job-worker-1",
                "namespace": "ns",
                "labels": {
                    "paddlepaddle.org/job": "job",
                    "paddle-res-type": "worker",
                    "paddlepaddle.org/index": "1",
                },
                "ownerReferences": [{"uid": "u-1", "controller": True}],
                "deletionTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"nodeName": "n", "containers": [container()]},
            "status": {"phase": "Failed"},
        }
    )
    assert (seen.owner, seen.slot, seen.node) == ("u-1", (Role.TRAINER, 1), "n")
    assert (seen.is_ours, seen.is_over, seen.ended_well, seen.is_leaving) == (
        True,
        True,
        False,
        True,
    )


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
KEYS = ("nodeSelector", "affinity", "tolerations", "containers", "initContainers", "overhead")


@given(st.dictionaries(st.sampled_from(KEYS), anything))
def test_never_breaks_on_an_odd_template(spec):
    """A template is the user's; what is wrong with it is the API server's to say."""
    assert may_take(read_node(node()), spec) in (True, False)
    assert pod_needs(spec).cpu_milli >= 0
    Eligibility([read_node(node())]).of({"spec": spec})
