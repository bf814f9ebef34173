"""Jobs in real pods: a kubelet, a container runtime, our operator, and PaddlePaddle that trains.

All jobs are applied at once and share the machine; each test waits for its own.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from paddlecloud.controller import manifests
from tests.kube.real_pods import operator_manifests, paddle_role, shell_role
from tests.kube.running import ROOT, Namespace, RealCluster, until
from tests.kube.test_jobs import paddle_job

pytestmark = [pytest.mark.e2e, pytest.mark.paddle, pytest.mark.needs("kube", "node")]

WIDE_AND_DEEP = ROOT / "examples" / "wide_and_deep"
COLLECTIVE = ROOT / "examples" / "collective"
TRAINING_S = 240.0
# Fewer rounds than the examples make: enough to see the loss fall.
SHORTER = "import train; train.EPOCHS = 2; train.main()"
FOREVER = "while true; do sleep 1; done"
SERVES_ITS_NAME = """
echo here I am
cd /tmp
hostname > name
exec python3 -m http.server $PADDLE_PORT
"""


ASK = """
import sys, time, urllib.error, urllib.request
for _ in range(300):
    try:
        print(urllib.request.urlopen(sys.argv[1]).read().decode())
        break
    except urllib.error.URLError:
        time.sleep(0.1)
