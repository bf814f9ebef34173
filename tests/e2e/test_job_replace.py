"""`paddlecloud job replace` against a real platform: real processes end and start again."""

from __future__ import annotations

import json
from pathlib import Path

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
