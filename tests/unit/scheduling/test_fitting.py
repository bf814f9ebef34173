"""What is refused at submit because it could never run here."""

from __future__ import annotations

import pytest
from hypothesis import given

from paddlecloud.core.errors import Fault
from paddlecloud.core.jobspec import JobSpec
from paddlecloud.scheduling.plan import never_fits, never_fits_quota, plan
from paddlecloud.scheduling.snapshot import JobView, Node, Snapshot
from paddlecloud.testing.builders import (
    NOW,
    make_node,
    make_quota,
    make_spec,
)
from tests.unit.scheduling.strategies import node_sets, specs

ONE = (make_node("8", "16Gi", 1),)
TWO = (make_node("4", "16Gi", name="a"), make_node("4", "16Gi", name="b"))


@pytest.mark.parametrize(
    ("spec", "nodes", "faults"),
    [
        (make_spec(trainers=8, memory="2Gi"), ONE, []),
        (
            make_spec(trainers=64),
            ONE,
            [Fault("cpu", "64 trainers together need 64 cpu, the cluster has 8", "64")],
        ),
        (
            make_spec(cpu="64"),
            ONE,
            [Fault("cpu", "a trainer needs 64 cpu, the cluster has 8", "64")],
        ),
        (
            make_spec(trainers=3, pservers=2, pscpu="3", memory="6Gi"),
            ONE,
            [
                Fault("cpu", "3 trainers + 2 pservers together need 9 cpu, the cluster has 8", "9"),
                Fault(
                    "memory",
                    "3 trainers + 2 pservers together need 18Gi memory, the cluster has 16Gi",
                    "18Gi",
                ),
            ],
        ),
        (
            make_spec(pservers=1, pscpu="9", psmemory="17Gi", gpu=2),
            ONE,
            [
                Fault("gpu", "a trainer needs 2 gpu, the cluster has 1", "2"),
                Fault("pscpu", "a pserver needs 9 cpu, the cluster has 8", "9"),
                Fault("psmemory", "a pserver needs 17Gi memory, the cluster has 16Gi", "17Gi"),
            ],
        ),
        (
            make_spec(cpu="5"),
            TWO,
            [Fault("cpu", "a trainer needs 5 cpu, the largest node has 4", "5")],
        ),
        (
            make_spec(trainers=3, cpu="2500m"),
            TWO,
            [
                Fault(
                    "parallelism",
                    "only 2 of the 3 replicas fit on the 2 nodes when they are empty "
                    "(2.5 cpu for a trainer)",
                    "3",
                )
            ],
        ),
        (make_spec(trainers=8, least=2, most=80, cpu="4"), TWO, []),
        (make_spec(cpu="1"), (), [Fault("cpu", "a trainer needs 1 cpu, the cluster has 0", "1")]),
    ],
)
def test_names_what_can_never_fit(
    spec: JobSpec, nodes: tuple[Node, ...], faults: list[Fault]
) -> None:
    assert never_fits(spec, nodes) == faults


def test_names_what_the_quota_can_never_hold() -> None:
    spec = make_spec(trainers=3, memory="1Gi", pservers=1)
    assert never_fits_quota(spec, make_quota(cpu="4", memory="3Gi", replicas=4)) == []
    assert never_fits_quota(spec, make_quota(cpu="3", replicas=3)) == [
        Fault("cpu", "3 trainers + 1 pserver together need 4 cpu, your quota is 3", "4"),
        Fault(
            "parallelism", "3 trainers + 1 pserver together need 4 replicas, your quota is 3", "4"
        ),
    ]


@given(specs(), node_sets)
def test_refuses_exactly_what_an_empty_cluster_would_not_start(
    spec: JobSpec, nodes: tuple[Node, ...]
) -> None:
    alone = Snapshot(NOW, nodes, (JobView("job", spec, 1, "alice", NOW),))
    grant = plan(alone).grants["job"]
    faults = never_fits(spec, nodes)
    assert bool(faults) == (grant.trainers == 0)
    assert grant.reason.startswith("can never start: ") == bool(faults)
