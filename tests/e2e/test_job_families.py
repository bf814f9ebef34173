"""`algo`, `cluster`, `token` and `config` of the second client against a real platform."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.platform import Platform


def test_jobs_belong_to_an_algorithm(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('trained')\n")
    made = json.loads(platform.ok("algo", "create", "--algo-name", "ctr_v2"))
    words = (
        "job", "train", "--job-name", "in:it", "--start-cmd", "python3 train.py",
        "--k8s-memory", "64Mi", "--files", str(tmp_path / "train.py"), "--json",
    )  # fmt: skip
    wrong = platform.run(*words, "--algo-id", "algo-0000000000000000")
    assert wrong.returncode == 1
    assert "there is no such algorithm you may use" in wrong.stdout
    job_id = json.loads(platform.ok(*words, "--algo-id", made["algoId"]))["jobId"]
    with platform.client() as client:
        job = client.wait(job_id, timeout_s=60)
    assert job is not None
    assert job["phase"] == "Succeeded"
    found = json.loads(platform.ok("algo", "info", made["algoId"]))
    assert [(each["jobName"], each["jobStatus"]) for each in found["jobList"]] == [
        ("in:it", "success")
    ]
    assert "ctr_v2" in platform.ok("algo")
    assert json.loads(platform.ok("job", "info", job_id))["algoId"] == made["algoId"]
    platform.ok("algo", "delete", made["algoId"])
    assert platform.run("algo", "info", made["algoId"]).returncode == 1


def test_tells_clusters_by_the_server_that_is_configured(platform: Platform) -> None:
    platform.ok("config", "--host", "127.0.0.1", "--port", str(platform.port))
    (cluster,) = json.loads(platform.ok("cluster", "info", "--json"))["clusters"]
    assert (cluster["clusterName"], cluster["engine"]) == ("local", "embedded")
    assert cluster["groups"][0]["groupName"] == "alice"
    assert platform.ok("cluster", "list").splitlines()[3].startswith("local ")
    assert platform.run("cluster", "info", "--cluster-name", "yq01").returncode == 1
    stored = platform.home / ".paddlecli" / "config"
    assert stored.stat().st_mode & 0o777 == 0o600
    platform.ok("config", "--host", "127.0.0.1", "--port", "1")
    assert platform.run("cluster", "list").returncode == 1
    stored.unlink()
