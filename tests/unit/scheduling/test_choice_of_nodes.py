"""Jobs that may run on some nodes only: their room is counted there and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paddlecloud.core.jobspec import Role
from paddlecloud.scheduling.plan import plan
from paddlecloud.scheduling.snapshot import JobView, Snapshot
from paddlecloud.scheduling.verdicts import Cause
from paddlecloud.testing.builders import NOW, make_job, make_node

NODES = (make_node("8", name="a"), make_node("8", name="b"), make_node("8", name="c"))


def on(job: JobView, *nodes: str) -> JobView:
    return replace(job, where={Role.TRAINER: frozenset(nodes)})


def test_places_it_there():
    decided = plan(Snapshot(NOW, NODES, (on(make_job("one", trainers=2, cpu="4"), "b", "c"),)))
    assert [(part.node, part.count) for part in decided.placements["one"]] == [("b", 2)]


def test_lets_it_wait_although_others_are_empty():
    """Its nodes are full; what is free elsewhere is no use to it, and is not kept for it."""
    holder = on(make_job("holder", trainers=2, cpu="4", age_s=9.0), "b")
    running = replace(
        holder, granted=2, placed=plan(Snapshot(NOW, NODES, (holder,))).placements["holder"]
    )
    waiting = on(make_job("waits", trainers=1, cpu="4", age_s=5.0), "b")
    other = make_job("other", trainers=2, cpu="8")
    decided = plan(Snapshot(NOW, NODES, (running, waiting, other)))
    assert decided.waits["waits"].cause == Cause.NO_ROOM
    assert decided.grants["other"].trainers == 2


@pytest.mark.parametrize("nodes", [(), ("a",)])
def test_says_that_its_nodes_are_too_few(nodes):
    decided = plan(Snapshot(NOW, NODES, (on(make_job("big", trainers=3, cpu="4"), *nodes),)))
    assert decided.waits["big"].cause == Cause.TOO_BIG
    assert decided.grants["big"].reason == (
        "can never start: the nodes it may run on could not hold all its replicas"
    )
