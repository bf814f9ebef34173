from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.errors import InvalidInput
from paddlecloud.core.jobspec import CleanPolicy, Mode, Priority, Role
from paddlecloud.core.resources import Resources
from paddlecloud.forms import paddlejob
from paddlecloud.forms.custom_resources import GangPolicy, Intranet, SampleSet

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "paddlejob"


def template(**resources: Any) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "paddle", "image": "demo:v1"}
    if resources:
        container["resources"] = resources
    return {"spec": {"containers": [container]}}


def paddle_job(name: str = "job", **spec: Any) -> dict[str, Any]:
    spec.setdefault("worker", {"replicas": 2, "template": template()})
    return {"metadata": {"name": name}, "spec": spec}


def worker(**keys: Any) -> dict[str, Any]:
    return {"replicas": 2, "template": template(), **keys}


def faults_of(body: object) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        paddlejob.parse(body)
    return {fault.field: fault.problem for fault in caught.value.faults}


def warnings_of(body: object) -> dict[str, str]:
    return {warning.field: warning.problem for warning in paddlejob.parse(body)[1]}


# --- the published examples ------------------------------------------------------------------


def example(name: str) -> dict[str, Any]:
    text = (EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")
    return next(body for body in yaml.safe_load_all(text) if body["kind"] == "PaddleJob")


@pytest.mark.parametrize(
    ("name", "mode", "intranet", "clean", "gloo", "counts"),
    [
        ("wide_and_deep", Mode.PS, "PodIP", "Never", 1, {"trainer": 2, "pserver": 2}),
        ("resnet", Mode.COLLECTIVE, "PodIP", "Never", 0, {"trainer": 2}),
        ("wide_and_deep_p100", Mode.PS, "Service", "OnCompletion", 0, {"trainer": 2, "pserver": 2}),
        ("wide_and_deep_volcano", Mode.PS, "PodIP", "Never", 1, {"trainer": 2, "pserver": 2}),
        ("data_demo", Mode.PS, "PodIP", "OnCompletion", 0, {"trainer": 2, "pserver": 2}),
    ],
)
def test_reads_the_published_examples(name, mode, intranet, clean, gloo, counts):
    body = example(name)
    job, warnings = paddlejob.parse(body)
    assert (job.spec.mode, job.intranet, job.spec.clean) == (mode, intranet, clean)
    assert job.with_gloo == gloo
    assert {role.role.value: role.replicas for role in job.spec.roles} == counts
    assert [str(warning) for warning in warnings] == (
        ["spec.cleanPolicy: is read as cleanPodPolicy"] if name == "data_demo" else []
    )
    for role in job.spec.roles:
        word = {"trainer": "worker", "pserver": "ps"}[role.role.value]
        assert role.template == body["spec"][word]["template"]


def test_counts_what_a_pod_asks_for():
    resources = {"limits": {"nvidia.com/gpu": 1, "cpu": "4"}, "requests": {"cpu": "500m"}}
    body = paddle_job(worker=worker(template=template(**resources)))
    body["spec"]["worker"]["template"]["spec"]["containers"].append(
        {"name": "side", "resources": {"limits": {"memory": "1Gi", "cpu": 1}}}
    )
    trainers = paddlejob.parse(body)[0].spec.trainers
    assert trainers.resources == Resources(1500, 2**30, 1)


# --- sizes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "least", "wish", "most", "warned"),
    [
        ({"replicas": 2}, 2, 2, 2, False),
        ({}, 1, 1, 1, False),
        ({"replicas": 2, "requests": 1, "limits": 4}, 1, 2, 4, False),
        ({"replicas": 2, "limits": 4}, 2, 2, 4, False),
        ({"replicas": 2, "requests": 1}, 1, 2, 2, False),
        ({"replicas": 9, "requests": 1, "limits": 4}, 1, 4, 4, True),
        ({"replicas": 1, "requests": 2, "limits": 4}, 2, 2, 4, True),
        ({"replicas": "3"}, 3, 3, 3, True),
    ],
)
def test_keeps_the_workers_between_min_and_max(written, least, wish, most, warned):
    job, warnings = paddlejob.parse(paddle_job(worker={"template": template(), **written}))
    trainers = job.spec.trainers
    assert (trainers.min_replicas, trainers.replicas, trainers.max_replicas) == (least, wish, most)
    assert bool(warnings) == warned


