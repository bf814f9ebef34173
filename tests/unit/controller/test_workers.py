from __future__ import annotations

from paddlecloud.controller.workers import LONGEST_RETRY_S, NEWS_RETRY_S, Names


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_gives_each_name_once_and_in_order():
    names: Names[str] = Names()
    for name in ("a", "b", "a"):
        names.add(name)
    assert (names.take(), names.take()) == ("a", "b")
    names.close()
    assert names.take() is None


def test_never_gives_a_name_that_is_in_hand():
    names: Names[str] = Names()
    names.add("a")
    assert names.take() == "a"
    names.add("a")
    names.add("b")
    assert names.take() == "b"
    names.done("a")
    assert names.take() == "a"


def test_waits_longer_after_each_failure_and_forgets_them_after_a_success():
    clock = Clock()
    names: Names[str] = Names(clock)
    delays = []
    names.add("a")
    for _ in range(3):
        names.take()
        names.done("a", ok=False)
        due = names._later[0][0]
        delays.append(due - clock.now)
        clock.now = due
    assert delays == sorted(delays)
    assert delays[0] < delays[2]
    names.take()
    names.done("a")
    names.add("a")
    names.take()
    names.done("a", ok=False)
    assert round(names._later[0][0] - clock.now, 6) == round(delays[0], 6)


def test_honours_the_servers_wish_to_wait():
    clock = Clock()
    names: Names[str] = Names(clock)
    names.add("a")
    names.take()
    names.done("a", ok=False, least_s=7.0)
    assert names._later[0][0] == 7.0
    names.add("a")  # heard of in between
    assert names.waiting() == 0
    clock.now = 7.0
    assert names.take() == "a"


def test_comes_again_soon_when_there_was_news_of_it_while_it_failed():
    clock = Clock()
    names: Names[str] = Names(clock)
    names.add("a")
    for _ in range(20):
        names.take()
        names.done("a", ok=False)
        clock.now = names._later[0][0]
    names.take()
    names.add("a")
    names.done("a", ok=False)
    assert round(names._later[0][0] - clock.now, 6) <= NEWS_RETRY_S


def test_never_waits_longer_than_it_may():
    clock = Clock()
    names: Names[str] = Names(clock)
    names.add("a")
    delays = []
    for longest_s in (LONGEST_RETRY_S, 60.0):
        for _ in range(20):
            names.take()
            names.done("a", ok=False, longest_s=longest_s)
            delays.append(names._later[0][0] - clock.now)
            clock.now = names._later[0][0]
        assert round(delays[-1], 6) == longest_s


def test_keeps_the_earliest_of_several_wishes():
    clock = Clock()
    names: Names[str] = Names(clock)
    names.add_after("a", 9.0)
    names.add_after("a", 2.0)
    names.add_after("a", 5.0)
    clock.now = 2.0
    assert names.take() == "a"
    assert names.waiting() == 1
