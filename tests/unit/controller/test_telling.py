"""How often a job's status is written while its pods come up."""

from __future__ import annotations

import copy

import pytest

from paddlecloud.controller.statuses import may_wait
from paddlecloud.kube.kinds import PADDLE_JOB, TRAINING_JOB

OLD = {
    "phase": "Starting",
    "reason": "starting trainer-1",
    "ready": "1/2",
    "replicas": 2,
    "worker": {"running": 1, "pending": 1},
    "observedGeneration": 1,
    "restarts": 0,
    "allocation": {"workers": 2, "revision": 1},
    "conditions": [
        {"type": "Valid", "status": "True"},
        {"type": "Running", "status": "False", "message": "starting trainer-1"},
    ],
}


@pytest.mark.parametrize(
    ("change", "waits"),
    [
        ({"ready": "0/2", "worker": {"pending": 2}, "phase": "Pending"}, True),
        ({"reason": "cannot be placed"}, True),
        ({"phase": "Running", "ready": "2/2"}, False),
        ({"phase": "Failed"}, False),
        ({"failures": [{"role": "worker", "index": 0, "attempt": 1}]}, False),
        ({"restarts": 1}, False),
        ({"observedGeneration": 2}, False),
        ({"allocation": {"workers": 1, "revision": 2}}, False),
        ({"conditions": [{"type": "Valid", "status": "False"}]}, False),
    ],
)
def test_only_counting_waits(change, waits):
    assert may_wait(PADDLE_JOB, OLD, copy.deepcopy(OLD) | change) is waits


def test_the_first_word_never_waits():
    assert not may_wait(PADDLE_JOB, {}, OLD)


def test_counting_of_a_training_job_waits_too():
    old = {"phase": "creating", "replica_statuses": [{"state": "running"}], "conditions": []}
    assert may_wait(TRAINING_JOB, old, old | {"replica_statuses": []})
