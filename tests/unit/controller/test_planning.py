from __future__ import annotations

import pytest

from paddlecloud.controller.peers import Site
from tests.unit.controller.pretended import Namespace, role, running

# --- making pods -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "mode", "names"),
    [
        ({"worker": role(1)}, "Single", ["job-worker-0"]),
        ({"worker": role(2)}, "Collective", ["job-worker-0", "job-worker-1"]),
        ({"worker": role(1), "ps": role(1)}, "PS", ["job-ps-0", "job-worker-0"]),
        (
            {"worker": role(1), "ps": role(1), "heter": role(1)},
            "Heter",
            ["job-heter-0", "job-ps-0", "job-worker-0"],
        ),
    ],
)
def test_makes_pods_of_fixed_names_and_runs(spec, mode, names):
    world = running(**spec)
    assert sorted(world.pods()) == names
    assert (world.status["mode"], world.status["ready"]) == (mode, f"{len(names)}/{len(names)}")
    owners = [pod["metadata"]["ownerReferences"] for pod in world.pods().values()]
    assert all(owner[0]["uid"] == "u-1" and owner[0]["controller"] for owner in owners)


def test_says_nothing_new_when_nothing_changed():
    world = running(worker=role(2))
    decided = world.look()
    assert decided.actions == ()
    assert decided.status == world.status


def test_is_pending_until_a_pod_runs_and_starting_until_all_do():
    world = Namespace(worker=role(2))
    world.settle()
    assert world.status["phase"] == "Pending"
    world.run("job-worker-0")
    world.settle()
    assert (world.status["phase"], world.status["ready"]) == ("Starting", "1/2")


def test_says_why_a_pod_cannot_be_placed():
    said = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: none helps."
    world = Namespace(worker=role(1))
    world.settle()
    world.stored["pods", "job-worker-0"]["status"] = {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "message": said}],
    }
    world.settle()
    assert world.status["reason"] == (
        "job-worker-0 cannot be placed: not enough nvidia.com/gpu on 3 nodes"
        " (0/3 nodes are available: 3 Insufficient nvidia.com/gpu)"
    )


# --- peers -----------------------------------------------------------------------------------


def test_holds_the_containers_back_until_every_address_is_known():
    world = Namespace(worker=role(2))
    world.settle()
    world.run("job-worker-0")
    world.settle()
    assert world.data is None
    world.run()
    world.settle()
    assert world.data is not None
    assert world.data["PADDLE_TRAINERS_NUM"] == "2"


@pytest.mark.parametrize("intranet", ["PodIP", "Service", "Host"])
def test_gives_every_replica_an_endpoint_that_is_in_the_lists(intranet):
    world = running(worker=role(2), ps=role(2), heter=role(1), intranet=intranet, withGloo=1)
    lists = {
        "worker": "PADDLE_TRAINER_ENDPOINTS",
        "ps": "PADDLE_PSERVERS_IP_PORT_LIST",
        "heter": "PADDLE_HETER_ENDPOINTS",
    }
    for name in world.pods():
        word, index = name.split("-")[1:]
        env = world.environment(name)
        own = f"{env['POD_IP']}:{env['PADDLE_PORT']}"
        assert env[lists[word]].split(",")[int(index)] == own == env["PADDLE_CURRENT_ENDPOINT"]
        assert env["PADDLE_TRAINER_ID"] == index
        assert env["PADDLE_GLOO_HTTP_ENDPOINT"] not in env["PADDLE_PSERVERS_IP_PORT_LIST"]
    words = {world.environment(name)["TRAINING_ROLE"] for name in world.pods()}
    assert words == {"TRAINER", "PSERVER", "HETER_TRAINER"}


def test_keeps_ranks_from_parameter_servers():
    world = running(worker=role(2), ps=role(1))
    assert "MASTER_ADDR" not in world.environment("job-ps-0")
    first = world.environment("job-worker-0")
    assert world.environment("job-worker-1")["MASTER_ADDR"] == first["POD_IP"]


def test_makes_a_service_per_pod_where_names_are_the_addresses():
    world = running(worker=role(2), intranet="Service")
    services = {name for plural, name in world.stored if plural == "services"}
    assert services == {"job-worker-0", "job-worker-1"}
    service = world.stored["services", "job-worker-0"]["spec"]
    assert service["clusterIP"] == "None"
    assert [port["port"] for port in service["ports"]] == list(range(36000, 36020))
    assert world.environment("job-worker-1")["POD_IP"] == "job-worker-1"


def test_keeps_pods_that_share_ports_off_one_node():
    pod = running(worker=role(2), intranet="Host").pods()["job-worker-0"]["spec"]
    assert pod["hostNetwork"] is True
    ports = pod["containers"][0]["ports"]
    assert len({port["hostPort"] for port in ports}) == 20