@pytest.mark.parametrize(
    ("spec", "mode"),
    [
        ({"worker": worker(replicas=1)}, Mode.SINGLE),
        ({"worker": worker(replicas=1, limits=2)}, Mode.COLLECTIVE),
        ({"worker": worker()}, Mode.COLLECTIVE),
        ({"worker": worker(), "ps": worker()}, Mode.PS),
        ({"worker": worker(), "ps": worker(), "heter": worker()}, Mode.HETER),
        ({"worker": worker(), "ps": worker(replicas=0)}, Mode.COLLECTIVE),
    ],
)
def test_takes_the_mode_from_the_roles(spec, mode):
    assert paddlejob.parse(paddle_job(**spec))[0].spec.mode == mode


# --- odd values ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant", "warned"),
    [
        ("Always", CleanPolicy.ALWAYS, False),
        ("", CleanPolicy.ON_COMPLETION, False),
        (None, CleanPolicy.ON_COMPLETION, False),
        ("Oncompletion", CleanPolicy.ON_COMPLETION, True),
        ("on-failure", CleanPolicy.ON_FAILURE, True),
        ("Nevr", CleanPolicy.NEVER, True),
        ("whatever", CleanPolicy.ON_COMPLETION, True),
        (7, CleanPolicy.ON_COMPLETION, True),
    ],
)
def test_understands_a_misspelt_policy(written, meant, warned):
    body = paddle_job(cleanPodPolicy=written)
    job, warnings = paddlejob.parse(body)
    assert job.spec.clean == meant
    assert [warning.field for warning in warnings] == ["spec.cleanPodPolicy"] * warned


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        ({"intranet": "podip"}, "spec.intranet", "read as PodIP"),
        ({"withGloo": True, "ps": worker()}, "spec.withGloo", "read as 1"),
        ({"withGloo": 1}, "spec.withGloo", "no effect without parameter servers"),
        ({"withGloo": 7}, "spec.withGloo", "is none of 0, 1, 2; 0 is used"),
        ({"cleanPodPolicies": "Never"}, "spec.cleanPodPolicies", "did you mean cleanPodPolicy?"),
        ({"suspend": "true"}, "spec.suspend", "read as true"),
        ({"ps": worker(replicas=0)}, "spec.ps.replicas", "as if the role were not there"),
        ({"ps": worker(limits=9)}, "spec.ps.limits", "only workers change"),
        ({"priority": "urgent"}, "spec.priority", "normal is used"),
    ],
)
def test_warns_of_what_is_written_oddly(spec, field, words):
    assert words in warnings_of(paddle_job(**spec))[field]


def test_prefers_the_right_key_over_the_misspelt_one():
    body = paddle_job(cleanPodPolicy="Never", cleanPolicy="Always")
    assert paddlejob.parse(body)[0].spec.clean == CleanPolicy.NEVER
    assert "is ignored" in warnings_of(body)["spec.cleanPolicy"]


# --- faults ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        (paddle_job(worker=None), "spec.worker", "every job has workers"),
        (paddle_job(worker=worker(replicas=0)), "spec.worker.replicas", "at least 1"),
        (paddle_job(worker=worker(replicas=-1)), "spec.worker.replicas", "whole number"),
        (paddle_job(worker=worker(requests=3, limits=2)), "spec.worker.requests", "more than lim"),
        (paddle_job(worker={"replicas": 1}), "spec.worker.template.spec.containers", "at least"),
        (paddle_job(worker=[]), "spec.worker", "must be an object"),
        (paddle_job(heter=worker()), "spec.heter", "needs parameter servers"),
        (paddle_job(backoffLimit="x"), "spec.backoffLimit", "whole number"),
        (paddle_job(restartExitCodes=[0]), "spec.restartExitCodes[0]", "1 to 255"),
        (paddle_job(sampleSetRef={"name": "a"}), "spec.sampleSetRef", "mountPath"),
        (paddle_job(name="a.b"), "metadata.name", "part of host names"),
        (paddle_job(name="a" * 60), "metadata.name", "room for pod names"),
        (
            paddle_job(worker=worker(template=template(limits={"memory": "10GB"}))),
            "spec.worker.template.spec.containers[0].resources.memory",
            "write 10Gi",
        ),
        (17, "object", "must be an object"),
    ],
)
def test_names_the_field_that_can_never_work(body, field, words):
    assert words in faults_of(body)[field]


