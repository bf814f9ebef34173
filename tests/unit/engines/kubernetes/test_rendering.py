"""A run as a custom resource, and back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.jobspec import (
    CleanPolicy,
    JobSpec,
    Mode,
    Priority,
    RestartRule,
    Role,
    RoleSpec,
)
from paddlecloud.core.resources import Resources
from paddlecloud.engines.kubernetes import rendering
from paddlecloud.engines.kubernetes.config import KubernetesConfig
from paddlecloud.engines.protocols import JobRun
from paddlecloud.forms import paddlejob, tenant_objects, trainingjob

PFS = {"nfs": {"server": "files", "path": "/pfs"}}
CONFIG = KubernetesConfig(Path("/nowhere"), cluster="dc", pfs_volume=PFS)
PACKAGE = "/pfs/dc/home/alice/jobs/quick"


def a_run(mode: Mode = Mode.COLLECTIVE, **more) -> JobRun:
    each = Resources(1500, 2**30, 1)
    roles = [RoleSpec(Role.TRAINER, 2 if mode == Mode.COLLECTIVE else 1, each)]
    if mode in (Mode.PS, Mode.HETER):
        roles.append(RoleSpec(Role.PSERVER, 2, Resources(500, 2**28)))
    if mode == Mode.HETER:
        roles.append(RoleSpec(Role.HETER, 1, each))
    spec = JobSpec(
        name="quick", mode=mode, roles=tuple(roles), entry="python train.py", package=PACKAGE,
        cluster="dc", **more,
    )  # fmt: skip
    return JobRun("job-0123456789abcdef", 1, spec, 7, "alice", 1_700_000_000.25)


def body_of(run: JobRun, config: KubernetesConfig = CONFIG) -> dict:
    return rendering.custom_resource(run, config, "paddlecloud-alice")


def template_of(body: dict, role: str = "worker") -> dict:
    """As the operator's form reads it, of either kind."""
    job = rendering.parse({**body, "metadata": {"name": body["metadata"]["name"]}})
    word = Role.TRAINER if role == "worker" else Role(role)
    found = job.spec.role(word)
    assert found is not None
    return dict(found.template or {})["spec"]


def variables(container: dict) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container["env"] if "value" in one}


# --- kinds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("servers", [0, 1])
def test_an_object_stays_of_the_kind_it_came_as(servers):
    trainer = {"entrypoint": "python t.py", "min-instance": 2, "max-instance": 2}
    came = {
        "apiVersion": "paddlepaddle.org/v1",
        "kind": "TrainingJob",
        "metadata": {"name": "fit"},
        "spec": {"image": "x:1", "trainer": trainer},
    }
    if servers:
        came["spec"]["pserver"] = {"min-instance": servers}
    spec = replace(tenant_objects.parse(came), cluster="dc")
    body = body_of(replace(a_run(), spec=spec))
    assert body["kind"] == "TrainingJob"
    again = rendering.parse(body).spec
    assert (again.mode, again.trainers.replicas) == (spec.mode, 2)
    assert template_of(body)["containers"][0]["image"] == "x:1"


# --- names and marks ---------------------------------------------------------------------------


def test_names_the_object_after_the_job_and_its_id():
    assert body_of(a_run())["metadata"]["name"] == "quick-01234567"
    assert rendering.object_name(replace(a_run(), run=3)) == "quick-01234567-3"


def test_makes_a_name_of_any_job_name_that_the_form_accepts():
    for name in ("训练 a_b:1", "x" * 200, "UPPER", "-", "9-lives"):
        run = a_run()
        run = replace(run, run=12, spec=replace(run.spec, name=name))
        body = body_of(run)
        rendering.parse(body)
        assert body["metadata"]["annotations"]["paddlepaddle.org/job-name"] == name


def test_marks_the_object_with_the_run_and_its_account():
    metadata = body_of(a_run())["metadata"]
    assert metadata["labels"] == {
        "paddlepaddle.org/job-id": "job-0123456789abcdef",
        "paddlepaddle.org/run": "1",
    }
    assert metadata["annotations"] == {
        "paddlepaddle.org/account": "alice",
        "paddlepaddle.org/job-name": "quick",
        "paddlepaddle.org/submitted-at": "1700000000.25",
        "paddlepaddle.org/archive": "true",
    }
    assert metadata["namespace"] == "paddlecloud-alice"


# --- templates ---------------------------------------------------------------------------------


def test_asks_for_memory_as_a_limit_and_for_cpu_as_a_share():
    (container,) = template_of(body_of(a_run()))["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "1"},
        "limits": {"memory": "1Gi", "nvidia.com/gpu": "1"},
    }


