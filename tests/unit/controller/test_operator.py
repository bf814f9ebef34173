"""The operator's loop with an API server that is not there: only what it decides by itself."""

from __future__ import annotations

from typing import Any, cast

import pytest

from paddlecloud.controller import operator as operating
from paddlecloud.controller.families import JobKey
from paddlecloud.controller.operator import Operator, Settings
from paddlecloud.controller.plans import Delete, Plan
from paddlecloud.controller.restless import PATIENCE, Restless
from paddlecloud.kube.client import Client
from paddlecloud.kube.kinds import PADDLE_JOB, TRAINING_JOB
from paddlecloud.kube.words import JOB_LABEL, KIND_LABEL


class NoServer:
    """Says yes to everything."""

    calls = 0

    def get(self, path: str, **query: str) -> dict[str, Any]:
        return {}

    def delete(self, path: str, **more: Any) -> dict[str, Any]:
        self.calls += 1
        return {}


def an_operator() -> tuple[Operator, NoServer]:
    server = NoServer()
    return Operator(cast(Client, server), Settings(plans=False)), server


def test_slows_a_job_down_whose_plan_never_comes_to_rest(monkeypatch: pytest.MonkeyPatch):
    operator, server = an_operator()
    body = {"metadata": {"namespace": "ns", "name": "job", "uid": "u", "resourceVersion": "1"}}
    operator._informers[PADDLE_JOB.plural].learn(body)
    for_ever = Plan((Delete("pods", "job-worker-0", "p"),))
    monkeypatch.setattr(operating, "plan", lambda *given: for_ever)
    key = JobKey(PADDLE_JOB, "ns", "job")
    for _ in range(PATIENCE):
        operator.reconcile(key)
    with pytest.raises(Restless, match="does not come to rest"):
        operator.reconcile(key)
    assert server.calls == PATIENCE + 1


def test_files_what_it_hears_of_under_the_right_kind_of_job():
    operator, _ = an_operator()
    keys = []
    for kind, pod in ((PADDLE_JOB, "job-worker-0"), (TRAINING_JOB, "job-trainer-0")):
        labels = {JOB_LABEL: "job", KIND_LABEL: kind.name}
        body = {"metadata": {"namespace": "ns", "name": pod, "uid": pod, "labels": labels}}
        operator._informers["pods"].learn(body)
        operator._child_changed("pods", body)
        keys.append(operator.names.take())
    assert keys == [JobKey(PADDLE_JOB, "ns", "job"), JobKey(TRAINING_JOB, "ns", "job")]
