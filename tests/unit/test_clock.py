"""A clock that goes on whatever is done to the machine's."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud import clock
from paddlecloud.clock import SteadyClock

DAY_S = 86400.0


def made(path: Path, *, boot: str = "this boot", is_needed: bool = True) -> SteadyClock:
    return SteadyClock(path, boot, is_needed=lambda: is_needed)


@pytest.fixture
def step(monkeypatch: pytest.MonkeyPatch):
    """Sets the wall clock by so many seconds."""
    real = clock.now

    def do(by_s: float) -> None:
        monkeypatch.setattr(clock, "now", lambda: real() + by_s)

    return do


@pytest.mark.parametrize("by_s", [DAY_S, -DAY_S])
def test_a_set_wall_clock_moves_it_neither_now_nor_after_a_restart(tmp_path, step, by_s: float):
    path = tmp_path / "clock.json"
    first = made(path)
    before = first.now()
    step(by_s)
    assert abs(first.now() - before) < DAY_S / 2
    assert abs(made(path).now() - before) < DAY_S / 2
    assert abs(first.from_wall(clock.now()) - first.now()) < DAY_S / 2


def test_it_is_set_right_when_nothing_is_measured_by_it(tmp_path, step):
    path = tmp_path / "clock.json"
    made(path)
    step(DAY_S)
    assert abs(made(path, is_needed=False).now() - clock.now()) < 60
    assert abs(made(path).now() - clock.now()) < 60  # which is kept


@pytest.mark.parametrize("left", ["", "{", "[]", '{"boot_id": "this boot"}'])
def test_another_boot_or_half_a_file_counts_as_none(tmp_path, step, left: str):
    path = tmp_path / "clock.json"
    made(path, boot="another")
    if left:
        path.write_text(left)
    step(DAY_S)
    assert abs(made(path).now() - clock.now()) < 60