"""


def _jobs(cluster: RealCluster) -> list[dict[str, Any]]:
    def trains(program: Any) -> dict[str, Any]:
        return paddle_role(cluster, 2, program, SHORTER)

    # More than it may have, by a program that is not told no by Python itself.
    greedy = "x = b'x' * (1 << 28); print(len(x))"
    little = {"resources": {"limits": {"memory": "64Mi"}}}
    return [
        paddle_job(
            "clicks", worker=trains(WIDE_AND_DEEP), ps=trains(WIDE_AND_DEEP), cleanPodPolicy="Never"
        ),
        paddle_job("shapes", worker=trains(COLLECTIVE), cleanPodPolicy="Never"),
        paddle_job("talk", worker=shell_role(cluster, 2, SERVES_ITS_NAME)),
        paddle_job("named", worker=shell_role(cluster, 2, SERVES_ITS_NAME), intranet="Service"),
        paddle_job("greedy", worker=shell_role(cluster, 1, f'python3 -c "{greedy}"', **little)),
        paddle_job("no-image", worker=shell_role(cluster, 1, FOREVER, image="localhost/none:1")),
    ]


@pytest.fixture(scope="module")
def jobs(real_cluster: RealCluster) -> Iterator[Namespace]:
    """All jobs, looked after by an operator in the cluster, with the rights it has there."""
    home, namespace = "real-operator", Namespace(real_cluster, "real-jobs")
    objects = operator_manifests(real_cluster, home, namespace.name)
    here = f"deployment/{manifests.NAME}"
    try:
        real_cluster.kubectl("apply", "-f", "-", text=manifests.as_yaml(objects))
        for job in _jobs(real_cluster):
            namespace.apply(job)
        real_cluster.kubectl("-n", home, "rollout", "status", here, "--timeout=180s")
        yield namespace
        lines = real_cluster.kubectl("-n", home, "logs", here).splitlines()
        rows = [json.loads(line) for line in lines]
        assert [row for row in rows if row["level"] == "error"] == []
        assert [row for row in rows if "forbidden" in row["message"]] == []
    finally:
        namespace.remove()
        text = manifests.as_yaml(objects)
        real_cluster.kubectl("delete", "-f", "-", "--wait=false", text=text)


def _losses(log: str) -> list[float]:
    return [float(found) for found in re.findall(r"epoch \d+ step \d+ loss ([0-9.]+)", log)]


def test_says_which_image_is_missing(jobs):
    reason = until(lambda: _reason_with(jobs, "no-image", "cannot be pulled"), "the reason")
    assert reason.startswith("no-image-worker-0 the image localhost/none:1 cannot be pulled")
    jobs.kubectl("delete", "pdj/no-image", "--timeout=180s")


def _reason_with(jobs: Namespace, job: str, word: str) -> str:
    reason = str(jobs.status(job).get("reason", ""))
    return reason if word in reason else ""


def test_says_when_a_pod_had_too_little_memory(jobs):
    jobs.until_phase("Failed", "greedy")
    assert "out of memory" in jobs.status("greedy")["reason"]
    ended = jobs.pods()["greedy-worker-0"]["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["reason"] == "OOMKilled"


def test_lets_people_in_and_pods_talk(jobs):
    jobs.until_phase("Running", "talk")
    until(lambda: jobs.kubectl("logs", "talk-worker-1").startswith("here I am\n"), "its first line")
    variables = _environment(jobs, "talk-worker-0")
    pods = jobs.pods()
    addresses = [pods[f"talk-worker-{index}"]["status"]["podIP"] for index in range(2)]
    assert variables["POD_IP"] == addresses[0]
    assert variables["PADDLE_TRAINERS"].split(",") == addresses
    mounted = jobs.kubectl(
        "exec", "talk-worker-0", "--", "cat", "/var/run/paddlecloud/peers/PADDLE_TRAINERS"
    )
    assert mounted.split(",") == addresses
    there = f"{addresses[1]}:{variables['PADDLE_PORT']}"
    assert _fetch(jobs, "talk-worker-0", there) == "talk-worker-1\n"
    jobs.kubectl("delete", "pdj/talk", "--timeout=180s")


def test_lets_pods_find_each_other_by_name(jobs):
    jobs.until_phase("Running", "named")
    endpoints = _environment(jobs, "named-worker-0")["PADDLE_TRAINER_ENDPOINTS"]
    first, second = endpoints.split(",")
    assert (first.split(":")[0], second.split(":")[0]) == ("named-worker-0", "named-worker-1")
    assert _fetch(jobs, "named-worker-0", second) == "named-worker-1\n"
    jobs.kubectl("delete", "pdj/named", "--timeout=180s")


def _environment(jobs: Namespace, pod: str) -> dict[str, str]:
    seen = jobs.kubectl("exec", pod, "--", "env")
    return dict(line.split("=", 1) for line in seen.splitlines())


def _fetch(jobs: Namespace, pod: str, address: str) -> str:
    """What the other pod serves once it listens, asked for inside this one."""
    asked = ("exec", pod, "--", "python3", "-c", ASK, f"http://{address}/name")
    return jobs.kubectl(*asked).replace("\n\n", "\n")


def _why_failed(jobs: Namespace, job: str, status: dict[str, Any]) -> str:
    """All that is known, as the cluster goes with the tests."""
    pods = jobs.kubectl("get", "pods", "-o", "name").split()
    names = [name for name in pods if name.startswith(f"pod/{job}-")]
    logs = [f"--- {name}\n{jobs.kubectl('logs', name, '--tail=30')}" for name in names]
    return "\n".join([json.dumps(status, indent=1), *logs])


def _until_trained(jobs: Namespace, job: str) -> None:
    """Four trainers and two servers share the machine's cores, and maybe not alone."""
    deadline = time.monotonic() + TRAINING_S
    while (status := jobs.status(job)).get("phase") != "Completed":
        assert status.get("phase") != "Failed", _why_failed(jobs, job, status)
        assert time.monotonic() < deadline, status
        time.sleep(0.5)


def test_trains_collectively(jobs):
    _until_trained(jobs, "shapes")
    log = jobs.kubectl("logs", "shapes-worker-0")
    losses = _losses(log)
    assert "rank 0 of 2 ready" in log
    assert losses[-1] < losses[0] / 2
    assert "rank 1 of 2 ready" in jobs.kubectl("logs", "shapes-worker-1")


def test_trains_with_parameter_servers(jobs, real_cluster):
    _until_trained(jobs, "clicks")
    for index in range(2):
        log = jobs.kubectl("logs", f"clicks-worker-{index}")
        losses = _losses(log)
        assert f"trainer {index} of 2" in log
        assert losses[-1] < losses[0] * 0.7
    assert (real_cluster.shared / "model" / "wide_and_deep.pdmodel").exists()
    # The servers are stopped in place, and can still be read.
    jobs.kubectl("wait", "pod/clicks-ps-0", "--for=jsonpath={.status.phase}=Failed")
    assert "listening on" in jobs.kubectl("logs", "clicks-ps-0")
    assert jobs.status("clicks")["phase"] == "Completed"
