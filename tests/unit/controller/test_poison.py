"""Whatever stands in an object, planning says something about it and never raises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from paddlecloud.controller.peers import Site
from paddlecloud.controller.planning import plan
from paddlecloud.controller.plans import Children, Create
from tests.kube.poison import poisoned, whole_paddlejob

NOW = 1_800_000_000.0


def objects() -> Iterator[tuple[str, dict[str, Any]]]:
    for what, body in poisoned(whole_paddlejob()):
        body["metadata"] |= {
            "namespace": "ns",
            "uid": "u-1",
            "generation": 1,
            "creationTimestamp": "2026-11-16T18:00:00Z",
        }
        yield what, body


def test_the_whole_example_itself_is_good():
    body = next(objects())[1] | {"spec": whole_paddlejob()["spec"]}
    decided = plan(body, Children(), Site(), NOW)
    valid = next(one for one in decided.status["conditions"] if one["type"] == "Valid")
    assert valid["status"] == "True"
    assert sum(isinstance(one, Create) and one.plural == "pods" for one in decided.actions) == 3


def test_every_poison_becomes_a_condition():
    count = 0
    for what, body in objects():
        try:
            decided = plan(body, Children(), Site(), NOW)
        except Exception as error:
            pytest.fail(f"{what}: {type(error).__name__}: {error}")
        kinds = {one["type"] for one in decided.status["conditions"]}
        assert "Valid" in kinds, what
        assert len(decided.actions) < 10_000, what
        count += 1
    assert count > 1_500
