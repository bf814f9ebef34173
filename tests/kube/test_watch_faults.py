"""Jobs live as asked although the watches of the operator go wrong, each in its own way."""

from __future__ import annotations

import pytest

from paddlecloud.kube.informers import SILENCE_S
from tests.kube.fault_lanes import CONVERGED_S, FAULTY_S, run_lanes
from tests.kube.fault_proxy import (
    Answer,
    CutLine,
    Empty,
    GoneInside,
    Rule,
    Shuffle,
    Stall,
    watches_of,
)

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.needs("kube")]


def test_everything_is_as_asked_after_each_kind_of_fault(cluster, tmp_path):
    lanes = {
        "gone": [Rule(Answer(410), 0.5, watches_of()), Rule(CutLine(3), 1.0, watches_of())],
        "gone-inside": [Rule(GoneInside(2), 1.0, watches_of())],
        "empty": [Rule(Empty(), 1.0, watches_of())],
        "cut": [Rule(CutLine(2), 1.0, watches_of())],
        "shuffled": [Rule(Shuffle(), 1.0, watches_of())],
        "stalled": [Rule(Stall(1), 1.0, watches_of())],
    }
    # A stall that is there when the faults end is noticed by its silence.
    silent_s = SILENCE_S - FAULTY_S + CONVERGED_S
    run_lanes(cluster, tmp_path, lanes, within_s={"stalled": silent_s})
