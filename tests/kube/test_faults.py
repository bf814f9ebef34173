"""Jobs live as asked although calls of the operator go wrong: each kind of fault, and all."""

from __future__ import annotations

import pytest

from tests.kube.fault_lanes import run_lanes
from tests.kube.fault_proxy import Answer, Late, LostAnswer, Reset, Rule, Silence

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.needs("kube")]

SHARE = 0.3
KINDS = {
    "too-many": Answer(429, retry_after_s=1),
    "error": Answer(500),
    "unavailable": Answer(503),
    "silence": Silence(),
    "reset": Reset(),
    "lost-answer": LostAnswer(),
    "late": Late(0.7),
}


def test_everything_is_as_asked_after_each_kind_of_fault_and_all_of_them(cluster, tmp_path):
    lanes = {name: [Rule(fault, SHARE)] for name, fault in KINDS.items()}
    # Each is asked when the ones before it did not hit: together they are the share.
    lanes["mixed"] = [Rule(fault, SHARE / len(KINDS)) for fault in KINDS.values()]
    run_lanes(cluster, tmp_path, lanes)