def test_reports_every_fault_at_once():
    found = faults_of(paddle_job(worker=worker(replicas=0, template={}), backoffLimit=-1))
    assert set(found) == {
        "spec.worker.replicas",
        "spec.worker.template.spec.containers",
        "spec.backoffLimit",
    }


# --- the rest of the fields ------------------------------------------------------------------


def test_reads_every_field():
    body = paddle_job(
        ps=worker(replicas=1),
        elastic=0,
        intranet="Host",
        withGloo=2,
        suspend=True,
        backoffLimit=3,
        restartExitCodes=[137, 1],
        activeDeadlineSeconds=60,
        priority="high",
        schedulingPolicy={"minAvailable": 2, "queue": "q", "minResources": {"cpu": 4}},
        sampleSetRef={"name": "imagenet", "mountPath": "/data"},
    )
    job, warnings = paddlejob.parse(body)
    assert not warnings
    assert (job.intranet, job.with_gloo, job.elastic, job.suspend) == (Intranet.HOST, 2, True, True)
    assert (job.spec.restart.max_restarts, job.spec.restart.exit_codes) == (3, {1, 137})
    assert (job.spec.wall_time_s, job.spec.priority) == (60, Priority.HIGH)
    assert job.gang == GangPolicy(2, "q", "", {"cpu": "4"})
    assert job.samples == SampleSet("imagenet", "/data")


def test_reads_whose_share_it_uses():
    policy = {"group": "nlp", "mayBorrow": True}
    job, warnings = paddlejob.parse(paddle_job(schedulingPolicy=policy))
    assert not warnings
    assert (job.spec.group, job.spec.may_borrow, job.gang) == ("nlp", True, None)


# --- properties ------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
templates = st.builds(
    lambda image, extra, labels: {
        "metadata": {"labels": labels},
        "spec": {**extra, "containers": [{"name": "paddle", "image": image}]},
    },
    st.text(min_size=1, max_size=12),
    st.dictionaries(st.sampled_from(["nodeSelector", "affinity", "x"]), json_values),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
)
sizes = st.tuples(st.integers(1, 20), st.integers(0, 5), st.integers(0, 5)).map(
    lambda t: {"requests": t[0], "replicas": t[0] + t[1], "limits": t[0] + t[1] + t[2]}
)
specs = st.fixed_dictionaries(
    {"worker": st.builds(lambda size, pod: {**size, "template": pod}, sizes, templates)},
    optional={
        "ps": st.builds(
            lambda n, pod: {"replicas": n, "template": pod}, st.integers(1, 9), templates
        ),
        "cleanPodPolicy": st.sampled_from([policy.value for policy in CleanPolicy]),
        "intranet": st.sampled_from([kind.value for kind in Intranet]),
        "suspend": st.booleans(),
        "elastic": st.integers(0, 1),
        "backoffLimit": st.integers(0, 9),
        "restartExitCodes": st.lists(st.integers(1, 255), max_size=3),
        "activeDeadlineSeconds": st.integers(0, 99),
        "priority": st.sampled_from([priority.word for priority in Priority]),
        "schedulingPolicy": st.fixed_dictionaries(
            {},
            optional={
                "queue": st.text(max_size=5),
                "group": st.text(max_size=5),
                "mayBorrow": st.booleans(),
            },
        ),
    },
)


@given(specs)
def test_reads_back_what_it_wrote(spec):
    job, warnings = paddlejob.parse(paddle_job(**copy.deepcopy(spec)))
    assert not warnings
    assert paddlejob.parse(paddlejob.render(job)) == (job, ())


@given(specs, st.sampled_from([*paddlejob._SPEC_KEYS, "metadata"]), json_values)
def test_never_breaks_on_one_malformed_field(spec, key, value):
    body = paddle_job(**copy.deepcopy(spec))
    if key == "metadata":
        body["metadata"] = value
    else:
        body["spec"][key] = value
    try:
        job, _ = paddlejob.parse(body)
    except InvalidInput as error:
        problems = [fault.field and fault.problem for fault in error.faults]
    else:
        problems = ["" if job.spec.role(Role.TRAINER) is None else "none"]
    assert problems
    assert all(problems)
