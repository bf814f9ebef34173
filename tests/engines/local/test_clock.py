"""Setting the machine's clock ends no job and lets none run on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud import clock
from paddlecloud.core.phases import Phase
from tests.engine_bench import Bench, on_this_machine

DAY_S = 86400.0


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with on_this_machine("plain", tmp_path) as made:
        yield made


@pytest.mark.parametrize("by_s", [DAY_S, -DAY_S], ids=["forward", "back"])
@pytest.mark.parametrize("is_restarted", [False, True], ids=["running", "restarted"])
def test_a_step_of_a_day_changes_nothing_of_a_limit(
    bench: Bench, monkeypatch, by_s: float, is_restarted: bool
):
    job = bench.put("sleep 1000", wall_time_s=3600)
    bench.until(job, Phase.RUNNING)
    real = clock.now
    monkeypatch.setattr(clock, "now", lambda: real() + by_s)
    if is_restarted:
        bench.restart()
    (view,) = bench.live()
    assert view.remaining_s is not None
    assert 1800 < view.remaining_s <= 3600
    # A later one is measured by the same clock.
    short = bench.put("sleep 1000", wall_time_s=1)
    assert bench.end(short).status.phase == Phase.TIMED_OUT
    # Were its time up, that would be what is said of its end.
    bench.engine.cancel(job.job_id, job.run, "enough")
    assert bench.end(job).status.phase == Phase.KILLED
