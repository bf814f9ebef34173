from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.errors import InvalidInput
from paddlecloud.core.jobspec import Mode, Role
from paddlecloud.core.resources import Resources
from paddlecloud.forms import start_command, trainingjob
from paddlecloud.forms.custom_resources import Intranet


def trainer(**keys: Any) -> dict[str, Any]:
    return {"entrypoint": "python train.py", "workspace": "/home/job", **keys}


def training_job(**spec: Any) -> dict[str, Any]:
    spec.setdefault("trainer", trainer())
    return {"metadata": {"name": "job"}, "spec": spec}


def faults_of(body: object) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        trainingjob.parse(body)
    return {fault.field: fault.problem for fault in caught.value.faults}


def test_reads_a_job_that_can_scale():
    body = training_job(
        image="me/job:1",
        port=7164,
        ports_num=1,
        ports_num_for_sparse=1,
        fault_tolerant=True,
        passes=3,
        volumes=[{"name": "v", "emptyDir": {}}],
        VolumeMounts=[{"name": "v", "mountPath": "/v"}],
        trainer=trainer(
            **{
                "min-instance": 2,
                "max-instance": 6,
                "resources": {
                    "limits": {"cpu": "200m", "memory": "200Mi"},
                    "requests": {"cpu": "100m"},
                },
            }
        ),
        pserver={"min-instance": 2, "max-instance": 2, "resources": {"requests": {"cpu": 1}}},
    )
    job, warnings = trainingjob.parse(body)
    assert not warnings
    trainers, servers = job.spec.roles
    assert (job.spec.mode, job.spec.fault_tolerant, job.spec.passes) == (Mode.PS, True, 3)
    assert (trainers.min_replicas, trainers.replicas, trainers.max_replicas) == (2, 2, 6)
    assert trainers.resources == Resources(100, 200 * 2**20)
    assert (servers.role, servers.replicas, servers.resources) == (
        Role.PSERVER,
        2,
        Resources(1000),
    )
    container = trainers.template["spec"]["containers"][0]
    assert start_command.read(container["command"]) == ("/home/job", "python train.py")
    assert container["volumeMounts"] == [{"name": "v", "mountPath": "/v"}]
    ports = servers.template["spec"]["containers"][0]["ports"]
    assert [port["containerPort"] for port in ports] == [7164, 7165]


@pytest.mark.parametrize("spelling", ["min-instance", "min_instance", "minInstance"])
def test_reads_every_spelling(spelling):
    job, warnings = trainingjob.parse(
        training_job(faultTolerant=True, trainer=trainer(**{spelling: 2, "max_instance": 3}))
    )
    assert not warnings
    assert (job.spec.trainers.min_replicas, job.spec.trainers.max_replicas) == (2, 3)


def test_reads_the_slip_of_the_first_server():
    job, _ = trainingjob.parse(training_job(pservser={"min-instance": 1}))
    assert job.spec.mode == Mode.PS


def test_asks_for_gpus_by_todays_name():
    resources = {"limits": {"alpha.kubernetes.io/nvidia-gpu": 1}}
    job, warnings = trainingjob.parse(training_job(trainer=trainer(resources=resources)))
    assert job.spec.trainers.resources.gpu == 1
    container = job.spec.trainers.template["spec"]["containers"][0]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 1}}
    assert "is read as nvidia.com/gpu" in str(warnings[0])


def test_warns_of_a_master_that_says_nothing_to_run():
    _, warnings = trainingjob.parse(training_job(master={"etcd-endpoint": ""}))
    assert [warning.field for warning in warnings] == ["spec.master"]


def test_uses_the_hosts_network_when_asked():
    job, _ = trainingjob.parse(training_job(host_network=True))
    assert job.intranet == Intranet.HOST


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        ({"trainer": {}}, "spec.trainer.entrypoint", "is missing"),
        (
            {"trainer": trainer(**{"min-instance": 2, "max-instance": 3})},
            "spec.trainer.max-instance",
            "max-instances should equal to min-instances when fault_tolerant is disabled",
        ),
        (
            {"fault_tolerant": True, "trainer": trainer(min_instance=3, max_instance=2)},
            "spec.trainer.min_instance",
            "more than 2, the most",
        ),
        ({"volumes": 7}, "spec.volumes", "must be a list"),
        ({"passes": 0}, "spec.passes", "whole number"),
        ({"trainer": []}, "spec.trainer", "must be an object"),
    ],
)
def test_names_the_field_that_can_never_work(spec, field, words):
    assert words in faults_of(training_job(**spec))[field]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)


@given(
    st.integers(1, 9),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(1, 9),
    st.booleans(),
    st.text(min_size=1, max_size=9),
)
def test_reads_back_what_it_wrote(least, more, servers, passes, host, entry):
    keys = {"min-instance": least, "max-instance": least + more, "entrypoint": entry}
    spec = {"trainer": trainer(**keys), "fault_tolerant": True, "passes": passes}
    job, _ = trainingjob.parse(
        training_job(**spec, host_network=host, pserver={"min-instance": servers})
    )
    assert trainingjob.parse(trainingjob.render(job)) == (job, ())


