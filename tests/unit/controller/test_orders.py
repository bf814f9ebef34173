"""Orders on an object, and what is remembered of pods that go."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.controller import orders
from paddlecloud.core.jobspec import Role
from paddlecloud.core.observed import Move
from paddlecloud.kube.kinds import TRAINING_JOB
from paddlecloud.kube.words import ATTEMPT_LABEL, CANCEL_ANNOTATION, MOVES_ANNOTATION
from tests.unit.controller.pretended import START, Namespace, role, running, template
from tests.unit.controller.test_training_jobs import trainer


def order(world: Namespace, **annotations: str) -> None:
    names = {"cancel": CANCEL_ANNOTATION, "moves": MOVES_ANNOTATION}
    notes = world.body["metadata"].setdefault("annotations", {})
    notes |= {names[word]: text for word, text in annotations.items()}
    world.settle()


def moves(*slots: tuple[str, int, int], host: str) -> str:
    rows = [
        {"role": word, "index": index, "attempt": attempt, "host": host, "at": START}
        for word, index, attempt in slots
    ]
    return json.dumps(rows)


# --- cancel ----------------------------------------------------------------------------------


def test_kills_a_job_and_keeps_its_pods_to_look_at():
    world = running(worker=role(2), ps=role(1))
    order(world, cancel="lee: wrong data")
    assert (world.status["phase"], world.status["reason"]) == (
        "Terminated",
        "killed: lee: wrong data",
    )
    assert len(world.pods()) == 3
    assert not any(map(world.is_alive, world.pods()))
    killed = [one for one in world.status["conditions"] if one["type"] == "Killed"]
    assert [one["status"] for one in killed] == ["True"]
    assert ("Killed", "killed: lee: wrong data") in world.events


@pytest.mark.parametrize(
    ("policy", "left"), [("Always", 0), ("OnFailure", 2), ("OnCompletion", 2), ("Never", 2)]
)
def test_removes_the_pods_of_a_killed_job_only_if_it_always_does(policy, left):
    world = running(worker=role(2), cleanPodPolicy=policy)
    order(world, cancel="killed by lee")
    assert world.status["reason"] == "killed by lee"
    assert len(world.pods()) == left


def test_kills_a_training_job_in_its_own_word():
    world = running(kind=TRAINING_JOB, trainer=trainer())
    order(world, cancel="")
    assert (world.status["phase"], world.status["reason"]) == ("killed", "killed")


def test_kills_pods_that_never_found_a_node():
    world = Namespace(worker=role(2))
    world.settle()
    order(world, cancel="enough")
    assert world.status["phase"] == "Terminated"
    assert world.pods() == {}


def test_kills_a_job_whose_spec_can_no_longer_be_read():
    world = running(worker=role(1))
    world.body["spec"]["worker"]["replicas"] = "many"
    order(world, cancel="enough")
    assert world.status["phase"] == "Terminated"
    assert world.pods() == {}


def test_leaves_a_finished_job_as_it_is():
    world = running(worker=role(1), cleanPodPolicy="Never")
    world.end("job-worker-0", 0)
    world.settle()
    order(world, cancel="too late")
    assert world.status["phase"] == "Completed"


# --- moves -----------------------------------------------------------------------------------


def avoided(pod: dict[str, Any]) -> list[str]:
    terms = pod["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    return [host for field in terms[0]["matchFields"] for host in field["values"]]


@pytest.mark.parametrize("servers", [0, 1])
def test_moves_a_worker_once(servers):
    world = running(worker=role(2), **({"ps": role(1)} if servers else {}))
    node = world.pods()["job-worker-1"]["spec"]["nodeName"]
    others = {name: pod["metadata"]["uid"] for name, pod in world.pods().items()}
    text = moves(("worker", 1, 1), host=node)
    order(world, moves=text)
    world.run()
    world.settle()
    moved = world.pods()["job-worker-1"]
    assert avoided(moved) == [node]
    assert moved["metadata"]["labels"]["paddlepaddle.org/attempt"] == "2"
    assert world.status["phase"] == "Running"
    assert world.status["restarts"] == 0
    stayed = world.pods()["job-worker-0"]["metadata"]["uid"]
    assert stayed == others["job-worker-0"]
    order(world, moves=text)
    assert world.pods()["job-worker-1"] is moved
    assert len(world.status["moved"]) == 1


def test_moves_a_server_and_everybody_with_it():
    world = running(worker=role(2), ps=role(1))
    node = world.pods()["job-ps-0"]["spec"]["nodeName"]
    order(world, moves=moves(("ps", 0, 1), host=node))
    world.run()
    world.settle()
    attempts = {
        pod["metadata"]["labels"]["paddlepaddle.org/attempt"] for pod in world.pods().values()
    }
    assert attempts == {"2"}
    assert avoided(world.pods()["job-ps-0"]) == [node]
    assert "affinity" not in world.pods()["job-worker-0"]["spec"]
    assert (world.status["phase"], world.status["restarts"]) == ("Running", 0)


def test_never_gives_a_number_twice_when_a_peer_of_a_moved_one_fails():
    world = running(worker=role(2), backoffLimit=1)
    node = world.pods()["job-worker-1"]["spec"]["nodeName"]
    order(world, moves=moves(("worker", 1, 1), host=node))
    world.run()
    world.settle()
    world.end("job-worker-0", 9)
    world.settle()
    assert attempts_of(world) == {"job-worker-0": "3", "job-worker-1": "3"}


def attempts_of(world: Namespace) -> dict[str, str]:
    return {
        name: pod["metadata"]["labels"]["paddlepaddle.org/attempt"]
        for name, pod in world.pods().items()
    }


def test_keeps_the_affinity_of_the_template():
    wanted = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    required = {"nodeSelectorTerms": [wanted, {}]}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required},
        "podAntiAffinity": {"x": 1},
    }
    world = running(worker=role(1, template=template(affinity=affinity)))
    order(world, moves=moves(("worker", 0, 1), host="node-1"))
    found = world.pods()["job-worker-0"]["spec"]["affinity"]
    terms = found["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    off = [{"key": "metadata.name", "operator": "NotIn", "values": ["node-1"]}]
    assert terms["nodeSelectorTerms"] == [{**wanted, "matchFields": off}, {}]
    assert found["podAntiAffinity"] == {"x": 1}
    assert required["nodeSelectorTerms"] == [wanted, {}]


@pytest.mark.parametrize("text", ["no json", "7", "[7]", '[{"role": "worker"}]'])
def test_warns_of_an_order_that_cannot_be_read(text):
    world = running(worker=role(1))
    order(world, moves=text)
    odd = [one["message"] for one in world.status["conditions"] if one["type"] == "OddSpec"]
    assert MOVES_ANNOTATION in odd[0]
    assert list(world.pods()) == ["job-worker-0"]


def test_reads_an_order():
    body = {"metadata": {"annotations": {MOVES_ANNOTATION: moves(("trainer", 2, 3), host="a")}}}
    assert orders.read(body).moves == (Move(Role.TRAINER, 2, 3, "a", START),)


# --- successes -------------------------------------------------------------------------------


@pytest.mark.parametrize("is_leaving", [True, False])
def test_does_not_run_again_what_ended_well_and_was_deleted(is_leaving):
    world = running(worker=role(3))
    for name in ("job-worker-0", "job-worker-1"):
        world.end(name, 0)
    world.settle()
    assert world.status["successes"] == [{"role": "worker", "attempt": 1, "indexes": "0-1"}]
    if is_leaving:
        world.stored["pods", "job-worker-0"]["metadata"]["deletionTimestamp"] = (
            "2100-01-01T00:00:00Z"
        )
        assert world.look().actions == ()
    del world.stored["pods", "job-worker-0"]
    world.settle()
    assert sorted(world.pods()) == ["job-worker-1", "job-worker-2"]
    assert world.data is not None
    world.end("job-worker-2", 0)
    world.settle()
    assert world.status["phase"] == "Completed"
    assert world.status["worker"]["succeeded"] == 3


def test_never_takes_what_it_deleted_itself_for_a_failure():
    world = running(worker=role(3, requests=1, limits=3))
    world.body["spec"]["worker"]["replicas"] = 2
    world.step()
    leaving = world.stored["pods", "job-worker-2"]
    # Its node's clock is slow: it seems to have ended before it was told to go.
    leaving["metadata"] |= {"deletionGracePeriodSeconds": 0}
    world.now -= 60
    world.end("job-worker-2", 143)
    world.now += 60
    world.step()  # while the pod is still there
    world.settle()
    left = ["job-worker-0", "job-worker-1"]
    assert (world.status["phase"], sorted(world.pods())) == ("Running", left)
    assert "failures" not in world.status


def test_starts_all_again_although_one_had_ended_well():
    world = running(worker=role(2), backoffLimit=1)
    world.end("job-worker-0", 0)
    world.settle()
    world.end("job-worker-1", 1)
    world.settle()
    world.run()
    world.settle()
    attempts = {
        pod["metadata"]["labels"]["paddlepaddle.org/attempt"] for pod in world.pods().values()
    }
    assert attempts == {"2"}
    assert world.status["phase"] == "Running"
    assert "successes" not in world.status


def test_names_the_pods_of_every_role():
    world = running(worker=role(2), ps=role(1))
    refs = world.status["worker"]["refs"]
    assert [ref["name"] for ref in refs] == ["job-worker-0", "job-worker-1"]
    assert refs[0]["uid"] == world.pods()["job-worker-0"]["metadata"]["uid"]
    assert [ref["name"] for ref in world.status["ps"]["refs"]] == ["job-ps-0"]


# --- killed at any moment ------------------------------------------------------------------------


@settings(max_examples=50)
@given(
    st.lists(
        st.sampled_from(["look", "half", "run", "leave", "fail", "move"]), min_size=1, max_size=40
    ),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_moves_all_that_was_ordered_whenever_the_operator_is_killed(steps, with_servers, random):
    spec = {"worker": role(3), "backoffLimit": 1000}
    world = Namespace(**spec, **({"ps": role(1)} if with_servers else {}))
    wanted = {f"job-worker-{i}" for i in range(3)} | ({"job-ps-0"} if with_servers else set())
    ordered: list[dict[str, Any]] = []
    for step in steps:
        alive = [name for name in sorted(world.pods()) if world.is_alive(name)]
        if step == "look":
            world.step()
        elif step == "half":  # killed between two writes, or before the status is written
            actions = world.look().actions
            for action in actions[: random.randint(0, len(actions))]:
                world.apply(action)
        elif step == "run":
            world.run()
        elif step == "leave":
            world.leave()
        elif step == "fail" and alive:
            world.run()
            world.end(random.choice(alive), 1)
        elif step == "move" and alive:
            world.run()
            ordered.append(_order_for(world, random.choice(alive)))
            notes = world.body["metadata"].setdefault("annotations", {})
            notes[MOVES_ANNOTATION] = json.dumps(ordered)
    for _ in range(8):
        world.settle()
        world.run()
    assert world.status["phase"] == "Running"
    assert set(world.pods()) == wanted
    assert world.most_pods <= len(wanted)
    for row in ordered:
        pod = world.pods()[f"job-{row['role']}-{row['index']}"]
        assert int(pod["metadata"]["labels"][ATTEMPT_LABEL]) > row["attempt"]
        assert row["host"] in avoided(pod)


def _order_for(world: Namespace, name: str) -> dict[str, Any]:
    pod = world.pods()[name]
    _, word, index = name.split("-")
    attempt = int(pod["metadata"]["labels"][ATTEMPT_LABEL])
    host = pod["spec"]["nodeName"]
    return {"role": word, "index": int(index), "attempt": attempt, "host": host, "at": world.now}
