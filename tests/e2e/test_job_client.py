"""Scripts of the second client, run unchanged against a real platform."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from paddlecloud.sdk import Client
from tests.e2e.platform import CLI, Platform
from tests.patience import PATIENCE_S

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "job_client"
PFS = "/pfs/local/home/alice"


def in_folder(
    platform: Platform, folder: Path, *words: str, **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=folder,
        env={**platform.env, "PATH": f"{CLI.parent}:{os.environ['PATH']}", **env},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
    )


def train(platform: Platform, folder: Path, *words: str) -> str:
    """The id of a job that was accepted."""
    done = in_folder(platform, folder, str(CLI), "job", "train", *words, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return str(json.loads(done.stdout)["jobId"])


def ended(platform: Platform, job_id: str) -> dict:
    with platform.client() as client:
        job = client.wait(job_id, timeout_s=60)
    assert job is not None, f"{job_id} did not end"
    return dict(job)


def logs(client: Client, job_id: str, count: int) -> list[str]:
    return [client.logs(job_id, f"trainer-{index}") for index in range(count)]


def test_the_script_of_the_example_runs_unchanged(platform: Platform, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    shutil.copytree(EXAMPLE, folder)
    config = folder / "config.ini"
    config.write_text(config.read_text().replace("USER", "alice"))
    assert in_folder(platform, folder, "python3", "make_data.py", "data").returncode == 0
    for part in sorted((folder / "data").iterdir()):
        platform.ok("file", "put", str(part), f"{PFS}/line/{part.name}")

    key = json.loads(platform.ok("account", "key", "--scope", "submit", "-o", "json"))
    own = {"PADDLECLOUD_AK": key["ak"], "PADDLECLOUD_SK": key["sk"], "GROUP_NAME": "alice"}
    done = in_folder(platform, folder, "bash", "paddlecloud_run.sh", **own)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Congratulations! The new job is ready for training." in done.stdout
    assert '"groupName": "alice"' in done.stdout
    match = re.search(r"^(job-[0-9a-f]{16}) success$", done.stdout, re.MULTILINE)
    assert match is not None
    assert "user,password" not in done.stdout + done.stderr

    with platform.client() as client:
        texts = logs(client, match.group(1), 2)
        assert "user,password" not in json.dumps(client.get(match.group(1)))
    for rank, text in enumerate(texts):
        assert f"before_hook: 2 files for trainer {rank}" in text
        assert "from 400 samples" in text
        assert f"trainer {rank} of 2 read part-0000{rank}" in text
        target = tmp_path / f"model-{rank}.json"
        platform.ok("file", "get", f"{PFS}/line_model/rank-0000{rank}/model.json", str(target))
        learnt = json.loads(target.read_text())
        assert abs(learnt["slope"] - 3.0) < 0.1
        log = tmp_path / f"train-{rank}.log"
        platform.ok("file", "get", f"{PFS}/line_model/rank-0000{rank}/train.log", str(log))
        assert "from 400 samples" in log.read_text()

    listed = platform.ok("job", "list", "--job-name", _name_in(done.stdout, platform, match))
    assert re.search(r"jobStatus:\s*success", listed)
    info = json.loads(platform.ok("job", "info", match.group(1)))
    assert info["startCMD"] == "python train.py"
    assert [each["resourceName"] for each in info["trainerList"]] == [
        f"{match.group(1)}-trainer-{rank}" for rank in (0, 1)
    ]


def _name_in(out: str, platform: Platform, match: re.Match[str]) -> str:
    name = json.loads(platform.ok("job", "info", match.group(1)))["jobName"]
    assert re.fullmatch(r"line_fit:\d{8}", name)
    return str(name)


@pytest.mark.needs("bubblewrap")  # elsewhere /root/paddlejob is not ours to make
def test_a_job_has_the_workspace_and_the_variables_it_expects(
    platform: Platform, tmp_path: Path
) -> None:
    (tmp_path / "look.py").write_text(
        "import os\n"
        "print(sorted(os.listdir('.')))\n"
        "env = os.environ\n"
        "print(env['PADDLE_IS_LOCAL'], env['PADDLE_JOB_NAME'], env['MY_OWN'])\n"
        "print(os.path.realpath('/root/paddlejob/workspace/env_run') == os.getcwd())\n"
    )
    (tmp_path / "c.ini").write_text("MY_OWN = 'x y'\n")
    job_id = train(
        platform, tmp_path, "--job-name", "look 1:2", "--start-cmd", "python look.py",
        "--files", "look.py", "--job-conf", "c.ini",
    )  # fmt: skip
    assert ended(platform, job_id)["phase"] == "Succeeded"
    with platform.client() as client:
        lines = client.logs(job_id, "trainer-0").splitlines()
    folders = ["log", "look.py", "output", "test_data", "thirdparty", "train_data"]
    assert lines[0] == str(folders)
    assert lines[1] == "1 look 1:2 x y"
    assert lines[2] == "True"


def test_kill_delete_and_rerun_several(platform: Platform, tmp_path: Path) -> None:
    words = ("--start-cmd", "sleep 300", "--k8s-memory", "64Mi")
    one, two = (train(platform, tmp_path, "--job-name", "same", *words) for _ in range(2))
    assert one != two
    platform.ok("job", "kill", f"{one},", two)
    for job_id in (one, two):
        assert ended(platform, job_id)["phase"] == "Killed"
        assert json.loads(platform.ok("job", "state", job_id))["jobStatus"] == "killed"
    platform.ok("job", "rerun", one)
    with platform.client() as client:
        assert client.get(one)["run"] == 2
    platform.ok("job", "kill", one)
    ended(platform, one)
    platform.ok("job", "delete", f"{one},{two}")
    done = platform.run("job", "state", one)
    assert (done.returncode, done.stderr.startswith("Error occurred: ")) == (1, True)


def test_a_failing_before_hook_fails_the_job(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "before_hook.sh").write_text("exit 3\n")
    job_id = train(
        platform,
        tmp_path,
        "--job-name",
        "h",
        "--start-cmd",
        "echo ran",
        "--files",
        "before_hook.sh",
    )
    assert ended(platform, job_id)["phase"] == "Failed"
    assert json.loads(platform.ok("job", "state", job_id))["jobStatus"] == "fail"
    with platform.client() as client:
        text = client.logs(job_id, "trainer-0")
    assert text == "paddlejob: before_hook.sh failed with exit code 3\n"


@pytest.mark.paddle
@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "flags", "trained"),
    [
        ("collective", ("--distribute-job-type", "NCCL2"), "accuracy"),
        ("wide_and_deep", ("--distribute-job-type", "PSERVER", "--k8s-ps-num", "1"), "test loss"),
    ],
)
def test_real_paddle_trains_by_the_flags_of_the_second_client(
    platform: Platform, paddle_python: Path, example: str, flags: tuple[str, ...], trained: str
) -> None:
    platform.ok("runtime", "add", "paddle-v3.0.0", str(paddle_python.parent.parent))
    job_id = train(
        platform, EXAMPLE.parent, "--job-name", f"{example}:1", "--job-version", "paddle-v3.0.0",
        "--start-cmd", f"cd {example} && python train.py", "--file-dir", example,
        "--k8s-trainers", "2", "--k8s-memory", "2Gi", "--k8s-ps-memory", "2Gi", *flags,
    )  # fmt: skip
    with platform.client() as client:
        job = client.wait(job_id, timeout_s=240)
        text = client.logs(job_id, "trainer-0")
    assert job is not None
    assert (job["phase"], trained in text) == ("Succeeded", True), text[-2000:]
