"""Turns and shares: nobody can have all the threads, or all the room."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from paddlecloud.core.errors import RateLimited
from paddlecloud.server.pools import Pool, Shares
from tests.patience import PATIENCE_S


class Asked:
    """Tasks in a pool, and the order in which they began."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.began: list[str] = []
        self._ended = threading.Semaphore(0)

    def ask(self, name: str, turn: str, wait: Callable[[], Any] = lambda: None) -> None:
        def call() -> None:
            self.began.append(name)
            wait()

        self.pool.submit(call, (), lambda result, error: self._ended.release(), turn)

    def wait_for(self, count: int) -> None:
        for _ in range(count):
            assert self._ended.acquire(timeout=PATIENCE_S)


def test_callers_take_turns() -> None:
    asked = Asked(Pool("test", 1))
    go = threading.Event()
    asked.ask("first", "alice", go.wait)
    for number in range(5):
        asked.ask(f"alice{number}", "alice")
    asked.ask("bob", "bob")
    go.set()
    asked.wait_for(7)
    assert asked.began.index("bob") <= 2


def test_one_caller_never_has_more_than_its_share() -> None:
    asked = Asked(Pool("test", 3, most_each=2))
    go, served = threading.Event(), threading.Event()
    for number in range(10):
        asked.ask(f"alice{number}", "alice", go.wait)
    asked.ask("bob", "bob", served.set)
    assert served.wait(PATIENCE_S)
    asked.wait_for(1)
    assert [name for name in asked.began if name != "bob"] == ["alice0", "alice1"]
    go.set()
    asked.wait_for(10)
    assert len(asked.began) == 11


def test_what_is_set_aside_is_never_lost() -> None:
    asked = Asked(Pool("test", 4, most_each=1))
    for round_ in range(300):
        for turn in ("a", "b", "c"):
            asked.ask(f"{turn}{round_}", turn)
    asked.wait_for(900)
    assert len(set(asked.began)) == 900


def test_a_caller_may_have_so_many_requests_and_others_theirs() -> None:
    shares = Shares(2, 100)
    with shares.request("alice"), shares.request("alice"):
        with pytest.raises(RateLimited), shares.request("alice"):
            pass
        with shares.request("bob"):
            pass
    with shares.request("alice"):
        pass


def test_the_bodies_of_a_caller_are_bounded_together() -> None:
    shares = Shares(2, 100)
    shares.take_body("alice", 80)
    with pytest.raises(RateLimited):
        shares.take_body("alice", 30)
    shares.take_body("bob", 100)
    shares.give_body_back("alice", 80)
    shares.take_body("alice", 100)
