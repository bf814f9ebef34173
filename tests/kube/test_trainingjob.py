"""What happens to a TrainingJob on a real API server."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from tests.kube import running
from tests.kube.running import ROOT
from tests.kube.test_jobs import paddle_job, role

pytestmark = [pytest.mark.e2e, pytest.mark.needs("kube")]

EXAMPLES = ROOT / "examples" / "trainingjob"


def training_job(name: str = "job", **spec: Any) -> dict[str, Any]:
    trainer = {"entrypoint": "python train.py", "min-instance": 1, "max-instance": 1}
    return {
        "apiVersion": "paddlepaddle.org/v1",
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": {"image": "demo:v1", "trainer": trainer, **spec},
    }


def until_phase(namespace: Any, phase: str, job: str = "job") -> None:
    wanted = "--for=jsonpath={.status.phase}=" + phase
    namespace.kubectl("wait", f"tj/{job}", wanted, "--timeout=180s")


def test_runs_beside_a_paddle_job_of_the_same_name(namespace, operator):
    sizes = {"min-instance": 1, "max-instance": 3}
    trainer = {"entrypoint": "python train.py", "workspace": "/work", **sizes}
    job = training_job(fault_tolerant=True, trainer=trainer, pserver={"min_instance": 1})
    namespace.apply(job)
    namespace.apply(paddle_job(worker=role(1), ps=role(1)))
    until_phase(namespace, "running")
    namespace.until_phase("Running")
    assert sorted(namespace.pods()) == [
        "job-ps-0",
        "job-pserver-0",
        "job-trainer-0",
        "job-worker-0",
    ]
    row = namespace.kubectl("get", "tj", "job", "--no-headers").split()
    assert row[:4] == ["job", "running", "PS", "2/2"]

    namespace.kubectl("scale", "tj/job", "--replicas=3")
    namespace.kubectl("wait", "tj/job", "--for=jsonpath={.status.ready}=4/4", "--timeout=180s")
    scale = json.loads(namespace.kubectl("get", "tj/job", "--subresource=scale", "-o", "json"))
    assert len(namespace.pods("-l", scale["status"]["selector"])) == 3
    assert namespace.get("configmap/job.trainingjob")["data"]["PADDLE_TRAINERS_NUM"] == "3"
    assert namespace.get("configmap/job")["data"]["PADDLE_TRAINERS_NUM"] == "1"

    finished = ("-l", "paddle-res-type=trainer", "pretend/complete-after=0s")
    namespace.kubectl("annotate", "pods", *finished)
    until_phase(namespace, "succeeded")
    states = namespace.get("tj/job")["status"]["replica_statuses"]
    assert states[0]["resource_states"] == {"succeeded": 3}
    assert namespace.status()["phase"] == "Running"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"trainer": {"min-instance": 3, "max-instance": 2}}, "min-instance is more than"),
        ({"trainer": None}, "write spec.trainer"),
    ],
)
def test_is_refused_if_it_can_never_work(namespace, spec, words):
    body = training_job(**spec)
    body["spec"] = {key: value for key, value in body["spec"].items() if value is not None}
    complaint = namespace.kubectl("apply", "-f", "-", text=json.dumps(body), ok=False)
    assert words in complaint


def test_says_what_is_wrong_with_what_the_schema_lets_through(namespace, operator):
    namespace.apply(training_job(trainer={"entrypoint": "x", "min_instance": 1, "maxInstance": 2}))
    namespace.kubectl("wait", "tj/job", "--for=condition=Valid=False", "--timeout=180s")
    reason = namespace.get("tj/job")["status"]["reason"]
    assert "max-instances should equal to min-instances" in reason


# --- the examples ----------------------------------------------------------------------------


def test_runs_the_examples(namespace, operator):
    source = f"--from-file={EXAMPLES / 'fit_a_line.py'}"
    namespace.kubectl("create", "configmap", "fit-a-line-program", source)
    for name in ("raw_job", "autoscale_job", "autoscale_load"):
        namespace.apply(EXAMPLES / f"{name}.yaml")
    until_phase(namespace, "running", "fit-a-line")
    until_phase(namespace, "running", "elastic-fit-a-line")
    namespace.kubectl("scale", "tj/elastic-fit-a-line", "--replicas=4")
    ready = "--for=jsonpath={.status.ready}=5/5"
    namespace.kubectl("wait", "tj/elastic-fit-a-line", ready, "--timeout=180s")
    namespace.kubectl("rollout", "status", "deployment/load", "--timeout=180s")
    odd = [
        condition
        for job in namespace.get("tj")["items"]
        for condition in job["status"]["conditions"]
        if condition["type"] == "OddSpec"
    ]
    assert odd == []
    assert len(namespace.pods()) == 4 + 5 + 2


@pytest.mark.needs("kube", "node")
def test_learns_in_real_pods(real_cluster, real_namespace, tmp_path):
    source = f"--from-file={EXAMPLES / 'fit_a_line.py'}"
    real_namespace.kubectl("create", "configmap", "fit-a-line-program", source)
    job = yaml.safe_load((EXAMPLES / "raw_job.yaml").read_text())
    job["spec"] |= {"image": real_cluster.image, "passes": 4}
    job["spec"]["trainer"]["entrypoint"] = "cat /trainer_id /trainer_count && python3 fit_a_line.py"
    job["spec"]["pserver"]["entrypoint"] = "python3 fit_a_line.py"
    log = tmp_path / "operator.log"
    with running.operator(real_cluster, log, "--namespace", real_namespace.name):
        real_namespace.apply(job)
        until_phase(real_namespace, "succeeded", "fit-a-line")
    said = real_namespace.kubectl("logs", "fit-a-line-trainer-1")
    assert said.startswith("1\n2\n")
    losses = [float(loss) for loss in re.findall(r"trainer 1 pass \d+ loss ([0-9.]+)", said)]
    assert len(losses) == job["spec"]["passes"]
    assert losses[-1] < losses[0] / 10
