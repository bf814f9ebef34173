"""The whole platform on a node whose pods really run: files, output, logs, exits."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.kube.platform import Platform, platform_of_alice
from tests.kube.running import RealCluster, until

pytestmark = [pytest.mark.e2e, pytest.mark.needs("kube", "node")]

TRAIN = """
import os, sys, time
rank = os.environ["PADDLE_TRAINER_ID"]
print("trainer", rank, "of", os.environ["PADDLE_TRAINERS_NUM"], "in", os.getcwd(), flush=True)
with open(os.path.join(os.environ["OUTPUT_PATH"], "model-" + rank), "w") as file:
    file.write("trained")
if len(sys.argv) > 1:
    print("going wrong", file=sys.stderr, flush=True)
    sys.exit(int(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def platform(
    real_cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Platform]:
    """Its files are a folder of the node, which Pod Security has to let through."""
    folder = tmp_path_factory.mktemp("platform")
    state = real_cluster.shared / "platform"
    volume = {"hostPath": {"path": str(state / "pfs"), "type": "Directory"}}
    words = ("--image", real_cluster.image, "--pfs-volume", json.dumps(volume))
    settings = {"PADDLECLOUD_KUBE_POD_SECURITY": "privileged"}
    with platform_of_alice(
        real_cluster, real_cluster.kubeconfig, folder, state, *words, **settings
    ) as made:
        (folder / "package" / "train.py").write_text(TRAIN)
        yield made


def _submit(platform: Platform, name: str, entry: str, *words: str) -> None:
    size = ("-cpu", "100m", "-memory", "64Mi", "-entry", entry)
    platform.run("submit", "-jobname", name, *size, *words, "package")


def test_a_job_trains_on_its_files_and_its_log_outlives_its_pods(platform: Platform) -> None:
    _submit(platform, "fit", "python3 train.py", "--mode", "collective", "-p", "2")
    platform.run("wait", "--timeout", "120s", "fit")
    where = "/pfs/local/home/alice/jobs/fit"
    for rank in range(2):
        log = platform.run("logs", "-w", f"fit-trainer-{rank}", "fit")
        assert log == f"trainer {rank} of 2 in {where}\n"
        assert platform.run("pfs", "cat", f"{where}/output/model-{rank}") == "trained"
    # By default the pods of a job that ended well are deleted.
    until(lambda: not platform.objects("pods"), "the pods are gone", within_s=120)
    assert "LogLost" not in platform.run("events", "fit")
    assert "trainer 0 of 2" in platform.run("logs", "fit")


def test_a_failure_is_told_with_its_code_and_last_words(platform: Platform) -> None:
    _submit(platform, "breaks", "python3 train.py 7", "--mode", "single")
    platform.run("wait", "--timeout", "120s", "breaks", code=10)
    said = platform.run("describe", "breaks")
    assert "exit 7 in trainer-0" in said
    assert "going wrong" in said


def test_an_image_that_is_not_there_is_named(platform: Platform) -> None:
    _submit(platform, "no-image", "true", "--mode", "single", "-image", "localhost/none:1")

    def named() -> bool:
        return "localhost/none:1" in platform.json("describe", "no-image")["reason"]

    until(named, "the image is named")
    platform.run("kill", "--wait", "no-image")


def test_what_a_job_prints_is_followed_while_it_runs(platform: Platform) -> None:
    entry = "echo ready; while [ ! -e go ]; do sleep 0.1; done; echo over"
    _submit(platform, "talks", entry, "--mode", "single")
    until(lambda: "ready" in platform.run("logs", "talks"), "its first line is there")
    (platform.folder / "go").write_text("")
    platform.run("pfs", "cp", "go", "/pfs/local/home/alice/jobs/talks/go")
    followed = platform.run("logs", "-f", "talks")
    assert [line.split("| ")[-1] for line in followed.splitlines()][-1] == "over"


def test_the_log_of_a_job_made_with_kubectl_outlives_its_pods(platform: Platform) -> None:
    _submit(platform, "makes-room", "true", "--mode", "single")  # the namespace is there now
    platform.run("wait", "--timeout", "120s", "makes-room")
    container = {"name": "main", "image": "localhost/paddlecloud/base:1"}
    container["command"] = ["sh", "-c", "echo made by hand"]  # type: ignore[assignment]
    body = {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "by-hand"},
        "spec": {"worker": {"replicas": 2, "template": {"spec": {"containers": [container]}}}},
    }
    platform.kubectl("apply", "-f", "-", text=json.dumps(body))
    until(lambda: "by-hand" in platform.run("get", "jobs"), "it is listed")
    platform.run("wait", "--timeout", "120s", "by-hand")
    its_pods = ("get", "pods", "-l", "paddlepaddle.org/job=by-hand", "-o", "name")
    until(lambda: not platform.kubectl(*its_pods), "the pods are gone")
    for rank in range(2):
        assert platform.run("logs", "-w", f"by-hand-trainer-{rank}", "by-hand") == "made by hand\n"
