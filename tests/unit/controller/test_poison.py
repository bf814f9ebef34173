"""Whatever stands in an object, planning says something about it and never raises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from paddlecloud.controller.peers import Site
from paddlecloud.controller.planning import plan
from paddlecloud.controller.plans import Children, Create
from paddlecloud.kube.kinds import PADDLE_JOB, TRAINING_JOB, Kind
from tests.kube.poison import poisoned, whole_paddlejob, whole_status, whole_trainingjob

NOW = 1_800_000_000.0
METADATA = {
    "name": "job",
    "namespace": "ns",
    "uid": "u-1",
    "generation": 1,
    "creationTimestamp": "2026-11-16T18:00:00Z",
}
WHOLE = {PADDLE_JOB: whole_paddlejob(), TRAINING_JOB: whole_trainingjob()}
KINDS = pytest.mark.parametrize("kind", WHOLE, ids=lambda kind: kind.name)


def objects(whole: dict[str, Any], root: str = "spec") -> Iterator[tuple[str, dict[str, Any]]]:
    for what, body in poisoned(whole, root):
        yield what, body | {"metadata": dict(METADATA)}


@KINDS
def test_the_whole_example_itself_is_good(kind: Kind):
    decided = plan(WHOLE[kind] | {"metadata": METADATA}, Children(), Site(), NOW, kind)
    valid = next(one for one in decided.status["conditions"] if one["type"] == "Valid")
    assert valid["status"] == "True", valid["message"]
    assert sum(isinstance(one, Create) and one.plural == "pods" for one in decided.actions) == 3


@KINDS
def test_every_poison_becomes_a_condition(kind: Kind):
    count = 0
    for what, body in objects(WHOLE[kind]):
        try:
            decided = plan(body, Children(), Site(), NOW, kind)
        except Exception as error:
            pytest.fail(f"{what}: {type(error).__name__}: {error}")
        kinds = {one["type"] for one in decided.status["conditions"]}
        assert "Valid" in kinds, what
        assert len(decided.actions) < 10_000, what
        count += 1
    assert count > 1_500


def test_a_status_that_others_wrote_is_read_as_far_as_it_makes_sense():
    whole = whole_paddlejob() | {"status": whole_status()}
    for what, body in objects(whole, "status"):
        try:
            decided = plan(body, Children(), Site(), NOW)
        except Exception as error:
            pytest.fail(f"{what}: {type(error).__name__}: {error}")
        assert decided.status is not None, what
    decided = plan(whole | {"metadata": METADATA}, Children(), Site(), NOW)
    assert decided.status["failures"] == whole["status"]["failures"]  # what makes sense is kept
