"""Every published PaddleJob, applied unchanged with kubectl, runs and completes."""

from __future__ import annotations

import pytest

from tests.kube.running import EXAMPLES

pytestmark = [pytest.mark.e2e, pytest.mark.needs("kube")]


@pytest.mark.parametrize(
    ("files", "job", "mode", "pods", "kept"),
    [
        (["wide_and_deep"], "wide-ande-deep", "PS", 4, True),
        (["resnet"], "resnet", "Collective", 2, True),
        (["wide_and_deep_p100"], "wide-ande-deep", "PS", 4, False),
        (["pv-pvc", "data_demo"], "paddlejob-demo-1", "PS", 4, False),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_runs_to_its_end(namespace, operator, files, job, mode, pods, kept):
    try:
        for file in files:
            namespace.apply(EXAMPLES / f"{file}.yaml")
        namespace.until_phase("Running", job)
        row = namespace.kubectl("get", "pdj", job, "--no-headers").split()
        assert row[:4] == [job, "Running", mode, f"{pods}/{pods}"]
        made = namespace.pods()
        assert len(made) == pods
        data = namespace.get(f"configmap/{job}")["data"]
        hosts = [
            pod["metadata"]["name"] if "p100" in files[0] else pod["status"]["podIP"]
            for name, pod in sorted(made.items())
            if "-worker-" in name
        ]
        assert data["PADDLE_TRAINERS"].split(",") == hosts
        namespace.finish()
        namespace.until_phase("Completed", job)
        namespace.kubectl("wait", "--for=condition=Complete", f"pdj/{job}", "--timeout=10s")
        if kept:
            phases = {pod["status"]["phase"] for pod in namespace.pods().values()}
            assert phases <= {"Succeeded", "Failed"}
            assert len(namespace.pods()) == pods
        else:
            namespace.kubectl("wait", "--for=delete", "pods", "--all", "--timeout=180s")
            assert namespace.get("services")["items"] == []
    finally:
        if "pv-pvc" in files:  # a volume belongs to no namespace
            namespace.kubectl("delete", "pvc,pv", "--all", "--wait=false")


def test_places_pods_where_the_selector_says(namespace, operator):
    namespace.apply(EXAMPLES / "wide_and_deep_p100.yaml")
    namespace.until_phase("Running", "wide-ande-deep")
    nodes = namespace.cluster.kubectl(
        "get", "nodes", "-l", "accelerator=nvidia-tesla-p100", "-o", "name"
    )
    allowed = {line.removeprefix("node/") for line in nodes.split()}
    assert {pod["spec"]["nodeName"] for pod in namespace.pods().values()} <= allowed


def test_hands_all_roles_to_the_scheduler_the_worker_names(namespace, operator):
    # Without Volcano its PodGroup is refused, and nobody places the pods.
    complaint = namespace.kubectl(
        "apply", "-f", str(EXAMPLES / "wide_and_deep_volcano.yaml"), ok=False
    )
    assert "PodGroup" in complaint
    namespace.kubectl(
        "wait", "pdj/wide-ande-deep", "--for=jsonpath={.status.worker.pending}=2", "--timeout=180s"
    )
    made = namespace.pods()
    assert len(made) == 4
    assert {pod["spec"]["schedulerName"] for pod in made.values()} == {"volcano"}
    assert "volcano, which is not installed" in namespace.status("wide-ande-deep")["reason"]
    events = {one["reason"] for one in namespace.get("events")["items"]}
    assert "NoVolcano" in events
