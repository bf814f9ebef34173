"""Volcano's pod groups: made, followed, left alone and removed."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.controller.allotments import Allotted
from paddlecloud.controller.peers import Site
from paddlecloud.controller.podgroups import names_volcano
from paddlecloud.engines.kubernetes.allocations import Allocation
from tests.unit.controller.pretended import Namespace, role, template


def pods_of(replicas: int, cpu: str = "1", **more: Any) -> dict[str, Any]:
    made = role(replicas)
    made["template"] = template(schedulerName="volcano", **more)
    limits = {"memory": "1Gi", "nvidia.com/gpu": 1}
    resources = {"requests": {"cpu": cpu}, "limits": limits}
    made["template"]["spec"]["containers"][0]["resources"] = resources
    return made


def world(**spec: Any) -> Namespace:
    made = Namespace(Site(has_volcano=True), **{"worker": pods_of(3), **spec})
    made.settle()
    return made


def group_of(made: Namespace) -> dict[str, Any]:
    return made.stored["podgroups", "job"]


def test_asks_for_all_replicas_at_once():
    made = world(ps=role(2), schedulingPolicy={"queue": "q", "priorityClass": "high"})
    assert group_of(made)["spec"] == {
        "minMember": 5,
        "queue": "q",
        "priorityClassName": "high",
        "minResources": {"cpu": "3", "memory": "3Gi", "nvidia.com/gpu": "3"},
    }
    owner = group_of(made)["metadata"]["ownerReferences"][0]
    assert (owner["uid"], owner["controller"]) == ("u-1", True)
    for pod in made.pods().values():
        assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "job"


def test_is_there_before_the_first_pod():
    made = Namespace(Site(has_volcano=True), worker=pods_of(2))
    kinds = [action.plural for action in made.look().actions]  # type: ignore[union-attr]
    assert kinds[0] == "podgroups"


def test_asks_for_as_few_as_the_policy_says():
    made = world(ps=role(2), schedulingPolicy={"minAvailable": 4})
    spec = group_of(made)["spec"]
    assert spec["minMember"] == 4
    assert spec["minResources"]["cpu"] == "2"  # two servers, which ask for nothing, and two workers


@pytest.mark.parametrize("asked", [9, 0])
def test_never_asks_for_more_than_there_are(asked):
    assert group_of(world(schedulingPolicy={"minAvailable": asked}))["spec"]["minMember"] == 3


def test_says_what_the_policy_says_it_needs():
    made = world(schedulingPolicy={"minResources": {"cpu": 9}})
    assert group_of(made)["spec"]["minResources"] == {"cpu": "9"}


def test_follows_the_size_of_the_job():
    made = world()
    group_of(made)["spec"]["queue"] = "default"  # as Volcano fills it in
    made.body["spec"]["worker"]["replicas"] = 4
    made.settle()
    assert group_of(made)["spec"]["minMember"] == 4
    assert group_of(made)["spec"]["queue"] == "default"
    assert not made.step()


def test_leaves_a_group_alone_that_was_made_by_hand():
    made = Namespace(Site(has_volcano=True), worker=pods_of(3))
    by_hand = {"metadata": {"name": "job", "uid": "hand"}, "spec": {"minMember": 1}}
    made.stored["podgroups", "job"] = dict(by_hand)
    made.settle()
    made.run()
    made.settle()
    for name in made.pods():
        made.end(name, 0)
    made.settle()
    assert made.status["phase"] == "Completed"
    assert group_of(made) == by_hand


def test_is_removed_at_the_end():
    made = world(cleanPodPolicy="Never")
    made.run()
    made.settle()
    for name in made.pods():
        made.end(name, 0)
    made.settle()
    assert made.status["phase"] == "Completed"
    assert ("podgroups", "job") not in made.stored


def test_goes_while_the_job_waits_its_turn():
    made = Namespace(Site(has_volcano=True), worker=pods_of(2))
    made.allotted = Allotted(Allocation(2, 1))
    made.settle()
    assert ("podgroups", "job") in made.stored
    made.allotted = Allotted(Allocation(0, 2, "stopped", "Preempted", 1, made.now))
    made.settle()
    assert ("podgroups", "job") not in made.stored


def test_is_not_made_without_volcano():
    made = Namespace(Site(has_volcano=False), worker=pods_of(2))
    made.settle()
    assert ("podgroups", "job") not in made.stored
    assert "volcano, which is not installed" in made.status["reason"]


def test_is_not_made_for_another_scheduler():
    made = Namespace(Site(has_volcano=True), worker=role(2))
    made.settle()
    assert ("podgroups", "job") not in made.stored


@pytest.mark.parametrize(
    ("spec", "does"),
    [
        ({"worker": pods_of(1)}, True),
        ({"trainer": {"replicaSpec": template(schedulerName="volcano")}}, True),
        ({"worker": role(1)}, False),
        ({"worker": "x", "ps": {"template": 3}}, False),
        (None, False),
    ],
)
def test_knows_who_names_volcano(spec, does):
    assert names_volcano({"spec": spec}) is does