def test_writes_new_addresses_before_anyone_can_read_old_ones():
    world = running(worker=role(2), ps=role(1))
    old = world.environment("job-worker-0")["POD_IP"]
    del world.stored["pods", "job-worker-0"]
    actions = world.look().actions
    assert [type(action).__name__ for action in actions] == ["Delete", "Create"]
    assert actions[0].plural == "configmaps"
    world.settle()
    world.run()
    world.settle()
    assert old not in world.data["PADDLE_TRAINERS"]
    assert world.environment("job-worker-0")["POD_IP"] in world.data["PADDLE_TRAINERS"]


# --- templates -------------------------------------------------------------------------------


def test_keeps_the_template_whole():
    pod = {
        "metadata": {"labels": {"team": "vision"}, "annotations": {"a": "b"}, "name": "mine"},
        "spec": {
            "nodeSelector": {"accelerator": "p100"},
            "priorityClassName": "x",
            "someday": {"a": [1]},
            "volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory"}}],
            "containers": [
                {
                    "name": "paddle",
                    "image": "i",
                    "env": [{"name": "A", "value": "1"}, {"name": "RANK", "value": "7"}],
                    "resources": {"limits": {"nvidia.com/gpu": 1}},
                },
                {"name": "side", "image": "s"},
            ],
        },
    }
    world = Namespace(worker={"replicas": 2, "template": pod})
    world.settle()
    made = world.pods()["job-worker-1"]
    assert made["metadata"]["name"] == "job-worker-1"
    assert made["metadata"]["labels"]["team"] == "vision"
    assert made["metadata"]["annotations"]["a"] == "b"
    for key in ("nodeSelector", "priorityClassName", "someday"):
        assert made["spec"][key] == pod["spec"][key]
    assert made["spec"]["volumes"][0] == pod["spec"]["volumes"][0]
    container, side = made["spec"]["containers"]
    assert side == {"name": "side", "image": "s"}
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 1}}
    values = [one["value"] for one in container["env"] if one["name"] in ("A", "RANK")]
    assert sorted(values) == ["1", "1"]  # A of the user, and our RANK for theirs


@pytest.mark.parametrize(
    ("spec", "given", "policy"),
    [
        ({}, None, "Never"),
        ({}, "OnFailure", "OnFailure"),
        ({"intranet": "Service"}, None, "OnFailure"),
        ({"elastic": 0}, "Never", "OnFailure"),
    ],
)
def test_chooses_the_restart_policy(spec, given, policy):
    worker = role(2)
    if given:
        worker["template"]["spec"]["restartPolicy"] = given
    world = Namespace(worker=worker, **spec)
    world.settle()
    assert world.pods()["job-worker-0"]["spec"]["restartPolicy"] == policy


def test_lets_the_other_roles_inherit_the_scheduler():
    worker = role(1)
    worker["template"]["spec"]["schedulerName"] = "volcano"
    world = Namespace(worker=worker, ps=role(1))
    world.settle()
    for pod in world.pods().values():
        assert pod["spec"]["schedulerName"] == "volcano"
        assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "job"


def test_says_that_the_scheduler_it_names_is_missing():
    worker = role(1)
    worker["template"]["spec"]["schedulerName"] = "volcano"
    world = Namespace(Site(has_volcano=False), worker=worker)
    world.settle()
    assert "volcano, which is not installed" in world.status["reason"]
    assert "NoVolcano" in [reason for reason, _ in world.events]
    assert len(world.pods()) == 1  # it may be installed later


def test_mounts_a_sample_set():
    world = Namespace(worker=role(1), sampleSetRef={"name": "imagenet", "mountPath": "/data"})
    world.settle()
    spec = world.pods()["job-worker-0"]["spec"]
    claims = [one.get("persistentVolumeClaim") for one in spec["volumes"]]
    assert {"claimName": "imagenet"} in claims
    assert "/data" in [one["mountPath"] for one in spec["containers"][0]["volumeMounts"]]


# --- the end ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "ends_well", "kept"),
    [
        ("", True, False),
        ("", False, True),
        ("OnCompletion", True, False),
        ("OnCompletion", False, True),
        ("Always", True, False),
        ("Always", False, False),
        ("OnFailure", True, True),
        ("OnFailure", False, False),
        ("Never", True, True),
        ("Never", False, True),
    ],
)
def test_cleans_up_by_the_policy(policy, ends_well, kept):
    world = running(worker=role(2), ps=role(1), cleanPodPolicy=policy, intranet="Service")
    for name in ("job-worker-0", "job-worker-1"):
        world.end(name, 0 if ends_well else 3)
    world.settle()
    assert world.status["phase"] == ("Completed" if ends_well else "Failed")
    names = {"job-ps-0", "job-worker-0", "job-worker-1"} if kept else set()
    assert set(world.pods()) == names
    assert not any(world.is_alive(name) for name in world.pods())
    assert {name for plural, name in world.stored if plural == "services"} == names


