"""Whatever stands in an object, planning says something about it and never raises."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from paddlecloud.controller import operator as operator_module
from paddlecloud.controller.peers import Site
from paddlecloud.controller.planning import plan
from paddlecloud.controller.plans import Children, Create
from paddlecloud.kube.kinds import PADDLE_JOB, TRAINING_JOB, Kind
from tests.kube.poison import poisoned, whole_paddlejob, whole_status, whole_trainingjob

NOW = 1_800_000_000.0
EVERY = 5  # every field has several, and every poison comes: no divisor of their number
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
    for what, body in itertools.islice(poisoned(whole, root), 0, None, EVERY):
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
    assert count > 300


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


class Writes:
    """A client that remembers what was written."""

    def __init__(self) -> None:
        self.patches: list[dict[str, Any]] = []

    def get(self, path: str, **query: str) -> dict[str, Any]:
        return {}

    def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.patches.append(body)
        metadata = METADATA | {"resourceVersion": "9"}
        return {"metadata": metadata, "spec": {}, "status": body["status"]}

    def forget_connection(self) -> None:
        pass


def test_what_nobody_thought_of_is_said_on_the_object(monkeypatch):
    def puzzled(*given: object) -> None:
        operator.names.close()
        raise LookupError("nobody thought of this")

    client = Writes()
    operator = operator_module.Operator(client, operator_module.Settings(plans=False))
    body = whole_paddlejob() | {"metadata": METADATA | {"resourceVersion": "8"}}
    operator._informers["paddlejobs"].learn(body)
    monkeypatch.setattr(operator_module, "plan", puzzled)
    operator.names.add(operator_module.job_key(PADDLE_JOB, body))
    operator._work()
    valid = client.patches[0]["status"]["conditions"][0]
    assert (valid["type"], valid["status"]) == ("Valid", "False")
    assert "LookupError: nobody thought of this" in valid["message"]
