"""The scripts of examples/run_scripts, unchanged, with real PaddlePaddle on a real platform."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.platform import CLI, Platform

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PFS = "/pfs/local/home/alice"
SCRIPTS = ("single", "collective", "parameter_server")


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The examples with a user's name in their configuration."""
    target = tmp_path / "examples"
    shutil.copytree(EXAMPLES, target, ignore=shutil.ignore_patterns("__pycache__"))
    for name in SCRIPTS:
        config = target / "run_scripts" / name / "config.ini"
        config.write_text(config.read_text().replace("USER", "alice"))
    return target


def run(platform: Platform, script: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(script)],
        env={**platform.env, "PATH": f"{CLI.parent}:{os.environ['PATH']}", **env},
        capture_output=True,
        text=True,
        timeout=400,
        stdin=subprocess.DEVNULL,
    )


def keys(platform: Platform) -> dict[str, str]:
    key = json.loads(platform.ok("account", "key", "--scope", "submit", "-o", "json"))
    return {"PADDLECLOUD_AK": key["ak"], "PADDLECLOUD_SK": key["sk"], "GROUP_NAME": "alice"}


@pytest.mark.parametrize(
    ("name", "effective"),
    [
        ("single", {"mode": "single", "trainers": 1, "ps_num": 0, "standalone": True}),
        ("collective", {"mode": "collective", "trainers": 2, "ps_num": 0, "standalone": False}),
        ("parameter_server", {"mode": "ps", "trainers": 2, "ps_num": 2, "standalone": False}),
    ],
)
def test_a_script_means_what_its_folder_says(
    platform: Platform, copied: Path, name: str, effective: dict
) -> None:
    script = copied / "run_scripts" / name / "paddlecloud_run.sh"
    own = {"PADDLECLOUD_AK": "a", "PADDLECLOUD_SK": "s", "GROUP_NAME": "g"}
    done = run(platform, script, FLAGS="--dry-run --json", **own)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)["effective"]
    assert found.items() >= {**effective, "wall_time_seconds": 600}.items()
    assert "user,password" not in done.stdout


@pytest.mark.paddle
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said", "left"),
    [
        ("single", "400 samples of 4 files", "rank-00000/line.pdparams"),
        ("collective", "test accuracy", "rank-00000/model/shapes.pdiparams"),
        ("parameter_server", "test loss", "rank-00000/model"),
    ],
)
def test_a_script_trains_to_its_end(
    platform: Platform, copied: Path, paddle_python: Path, name: str, said: str, left: str
) -> None:
    platform.ok("runtime", "add", "paddle-v3.0.0", str(paddle_python.parent.parent))
    data = copied.parent / "data"
    make = [str(paddle_python), str(copied / "job_client" / "make_data.py"), str(data)]
    subprocess.run(make, check=True, capture_output=True)
    platform.ok("pfs", "cp", "-r", f"{data}/", f"{PFS}/line/")

    own = keys(platform)
    done = run(platform, copied / "run_scripts" / name / "paddlecloud_run.sh", **own)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Congratulations! The new job is ready for training." in done.stdout
    match = re.search(r"^(job-[0-9a-f]{16}) success$", done.stdout, re.MULTILINE)
    assert match is not None
    assert "user,password" not in done.stdout + done.stderr
    with platform.client() as client:
        text = client.logs(match.group(1), "trainer-0")
        assert "user,password" not in json.dumps(client.get(match.group(1)))
    assert said in text, text[-2000:]
    where = f"{PFS}/scripts/{name}/{left}"
    assert left.rpartition("/")[2] in platform.ok("pfs", "stat", where)
    if name == "single":
        target = copied.parent / "model.json"
        platform.ok("file", "get", f"{PFS}/scripts/single/rank-00000/model.json", str(target))
        learnt = json.loads(target.read_text())
        assert learnt["slope"] == pytest.approx(3.0, abs=0.1)
        assert learnt["offset"] == pytest.approx(-2.0, abs=0.1)
