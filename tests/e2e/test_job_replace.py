"""`paddlecloud job replace` against a real platform: real processes end and start again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.platform import Platform, until

PROGRAM = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("up", os.environ["PADDLECLOUD_ATTEMPT"])
time.sleep(600)
"""


def info(platform: Platform, job_id: str) -> dict:
    return dict(json.loads(platform.ok("job", "info", job_id)))


def test_moves_the_pods_that_are_named_and_no_other(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "wait.py").write_text(PROGRAM)
    answer = platform.ok(
        "job", "train", "--job-name", "to:move", "--start-cmd", "python3 wait.py", "--files",
        str(tmp_path / "wait.py"), "--k8s-trainers", "3", "--distribute-job-type", "NCCL2",
        "--k8s-memory", "64Mi", "--json",
    )  # fmt: skip
    job_id = json.loads(answer)["jobId"]
    with platform.client() as client:
        client.wait(job_id, "running", timeout_s=60)
        pods = info(platform, job_id)["trainerList"]
        for index in range(3):
            until(lambda i=index: "up 1" in client.logs(job_id, f"trainer-{i}"))

        wrong = platform.run("job", "replace", job_id, "--pods", "pod=job-x-trainer-9,host=h")
        assert wrong.returncode == 1
        assert f"the job has {job_id}-trainer-0" in wrong.stderr
        elsewhere = platform.run(
            "job", "replace", job_id, "--pods", f"pod={pods[1]['resourceName']},host=10.1.1.1"
        )
        assert elsewhere.returncode == 1
        assert f"is not on 10.1.1.1; it is on {pods[1]['host']}" in elsewhere.stderr

        both = ";".join(f"pod={pod['resourceName']},host={pod['host']}" for pod in pods[1:])
        moved = json.loads(platform.ok("job", "replace", job_id, "--pods", both))
        assert (moved["code"], moved["data"]["jobIds"]) == (0, [job_id])
        for index, attempt in ((1, 2), (2, 2)):
            until(
                lambda i=index, n=attempt: f"up {n}" in client.logs(job_id, f"trainer-{i}"),
                within_s=60,
            )
        attempts = {r["index"]: r["attempt"] for r in client.replicas(job_id)}
        assert attempts == {0: 1, 1: 2, 2: 2}
        assert client.get(job_id)["restarts"] == 0
        said = [each["message"] for each in client.events(job_id) if each["reason"] == "Moved"]
        assert sorted(text.split(" (")[0] for text in said) == [
            f"trainer-{i} had to leave {pods[i]['host']}; it starts again, attempt 2"
            for i in (1, 2)
        ]
    assert len(info(platform, job_id)["trainerList"]) == 3
    platform.ok("job", "kill", job_id)


RANK_OF_PADDLE = """
import os, sys, time, warnings
os.environ.update(OMP_NUM_THREADS="1", GLOG_minloglevel="2", PADDLE_DISTRI_BACKEND="gloo")
warnings.filterwarnings("ignore")
import paddle, paddle.distributed as dist
paddle.disable_signal_handler()
dist.init_parallel_env()
steps = 100 if os.environ["PADDLECLOUD_ATTEMPT"] != "1" else 10**6
for step in range(steps):
    total = paddle.to_tensor([1.0])
    dist.all_reduce(total)
    if step == 0:
        print("together", int(total.numpy()[0]), flush=True)
    time.sleep(0.02)
print("done", flush=True)
"""


def _has_met(log: str) -> bool:
    assert "Error" not in log, log
    return "together 2" in log


@pytest.mark.paddle
@pytest.mark.slow
def test_a_collective_job_of_paddle_goes_on_after_a_rank_was_moved(
    platform: Platform, paddle_python: Path, tmp_path: Path
) -> None:
    """The rank that stays fails with its partner gone; all start together, at no cost."""
    platform.ok("runtime", "add", "paddle-v3.0.0", str(paddle_python.parent.parent))
    (tmp_path / "rank.py").write_text(RANK_OF_PADDLE)
    answer = platform.ok(
        "job", "train", "--job-name", "ranks", "--start-cmd", "python rank.py", "--files",
        str(tmp_path / "rank.py"), "--k8s-trainers", "2", "--distribute-job-type", "NCCL2",
        "--k8s-memory", "2Gi", "--job-version", "paddle-v3.0.0", "--json",
    )  # fmt: skip
    job_id = json.loads(answer)["jobId"]
    with platform.client() as client:
        client.wait(job_id, "running", timeout_s=60)
        for index in (0, 1):
            until(lambda i=index: _has_met(client.logs(job_id, f"trainer-{i}")), within_s=90)
        pod = info(platform, job_id)["trainerList"][1]
        platform.ok(
            "job", "replace", job_id, "--pods", f"pod={pod['resourceName']},host={pod['host']}"
        )
        job = client.wait(job_id, timeout_s=180)
        assert job is not None
        said = [f"{each['reason']}: {each['message']}" for each in client.events(job_id)]
        assert (job["phase"], job["restarts"]) == ("Succeeded", 0), said
        assert sum(each.startswith("Moved") for each in said) == 1
        for index in (0, 1):
            assert "together 2" in client.logs(job_id, f"trainer-{index}")
