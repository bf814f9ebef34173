"""Objects with one malformed field each, all at once: none stops the operator or the others."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from paddlecloud.kube.client import collection
from paddlecloud.kube.refusals import Refused
from tests.kube.poison import poisoned, whole_paddlejob
from tests.kube.running import until
from tests.kube.test_jobs import paddle_job, role

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.needs("kube")]

JOBS = ("batch.paddlepaddle.org/v1", "paddlejobs")
EVERY = 11  # of about two thousand; no divisor of the number of poisons, so every kind comes


def test_every_object_gets_a_condition_and_others_run(cluster, namespace, operator):
    client = cluster.client()
    path = collection(*JOBS, namespace.name)

    def create(numbered: tuple[int, tuple[str, dict[str, Any]]]) -> str:
        number, (what, body) = numbered
        body["metadata"] = {
            "name": f"poison-{number}",
            "annotations": {"what": what.replace("\x00", "")},
        }
        try:
            client.create(path, body)
        except Refused as error:
            if not error.is_final:
                raise
            return ""
        finally:
            client.forget_connection()
        return what

    chosen = itertools.islice(poisoned(whole_paddlejob()), 0, None, EVERY)
    with ThreadPoolExecutor(4) as pool:
        accepted = [what for what in pool.map(create, enumerate(chosen)) if what]
    assert len(accepted) > 80
    namespace.apply(paddle_job("good", worker=role(2)))
    namespace.until_phase("Running", "good")

    def without_a_word() -> list[str]:
        return [
            body["metadata"]["annotations"]["what"]
            for body in client.get(path)["items"]
            if body["metadata"]["name"] != "good"
            and not (body.get("status") or {}).get("conditions")
        ]

    until(lambda: not without_a_word(), "a condition on every object")
    assert operator.process.poll() is None
    assert namespace.status("good")["phase"] == "Running"