def test_completes_when_the_workers_are_done_and_the_servers_are_not():
    world = running(worker=role(2), ps=role(2))
    for name in ("job-worker-0", "job-worker-1"):
        world.end(name, 0)
    world.settle()
    assert world.status["phase"] == "Completed"
    assert "completionTime" in world.status
    conditions = {one["type"]: one["status"] for one in world.status["conditions"]}
    assert conditions["Complete"] == "True"


def test_says_which_replica_failed_and_how():
    world = running(worker=role(2))
    world.end("job-worker-1", 137)
    world.settle()
    assert world.status["phase"] == "Failed"
    assert "trainer-1 was ended by signal 9" in world.status["reason"]
    assert ("Failed", world.status["reason"]) in world.events


def test_never_wakes_an_ended_job():
    world = running(worker=role(1), cleanPodPolicy="Always")
    world.end("job-worker-0", 0)
    world.settle()
    before = dict(world.status)
    world.body["spec"]["worker"]["replicas"] = 3
    world.settle()
    assert (world.pods(), world.status) == ({}, before)


# --- restarts --------------------------------------------------------------------------------


def test_restarts_a_gang_together_and_remembers_why():
    world = running(worker=role(3), backoffLimit=1)
    world.end("job-worker-1", 1)
    world.settle()
    world.run()
    world.settle()
    assert world.status["phase"] == "Running"
    attempts = {
        pod["metadata"]["labels"]["paddlepaddle.org/attempt"] for pod in world.pods().values()
    }
    assert attempts == {"2"}
    assert [(row["index"], row["attempt"]) for row in world.status["failures"]] == [(1, 1)]
    world.end("job-worker-0", 1)
    world.settle()
    assert world.status["phase"] == "Failed"
    assert world.status["restarts"] == 1


def test_restarts_a_worker_of_a_parameter_server_job_alone():
    world = running(worker=role(2), ps=role(1), backoffLimit=2)
    kept = {name: pod["metadata"]["uid"] for name, pod in world.pods().items()}
    world.end("job-worker-1", 1)
    world.settle()
    world.run()
    world.settle()
    now = {name: pod["metadata"]["uid"] for name, pod in world.pods().items()}
    changed = {name for name in now if now[name] != kept[name]}
    assert changed == {"job-worker-1"}
    assert world.status["phase"] == "Running"


def test_does_not_retry_an_exit_code_that_is_not_named():
    world = running(worker=role(1), backoffLimit=5, restartExitCodes=[137])
    world.end("job-worker-0", 1)
    world.settle()
    assert world.status["phase"] == "Failed"


def test_writes_a_failure_down_before_its_pod_goes():
    world = running(worker=role(1), backoffLimit=1)
    world.end("job-worker-0", 1)
    while not world.status.get("failures"):
        assert "job-worker-0" in world.pods()
        world.step()
    world.settle()
    assert world.pods()["job-worker-0"]["metadata"]["labels"]["paddlepaddle.org/attempt"] == "2"


# --- changing --------------------------------------------------------------------------------


def test_grows_and_shrinks_from_the_end():
    world = running(worker=role(2))
    world.body["spec"]["worker"]["replicas"] = 4
    world.settle()
    world.run()
    world.settle()
    assert sorted(world.pods()) == [f"job-worker-{i}" for i in range(4)]
    assert world.data["PADDLE_TRAINERS_NUM"] == "4"
    kept = world.pods()["job-worker-0"]["metadata"]["uid"]
    world.body["spec"]["worker"]["replicas"] = 1
    world.settle()
    assert sorted(world.pods()) == ["job-worker-0"]
    assert world.pods()["job-worker-0"]["metadata"]["uid"] == kept
    assert (world.data["PADDLE_TRAINERS_NUM"], world.status["replicas"]) == ("1", 1)


def test_holds_the_size_between_min_and_max():
    world = Namespace(worker=role(9, requests=1, limits=3))
    world.settle()
    assert len(world.pods()) == 3
    assert any(one["type"] == "OddSpec" for one in world.status["conditions"])


def test_suspends_and_goes_on():
    world = running(worker=role(2), ps=role(1))
    world.body["spec"]["suspend"] = True
    world.settle()
    assert (world.pods(), world.status["phase"]) == ({}, "Suspended")
    world.body["spec"]["suspend"] = False
    world.settle()
    world.run()
    world.settle()
    assert world.status["phase"] == "Running"


@pytest.mark.parametrize(("server", "is_odd"), [("", True), ("etcd:2379", False)])
def test_says_when_an_elastic_job_has_no_etcd(server, is_odd):
    world = Namespace(Site(elastic_server=server), worker=role(2), elastic=1)
    world.settle()
    odd = [one["message"] for one in world.status["conditions"] if one["type"] == "OddSpec"]
    assert bool(odd) == is_odd
    assert all("--etcd-server" in message for message in odd)