def test_mounts_the_home_and_what_is_public_and_nothing_else():
    pod = template_of(body_of(a_run()))
    (volume,) = pod["volumes"]
    assert volume == {"name": "paddlecloud-home", **PFS}
    assert [
        (one["mountPath"], one["subPath"], one.get("readOnly", False))
        for one in pod["containers"][0]["volumeMounts"]
    ] == [
        ("/pfs/dc/home/alice", "home/alice", False),
        ("/pfs/dc/public", "public", True),
    ]


def test_gives_pods_an_account_that_may_do_nothing():
    pod = template_of(body_of(a_run()))
    assert pod["serviceAccountName"] == "paddlecloud-job"
    assert pod["automountServiceAccountToken"] is False


def test_keeps_the_runs_own_variables_in_a_secret_that_goes_with_it():
    run = replace(a_run(), secret_env={"PADDLECLOUD_TOKEN": "s3cret"})
    body = body_of(run)
    assert "s3cret" not in json.dumps(body)
    (container,) = template_of(body)["containers"]
    assert {"secretRef": {"name": "quick-01234567.env"}} in container["envFrom"]
    secret = rendering.secret(run, body)
    assert secret is not None
    assert secret["metadata"]["name"] == "quick-01234567.env"
    assert secret["stringData"] == {"PADDLECLOUD_TOKEN": "s3cret"}
    made = {**body, "metadata": {**body["metadata"], "uid": "u-1"}}
    (owner,) = rendering.owned_patch(made)["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("PaddleJob", "u-1")


def test_a_users_variable_wins_over_the_platforms():
    (container,) = template_of(body_of(a_run(env={"PYTHONUNBUFFERED": "", "A": "b"})))["containers"]
    assert variables(container)["PYTHONUNBUFFERED"] == ""
    assert variables(container)["A"] == "b"
    assert variables(container)["JOB_ID"] == "job-0123456789abcdef"
    assert variables(container)["OUTPUT_PATH"] == f"{PACKAGE}/output"


def test_tells_the_attempt_by_the_pods_own_label():
    (container,) = template_of(body_of(a_run()))["containers"]
    (found,) = [one for one in container["env"] if one["name"] == "PADDLECLOUD_ATTEMPT"]
    assert "paddlepaddle.org/attempt" in found["valueFrom"]["fieldRef"]["fieldPath"]


def test_pulls_with_the_registrys_secret():
    pod = template_of(body_of(a_run(registry="pcloud-registry-hub")))
    assert pod["imagePullSecrets"] == [{"name": "pcloud-registry-hub"}]


@pytest.mark.parametrize(
    ("runtime", "image"),
    [("", CONFIG.image), ("gpu", "hub/gpu:1"), ("hub/own:2", "hub/own:2")],
)
def test_takes_a_runtime_for_an_image(runtime, image):
    config = replace(CONFIG, images={"gpu": "hub/gpu:1"})
    (container,) = template_of(body_of(a_run(runtime=runtime), config))["containers"]
    assert container["image"] == image


def test_keeps_a_template_that_came_with_the_job_and_adds_to_it():
    own = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {
            "nodeSelector": {"disk": "ssd"},
            "containers": [
                {"name": "mine", "image": "own:1", "env": [{"name": "X", "value": "1"}]}
            ],
        },
    }
    run = a_run()
    run = replace(
        run, spec=replace(run.spec, roles=(replace(run.spec.trainers, template=own),), entry="")
    )
    body = body_of(run)
    assert body["kind"] == paddlejob.KIND
    pod = template_of(body)
    assert pod["nodeSelector"] == {"disk": "ssd"}
    (container,) = pod["containers"]
    assert (container["name"], container["image"]) == ("mine", "own:1")
    assert "command" not in container
    assert variables(container)["X"] == "1"
    assert variables(container)["JOB_ID"] == run.job_id


# --- which kind --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [Mode.COLLECTIVE, Mode.HETER])
def test_makes_a_paddle_job_of_what_generation_a_did_not_have(mode):
    assert body_of(a_run(mode))["kind"] == paddlejob.KIND


@pytest.mark.parametrize("mode", [Mode.SINGLE, Mode.PS])
def test_makes_a_training_job_of_what_generation_a_had(mode):
    run = a_run(mode, priority=Priority.HIGH, wall_time_s=60, restart=RestartRule(3), group="g_h")
    body = body_of(run)
    assert body["kind"] == trainingjob.KIND
    found, warnings = trainingjob.parse(body)
    assert not warnings
    assert (found.spec.priority, found.spec.wall_time_s) == (Priority.HIGH, 60)
    assert (found.spec.restart.max_restarts, found.spec.group) == (3, "g-h--15f")
    (container,) = template_of(body)["containers"]
    assert variables(container)["JOB_ID"] == run.job_id
    assert "workingDir" not in container


