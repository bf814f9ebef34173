"""The queue of names: each once, delayed ones when due."""

from __future__ import annotations

import threading

from paddlecloud.engines.workqueue import WorkQueue
from tests.patience import PATIENCE_S


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_gives_each_name_once_in_order():
    queue = WorkQueue()
    for name in ("b", "a", "b"):
        queue.add(name)
    assert queue.take() == ["b", "a"]


def test_gives_a_delayed_name_when_it_is_due_and_only_once():
    clock = Clock()
    queue = WorkQueue(clock)
    queue.add_after("late", 5)
    queue.add_after("late", 9)
    queue.add("now")
    assert queue.take() == ["now"]
    clock.now = 5
    assert queue.take() == ["late"]
    clock.now = 10
    queue.add("again")
    assert queue.take() == ["again"]


def test_the_earlier_of_two_wishes_counts():
    clock = Clock()
    queue = WorkQueue(clock)
    queue.add_after("x", 9)
    queue.add_after("x", 3)
    clock.now = 3
    assert queue.take() == ["x"]


def test_wakes_a_waiting_taker():
    queue = WorkQueue()
    got: list[str] = []
    taker = threading.Thread(target=lambda: got.extend(queue.take()))
    taker.start()
    queue.add("x")
    taker.join(PATIENCE_S)
    assert got == ["x"]


def test_gives_nothing_after_close():
    queue = WorkQueue()
    queue.close()
    assert queue.take() == []
