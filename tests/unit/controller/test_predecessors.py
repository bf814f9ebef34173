"""What an earlier job of the same name left behind."""

from __future__ import annotations

import pytest

from paddlecloud.controller.plans import Delete
from paddlecloud.controller.remembering import written_time
from tests.unit.controller.pretended import START, Namespace, role, running


def _successor(*, pods_made_at: float = START - 10) -> Namespace:
    """A job that finds everything of another of its name."""
    old = running(ps=role(1), worker=role(2), intranet="Service")
    new = Namespace(uid="u-2", ps=role(1), worker=role(2), intranet="Service")
    new.stored = dict(old.stored)
    for body in new.stored.values():
        body["metadata"]["creationTimestamp"] = written_time(pods_made_at)
        body["metadata"].setdefault("uid", "some")
    return new


def _deleted(world: Namespace) -> set[tuple[str, str]]:
    return {(one.plural, one.name) for one in world.look().actions if isinstance(one, Delete)}


def test_clears_away_all_that_is_older_than_the_job():
    world = _successor()
    assert _deleted(world) == set(world.stored)
    assert {plural for plural, _ in world.stored} == {"pods", "services", "configmaps"}


def test_leaves_alone_what_may_be_of_a_younger_job_than_the_one_it_looks_at():
    assert _deleted(_successor(pods_made_at=START)) == set()
    assert _deleted(_successor(pods_made_at=START + 1)) == set()


@pytest.mark.parametrize(
    "owner",
    [
        {"name": "another"},
        {"kind": "TrainingJob"},
        {"apiVersion": "apps/v1"},
        {"controller": False},
        {"uid": "u-2"},
    ],
)
def test_leaves_alone_what_somebody_else_owns(owner):
    world = _successor()
    for body in world.stored.values():
        body["metadata"]["ownerReferences"][0].update(owner)
    assert _deleted(world) == set()


def test_leaves_alone_what_nobody_owns_or_what_is_going():
    world = _successor()
    for body in world.stored.values():
        body["metadata"]["deletionTimestamp"] = written_time(START)
    assert _deleted(world) == set()
    world = _successor()
    for body in world.stored.values():
        del body["metadata"]["ownerReferences"]
    assert _deleted(world) == set()