def test_makes_a_paddle_job_of_what_a_training_job_cannot_say():
    """Its number of trainers may vary only in a fault-tolerant job."""
    run = a_run(Mode.PS)
    roles = (replace(run.spec.trainers, replicas=2, max_replicas=4), *run.spec.roles[1:])
    assert body_of(replace(run, spec=replace(run.spec, roles=roles)))["kind"] == paddlejob.KIND


# --- and back ----------------------------------------------------------------------------------

_names = st.from_regex(r"[A-Z_][A-Z0-9_]{0,10}", fullmatch=True)
_texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30)


@st.composite
def specs(draw) -> JobSpec:
    mode = draw(st.sampled_from(list(Mode)))
    amounts = st.builds(Resources, st.integers(1, 64_000), st.integers(1, 2**40), st.integers(0, 8))
    wish = 1 if mode == Mode.SINGLE else draw(st.integers(2, 9))
    least = draw(st.integers(1, wish))
    most = wish if mode == Mode.SINGLE else draw(st.integers(wish, 12))
    roles = [RoleSpec(Role.TRAINER, wish, draw(amounts), least, most)]
    if mode in (Mode.PS, Mode.HETER):
        roles.append(RoleSpec(Role.PSERVER, draw(st.integers(1, 4)), draw(amounts)))
    if mode == Mode.HETER:
        roles.append(RoleSpec(Role.HETER, draw(st.integers(1, 4)), draw(amounts)))
    platforms = rendering.platform_environment(a_run(), CONFIG, "x")
    return JobSpec(
        name=draw(st.sampled_from(["a", "Long-Name", "训练"])),
        mode=mode,
        roles=tuple(roles),
        entry=draw(_texts.filter(bool)),
        package=draw(st.sampled_from(["", PACKAGE])),
        cluster="dc",
        runtime=draw(st.sampled_from(["", "hub/own:2"])),
        registry=draw(st.sampled_from(["", "pcloud-registry-hub"])),
        env=draw(st.dictionaries(_names.filter(lambda n: n not in platforms), _texts, max_size=4)),
        passes=draw(st.integers(1, 9)),
        priority=draw(st.sampled_from(list(Priority))),
        wall_time_s=draw(st.integers(0, 10**6)),
        restart=RestartRule(
            draw(st.integers(0, 9)), frozenset(draw(st.sets(st.integers(1, 255), max_size=3)))
        ),
        clean=draw(st.sampled_from(list(CleanPolicy))),
        grace_s=float(draw(st.integers(1, 300))),
        may_borrow=draw(st.booleans()),
        group=draw(st.sampled_from(["", "owners"])),
    )


@given(specs())
def test_reads_back_the_spec_it_was_given(spec):
    run = replace(a_run(), spec=spec)
    body = json.loads(json.dumps(body_of(run)))
    again = rendering.spec_of(body, CONFIG)
    assert replace(again, roles=()) == replace(spec, roles=())
    assert [(r.role, r.replicas, r.resources) for r in again.roles] == [
        (r.role, r.replicas, r.resources) for r in spec.roles
    ]
    low, high = spec.trainers.min_replicas, spec.trainers.max_replicas
    assert (again.trainers.min_replicas, again.trainers.max_replicas) == (low, high)


def test_keeps_the_templates_of_an_object_that_somebody_wrote():
    template = {"spec": {"containers": [{"name": "x", "image": "own:1", "args": ["train"]}]}}
    body = {
        "kind": "PaddleJob",
        "metadata": {"name": "by-hand", "uid": "u"},
        "spec": {"worker": {"replicas": 2, "template": template}},
    }
    spec = rendering.spec_of(body, CONFIG)
    assert spec.annotations == {"made-with": "kubectl"}
    assert spec.trainers.template == template
    assert spec.name == "by-hand"


def test_hands_dollars_through_as_they_were_written():
    """Kubernetes would read `$$` and `$(HOME)` in a command, and in a variable, as its own."""
    entry, value = "echo $$ $(HOME) $HOME", "a$$b$(HOME)"
    run = a_run(env={"X": value})
    body = body_of(replace(run, spec=replace(run.spec, entry=entry)))
    (container,) = template_of(body)["containers"]
    assert container["command"][-1] == "echo $$$$ $$(HOME) $$HOME"
    assert variables(container)["X"] == "a$$$$b$$(HOME)"
    again = rendering.spec_of(body, CONFIG)
    assert (again.entry, again.env["X"]) == (entry, value)
