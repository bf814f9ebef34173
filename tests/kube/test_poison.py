"""Objects with one malformed field each, all at once: none stops the operator or the others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from paddlecloud.kube.client import collection
from paddlecloud.kube.kinds import PADDLE_JOB, TRAINING_JOB, Kind
from paddlecloud.kube.refusals import Refused
from tests.kube.poison import poisoned, whole_paddlejob, whole_trainingjob
from tests.kube.running import until
from tests.kube.test_jobs import paddle_job, role

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.needs("kube")]

WHOLE = {PADDLE_JOB: whole_paddlejob(), TRAINING_JOB: whole_trainingjob()}
EVERY = 23  # of about two thousand; no divisor of the number of poisons, so every kind comes


def _chosen() -> Iterator[tuple[Kind, str, dict[str, Any]]]:
    for kind, whole in WHOLE.items():
        for number, (what, body) in enumerate(itertools.islice(poisoned(whole), 0, None, EVERY)):
            note = {"what": what.replace("\x00", "")}
            yield kind, what, body | {"metadata": {"name": f"poison-{number}", "annotations": note}}


def test_every_object_gets_a_condition_and_others_run(cluster, namespace, operator):
    client = cluster.client()

    def path(kind: Kind) -> str:
        return collection(kind.api_version, kind.plural, namespace.name)

    def is_accepted(kind: Kind, what: str, body: dict[str, Any]) -> bool:
        try:
            client.create(path(kind), body)
        except Refused as error:
            if not error.is_final:
                raise
            return False
        finally:
            client.forget_connection()
        return True

    with ThreadPoolExecutor(4) as pool:
        accepted = sum(pool.map(lambda one: is_accepted(*one), _chosen()))
    assert accepted > 80
    namespace.apply(paddle_job("good", worker=role(2)))
    namespace.until_phase("Running", "good")

    def without_a_word() -> list[str]:
        return [
            body["metadata"]["annotations"]["what"]
            for kind in WHOLE
            for body in client.get(path(kind))["items"]
            if body["metadata"]["name"] != "good"
            and not (body.get("status") or {}).get("conditions")
        ]

    until(lambda: not without_a_word(), "a condition on every object")
    assert operator.process.poll() is None
    assert namespace.status("good")["phase"] == "Running"