@given(st.sampled_from(trainingjob._SPEC_KEYS), json_values)
def test_never_breaks_on_one_malformed_field(key, value):
    body = training_job()
    body["spec"][key] = value
    try:
        job, _ = trainingjob.parse(body)
    except InvalidInput as error:
        problems = [fault.field and fault.problem for fault in error.faults]
    else:
        problems = [job.spec.name]
    assert problems
    assert all(problems)


# --- roles and templates -------------------------------------------------------------------------


def test_starts_a_master_that_says_what_to_run():
    job, warnings = trainingjob.parse(training_job(master={"entrypoint": "run-master"}))
    assert not warnings
    master = job.spec.role(Role.MASTER)
    container = master.template["spec"]["containers"][0]
    assert start_command.read(container["command"]) == ("/home/job", "run-master")
    assert [port["containerPort"] for port in container["ports"]] == [8080, 2379]
    assert master.resources == Resources(1000, 500 * 2**20)


def test_lets_servers_run_another_command():
    job, _ = trainingjob.parse(training_job(pserver={"entrypoint": "serve"}))
    container = job.spec.role(Role.PSERVER).template["spec"]["containers"][0]
    assert start_command.read(container["command"]) == ("/home/job", "serve")


@pytest.mark.parametrize("nesting", ["set", "template", "alone"])
def test_keeps_a_template_of_ones_own_whole(nesting):
    template = {
        "metadata": {"labels": {"team": "vision"}},
        "spec": {
            "nodeSelector": {"disk": "ssd"},
            "containers": [{"name": "mine", "image": "i"}, {"name": "beside", "image": "j"}],
        },
    }
    nested = {"set": {"spec": {"template": template}}, "template": {"template": template}}
    job, warnings = trainingjob.parse(
        training_job(
            volumes=[{"name": "v", "emptyDir": {}}],
            trainer=trainer(replicaSpec=nested.get(nesting, template)),
        )
    )
    assert not warnings
    pod = job.spec.trainers.template["spec"]
    assert [one["image"] for one in pod["containers"]] == ["i", "j"]
    command = pod["containers"][0]["command"]
    assert start_command.read(command) == ("/home/job", "python train.py")
    assert (pod["nodeSelector"], pod["volumes"]) == (
        {"disk": "ssd"},
        [{"name": "v", "emptyDir": {}}],
    )
    assert trainingjob.parse(trainingjob.render(job)) == (job, ())


def test_restarts_as_often_as_it_has_trainers_when_fault_tolerant():
    sizes = {"min-instance": 2, "max-instance": 6}
    job, _ = trainingjob.parse(training_job(fault_tolerant=True, trainer=trainer(**sizes)))
    assert job.spec.restart.max_restarts == 6
    job, _ = trainingjob.parse(training_job(fault_tolerant=True, backoffLimit=1))
    assert job.spec.restart.max_restarts == 1
    job, _ = trainingjob.parse(training_job())
    assert job.spec.restart.max_restarts == 0


def test_says_of_its_life_what_a_paddle_job_says():
    spec = {
        "cleanPodPolicy": "Always",
        "activeDeadlineSeconds": 60,
        "priority": "high",
        "suspend": True,
        "restartExitCodes": [3],
        "schedulingPolicy": {"group": "vision", "mayBorrow": True, "queue": "q"},
        "pserver": {"min-instance": 1},
        "master": {"entrypoint": "m"},
    }
    job, warnings = trainingjob.parse(training_job(**spec))
    assert not warnings
    assert (job.spec.group, job.spec.may_borrow, job.suspend) == ("vision", True, True)
    assert (job.spec.wall_time_s, job.spec.priority.word) == (60, "high")
    assert trainingjob.parse(trainingjob.render(job)) == (job, ())


def test_hands_the_entry_point_to_the_shell_as_it_is_written():
    entry = "echo $$ $(date) $HOME"
    job, _ = trainingjob.parse(training_job(trainer={"entrypoint": entry}))
    container = job.spec.trainers.template["spec"]["containers"][0]
    # Kubernetes makes one dollar of two, and leaves the rest to the shell.
    assert container["command"] == ["sh", "-c", "echo $$$$ $$(date) $$HOME"]


@given(
    st.sampled_from(["trainer", "pserver", "master"]),
    st.sampled_from(["replicaSpec", "spec", "containers", "command", "resources", "volumes"]),
    json_values,
)
def test_never_breaks_on_a_malformed_template(role, place, value):
    container = {"name": "c", "image": "i", "command": ["x"]}
    pod = {"containers": [container], "volumes": []}
    template = {"spec": pod}
    own = {"replicaSpec": template}
    {
        "replicaSpec": own,
        "spec": template,
        "containers": pod,
        "volumes": pod,
        "command": container,
        "resources": container,
    }[place][place] = value
    body = training_job(volumes=[{"name": "v"}])
    body["spec"][role] = {**body["spec"].get(role, {}), **own}
    try:
        job, _ = trainingjob.parse(body)
    except InvalidInput as error:
        is_told = all(fault.field and fault.problem for fault in error.faults)
    else:
        is_told = trainingjob.parse(trainingjob.render(job))[0] == job
    assert is_told
