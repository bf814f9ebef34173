"""The job body of the job service v1: its keys, its faults, and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.errors import InvalidInput
from paddlecloud.core.jobspec import JobSpec, Mode, Priority, Role, RoleSpec
from paddlecloud.core.resources import Resources
from paddlecloud.forms.job_v1 import parse, render
from tests.unit.strategies import train_specs

GI = 2**30
# As the 1.x client sent it.
BODY: dict[str, Any] = {
    "jobName": "a_job:1",
    "jobType": "paddle",
    "startCMD": "python train.py",
    "clusterName": "yq01",
    "jobAuth": "group",
    "jobVersion": "paddle-fluid-custom",
    "versionImageAddr": "reg/i:1",
    "jobConf": 'fs_ugi="u,hunter2"\nGLOG_v = 3\n',
    "clusterConf": {
        "clusterName": "yq01",
        "k8sTrainersCount": 2,
        "k8sCpuCores": 4,
        "k8sMemory": "10Gi",
        "k8sGpuCards": 1,
        "k8sGpuType": "baidu/gpu_p40",
        "k8sPserversCount": 3,
        "k8sPscpuCores": 2,
        "k8sPsmemory": "5Gi",
        "k8sPriority": "high",
        "k8sWalltime": "10:00:00",
        "k8sIsLocal": 0,
    },
}


def with_conf(**changes: Any) -> dict[str, Any]:
    return {**BODY, "clusterConf": {**BODY["clusterConf"], **changes}}


def test_reads_what_the_first_client_sent() -> None:
    assert parse(BODY) == JobSpec(
        name="a_job:1",
        mode=Mode.PS,
        roles=(
            RoleSpec(Role.TRAINER, 2, Resources(4000, 10 * GI, 1)),
            RoleSpec(Role.PSERVER, 3, Resources(2000, 5 * GI)),
        ),
        entry="python train.py",
        cluster="yq01",
        runtime="reg/i:1",
        env={"GLOG_v": "3"},
        priority=Priority.HIGH,
        wall_time_s=36000,
        annotations={
            "permission": "group",
            "gpu-type": "baidu/gpu_p40",
            "job-version": "paddle-fluid-custom",
        },
    )


def test_without_its_local_switch_one_trainer_is_local() -> None:
    spec = parse({"jobName": "x", "startCMD": "y", "clusterConf": {}})
    assert (spec.mode, spec.trainers.replicas) == (Mode.SINGLE, 1)


@pytest.mark.parametrize("value", ["2", 2])
def test_numbers_may_be_texts(value: object) -> None:
    assert parse(with_conf(k8sTrainersCount=value)).trainers.replicas == 2


@pytest.mark.parametrize(
    ("body", "field", "problem"),
    [
        ([], "body", "must be a JSON object"),
        ({**BODY, "jobType": "spark"}, "jobType", "must be paddle"),
        ({**BODY, "jobname": "x"}, "jobname", "unknown key; did you mean jobName?"),
        ({**BODY, "jobAuth": "all"}, "jobAuth", "must be private or group"),
        ({**BODY, "jobName": 1.5}, "jobName", "must be a text or a whole number"),
        ({**BODY, "jobConf": 5}, "jobConf", "must be the text"),
        ({**BODY, "jobConf": "fs_ugi: hunter2"}, "jobConf", "line 1: is not key = value"),
        ({**BODY, "clusterConf": "x"}, "clusterConf", "must be an object"),
        (with_conf(k8sMemory="10G"), "clusterConf.k8sMemory", "must be digits with Ki, Mi or Gi"),
        (with_conf(k8sMemory=True), "clusterConf.k8sMemory", "must be a text or a whole number"),
        (with_conf(k8sTrainersCount=10**30), "clusterConf.k8sTrainersCount", "whole number"),
        (with_conf(k8sTrainers=1), "clusterConf.k8sTrainers", "unknown key"),
        (with_conf(mpiWalltime="1:0:0"), "clusterConf.mpiWalltime", "contradicts"),
        (with_conf(k8sIsLocal=1), "clusterConf.k8sTrainersCount", "contradicts"),
        (with_conf(clusterName="other"), "clusterConf.clusterName", "contradicts clusterName"),
        ({k: v for k, v in BODY.items() if k != "startCMD"}, "startCMD", "is missing"),
        (
            {k: v for k, v in BODY.items() if k != "versionImageAddr"},
            "jobVersion",
            "needs versionImageAddr",
        ),
    ],
)
def test_refuses_by_the_key_as_sent(body: Any, field: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(body)
    (fault,) = caught.value.faults
    assert fault.field == field
    assert problem in fault.problem
    assert "hunter2" not in str(caught.value)


def test_reports_all_faults_together() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse({"clusterConf": {"k8sMemory": "x"}, "extra": 1})
    assert [fault.field for fault in caught.value.faults] == [
        "extra",
        "clusterConf.k8sMemory",
        "jobName",
        "startCMD",
    ]


@given(train_specs())
def test_reads_back_what_it_wrote(spec: JobSpec) -> None:
    assert parse(render(spec)) == spec


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*BODY, "k8sMemory", "x"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(_json)
def test_any_body_is_read_or_refused(body: object) -> None:
    try:
        parse(body)
    except InvalidInput:
        pass
