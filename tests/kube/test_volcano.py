"""Gangs placed by Volcano's own scheduler: whole or not at all."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kube import running
from tests.kube.running import EXAMPLES, Cluster, Namespace, until
from tests.kube.test_jobs import paddle_job, role

pytestmark = [pytest.mark.e2e, pytest.mark.needs("kube")]

JOB = "wide-ande-deep"
GROUP = "podgroups.scheduling.volcano.sh"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def volcano(bare_cluster: Cluster) -> Iterator[Cluster]:
    running.add_to(bare_cluster, "--volcano")
    running.install_definitions(bare_cluster)
    yield bare_cluster
    bare_cluster.kubectl("delete", "crd", "--all", "--timeout=180s")


@pytest.fixture
def team(volcano: Cluster, tmp_path: Path) -> Iterator[Namespace]:
    """A namespace with an operator, where Volcano is."""
    namespace = Namespace(volcano, f"gang-{next(_numbers)}")
    # Who fits is Volcano's to say here; our own planner would not even make the pods.
    words = ("--namespace", namespace.name, "--no-planner")
    with running.operator(volcano, tmp_path / "operator.log", *words) as operator:
        yield namespace
    assert [row for row in operator.lines if row["level"] == "error"] == []
    namespace.remove()


def _placed(namespace: Namespace) -> set[str]:
    pods = namespace.pods().values()
    return {pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")}


def _gang(name: str, size: int, cpu: str) -> dict[str, Any]:
    """`size` workers that name Volcano, each with so much CPU."""
    body = role(size)
    spec = body["template"]["spec"]
    spec["schedulerName"] = "volcano"
    spec["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return paddle_job(name, worker=body)


def _pod_group(name: str, least: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": least},
    }


def test_places_the_published_example_whole(team):
    team.apply(EXAMPLES / "wide_and_deep_volcano.yaml")
    team.until_phase("Running", JOB)
    assert len(_placed(team)) == 4
    scheduled = [
        event
        for event in team.get("events")["items"]
        if event["reason"] == "Scheduled" and event["involvedObject"]["kind"] == "Pod"
    ]
    assert {event["source"].get("component") for event in scheduled} == {"volcano"}
    assert len(scheduled) == 4
    until(
        lambda: team.get(f"{GROUP}/{JOB}").get("status", {}).get("phase") == "Running",
        "the group to run",
    )


@pytest.mark.parametrize("is_made_by_hand", [True, False], ids=["their-group", "our-group"])
def test_places_no_pod_of_a_gang_that_does_not_fit_whole(team, is_made_by_hand):
    # Nodes of 32, one too few: all but one would fit.
    nodes = len(team.get("nodes")["items"])
    if is_made_by_hand:
        team.apply(_pod_group("job", nodes + 1))
    team.apply(_gang("job", nodes + 1, "20"))
    until(lambda: _is_refused(team), "Volcano to say that the gang does not fit")
    assert len(team.pods()) == nodes + 1
    assert _placed(team) == set()
    running.add_to(team.cluster, "--nodes", str(nodes + 1))
    team.until_phase("Running")
    assert len(_placed(team)) == nodes + 1
    group = team.get(f"{GROUP}/job")
    assert group["spec"]["minMember"] == nodes + 1
    assert bool(group["metadata"].get("ownerReferences")) != is_made_by_hand
    team.finish()
    team.until_phase("Completed")
    if is_made_by_hand:
        assert team.get(f"{GROUP}/job")["metadata"]["uid"] == group["metadata"]["uid"]
    else:
        team.kubectl("wait", "--for=delete", f"{GROUP}/job", "--timeout=180s")


def _is_refused(namespace: Namespace) -> bool:
    groups = namespace.get(GROUP)["items"]
    conditions = [one for group in groups for one in group.get("status", {}).get("conditions", ())]
    return any(one["type"] == "Unschedulable" and one["status"] == "True" for one in conditions)
