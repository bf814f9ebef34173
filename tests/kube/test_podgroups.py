"""Volcano's pod groups on a real API server that knows their kind. No Volcano places the pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests import possible
from tests.kube.running import Cluster, Namespace, until
from tests.kube.test_jobs import paddle_job, role

pytestmark = [pytest.mark.e2e, pytest.mark.needs("kube")]

GROUP = "podgroups.scheduling.volcano.sh"


@pytest.fixture(scope="module")
def kind(cluster: Cluster) -> Iterator[None]:
    file = next((possible.cluster_programs() / "volcano").glob("*podgroups*.yaml"))
    cluster.kubectl("create", "-f", str(file))
    cluster.kubectl("wait", "--for=condition=Established", f"crd/{GROUP}", "--timeout=180s")
    yield
    cluster.kubectl("delete", "-f", str(file), "--timeout=180s")


@pytest.fixture
def team(kind: None, namespace: Namespace, operator: Any) -> Namespace:
    return namespace


def workers(count: int) -> dict[str, Any]:
    made = role(count)
    spec = made["template"]["spec"]
    spec["schedulerName"] = "volcano"
    spec["containers"][0]["resources"] = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    return made


def groups(team: Namespace) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in team.get(GROUP)["items"]}


def kill(team: Namespace, job: str) -> None:
    team.kubectl("annotate", f"pdj/{job}", "paddlepaddle.org/cancel=enough")
    team.until_phase("Terminated", job)


def test_makes_one_for_the_job_and_takes_it_away(team):
    policy = {"queue": "night", "priorityClass": ""}
    team.apply(paddle_job(worker=workers(2), ps=role(1), schedulingPolicy=policy))
    until(lambda: len(team.pods()) == 3, "the pods")
    made = groups(team)["job"]
    owner = made["metadata"]["ownerReferences"][0]  # so it goes with the object too
    assert (owner["kind"], owner["name"], owner["controller"]) == ("PaddleJob", "job", True)
    assert made["spec"]["minMember"] == 3
    assert made["spec"]["queue"] == "night"
    assert made["spec"]["minResources"] == {"cpu": "1", "memory": "2Gi"}
    for pod in team.pods().values():
        assert pod["spec"]["schedulerName"] == "volcano"
        assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "job"
    team.kubectl("scale", "pdj/job", "--replicas=4")
    until(lambda: groups(team)["job"]["spec"]["minMember"] == 5, "the larger group")
    kill(team, "job")
    until(lambda: not groups(team), "no group")


def test_leaves_one_alone_that_was_made_by_hand(team):
    by_hand = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "job"},
        "spec": {"minMember": 1},
    }
    team.kubectl("create", "-f", "-", text=json.dumps(by_hand))
    before = groups(team)["job"]
    team.apply(paddle_job(worker=workers(2)))
    until(lambda: len(team.pods()) == 2, "the pods")
    kill(team, "job")
    assert groups(team)["job"] == before
