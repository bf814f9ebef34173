"""A job that its user makes larger: at once where nobody waits, else by the plan."""

from __future__ import annotations

from tests.unit.controller.test_admission import World


def size(world: World, name: str) -> int:
    return world.reconcile(name).workers


def test_grows_at_once_where_there_is_room_and_nobody_waits():
    world = World(cpu=16)
    world.submit("a", 2)
    world.reconcile("a")
    turns = world.admission.turns
    world.change("a", workers=3)
    assert size(world, "a") == 3
    assert world.admission.turns == turns


def test_waits_its_turn_where_somebody_waits():
    world = World(cpu=16)
    world.submit("a", 2)
    world.reconcile("a")
    world.submit("large", 15)
    world.reconcile("large")
    world.change("a", workers=3)
    assert size(world, "a") == 2


def test_waits_where_there_is_no_room():
    world = World(cpu=4)
    world.submit("a", 3)
    world.reconcile("a")
    world.change("a", workers=9)
    assert size(world, "a") == 3
