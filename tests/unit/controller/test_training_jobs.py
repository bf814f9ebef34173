"""A TrainingJob lives the life of a PaddleJob, in the words of the first controller."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.controller.identity import Identity
from paddlecloud.core.jobspec import Role
from paddlecloud.kube.kinds import PADDLE_JOB, TRAINING_JOB
from tests.unit.controller.pretended import Namespace, running


def trainer(least: int = 2, most: int = 0, **keys: Any) -> dict[str, Any]:
    sizes = {"min-instance": least, "max-instance": most or least}
    return {"entrypoint": "python train.py", "workspace": "/work", **sizes, **keys}


def training(**spec: Any) -> Namespace:
    spec.setdefault("trainer", trainer())
    return running(kind=TRAINING_JOB, **spec)


def test_makes_pods_of_every_role():
    world = training(pserver={"min-instance": 1}, master={"entrypoint": "run-master"})
    assert sorted(world.pods()) == [
        "job-master-0",
        "job-pserver-0",
        "job-trainer-0",
        "job-trainer-1",
    ]
    assert (world.status["ready"], world.status["mode"]) == ("4/4", "PS")


def test_tells_how_the_replicas_stand():
    world = training(pserver={"min-instance": 1})
    assert world.status["replica_statuses"] == [
        {
            "training_resource_type": "TRAINER",
            "state": "running",
            "resource_states": {"running": 2},
        },
        {
            "training_resource_type": "PSERVER",
            "state": "running",
            "resource_states": {"running": 1},
        },
    ]
    assert world.status["scale_status"] == {}
    world.end("job-trainer-0", 0)
    world.settle()
    trainers = world.status["replica_statuses"][0]
    assert trainers["resource_states"] == {"running": 1, "succeeded": 1}
    world.end("job-trainer-1", 0)
    world.settle()
    assert world.status["phase"] == "succeeded"
    assert sorted(world.pods()) == ["job-pserver-0", "job-trainer-0", "job-trainer-1"]
    assert not world.is_alive("job-pserver-0")


def test_is_creating_before_it_runs():
    world = Namespace(kind=TRAINING_JOB, trainer=trainer())
    world.settle()
    assert world.status["phase"] == "creating"
    assert world.status["replica_statuses"][0]["state"] == "starting"


def test_fails_when_one_trainer_fails():
    world = training()
    world.end("job-trainer-1", 1)
    world.settle()
    why = "exit 1 in trainer-1: General Error"
    assert (world.status["phase"], world.status["reason"]) == ("failed", why)


def test_gives_programs_of_that_time_what_they_read():
    world = training(
        port=7200,
        ports_num=2,
        passes=3,
        pserver={"min-instance": 2},
        master={"entrypoint": "run-master"},
    )
    env = world.environment("job-trainer-1")
    servers = [world.pods()[f"job-pserver-{i}"]["status"]["podIP"] for i in range(2)]
    assert env["PADDLE_INIT_PSERVERS"] == env["PADDLE_PSERVER_IPS"] == ",".join(servers)
    assert env["MASTER_IP"] == world.pods()["job-master-0"]["status"]["podIP"]
    expected = {
        "PADDLE_JOB_NAME": "job",
        "TRAINERS": "2",
        "PSERVERS": "2",
        "ENTRY": "python train.py",
        "TOPOLOGY": "python train.py",
        "TRAINER_PACKAGE": "/work",
        "PADDLE_INIT_PORT": "7200",
        "PADDLE_PORT": "7200",
        "PADDLE_INIT_PORTS_NUM": "2",
        "PADDLE_INIT_PORTS_NUM_FOR_SPARSE": "1",
        "PADDLE_INIT_NUM_GRADIENT_SERVERS": "2",
        "PADDLE_INIT_NUM_PASSES": "3",
        "PADDLE_INIT_TRAINER_ID": "1",
        "PADDLE_TRAINING_ROLE": "TRAINER",
        "NAMESPACE": "ns",
    }
    assert {name: env[name] for name in expected} == expected
    assert world.environment("job-master-0")["PADDLE_TRAINING_ROLE"] == "MASTER"


def test_has_the_files_of_that_time():
    pod = training().pods()["job-trainer-1"]
    mounted = {one["mountPath"] for one in pod["spec"]["containers"][0]["volumeMounts"]}
    assert {"/trainer_id", "/trainer_count"} <= mounted
    volume = next(one for one in pod["spec"]["volumes"] if "downwardAPI" in one)
    content = {}
    for item in volume["downwardAPI"]["items"]:
        name = item["fieldRef"]["fieldPath"].removeprefix("metadata.annotations['").rstrip("']")
        content[item["path"]] = pod["metadata"]["annotations"][name]
    assert content == {"trainer_id": "1\n", "trainer_count": "2\n"}


def test_starts_trainers_when_servers_and_master_are_there():
    spec = {"pserver": {"min-instance": 1}, "master": {"entrypoint": "m"}}
    world = Namespace(kind=TRAINING_JOB, trainer=trainer(), **spec)
    world.settle()
    world.run("job-pserver-0", "job-trainer-0", "job-trainer-1")
    world.settle()
    assert ("configmaps", "job.trainingjob.servers") not in world.stored
    world.run("job-master-0")
    world.settle()
    assert ("configmaps", "job.trainingjob.servers") in world.stored


@pytest.mark.parametrize("replicas", [1, 3, 9])
def test_keeps_the_number_of_trainers_between_least_and_most(replicas):
    world = training(fault_tolerant=True, trainer=trainer(2, 4, replicas=replicas))
    assert len(world.pods()) == {1: 2, 3: 3, 9: 4}[replicas]


def test_is_another_job_than_the_paddle_job_of_the_same_name():
    both = [Identity("ns", "job", "u", kind) for kind in (PADDLE_JOB, TRAINING_JOB)]
    names = [
        {who.peers_name, who.gate_name, who.group_name, *(who.pod_name(role, 0) for role in Role)}
        for who in both
    ]
    shared = names[0] & names[1]
    # Neither kind has the other's roles: a PaddleJob no master, a TrainingJob no heter workers.
    assert shared == {"job-heter-0", "job-master-0"}
    assert [who.group_name for who in both] == ["job", "job.trainingjob"]
    assert both[0].labels != both[1].labels


def test_goes_on_without_a_trainer_even_when_its_pod_is_deleted():
    world = training(
        fault_tolerant=True, backoffLimit=0, trainer=trainer(3), pserver={"min-instance": 1}
    )
    world.end("job-trainer-1", 1)
    world.settle()
    assert (world.status["phase"], world.status["reason"]) == (
        "running",
        "goes on without trainer-1",
    )
    del world.stored["pods", "job-trainer-1"]
    world.settle()
    assert "job-trainer-1" not in world.pods()
    assert world.data is not None
    for name in ("job-trainer-0", "job-trainer-2"):
        world.end(name, 0)
    world.settle()
    assert world.status["phase"] == "succeeded"
