"""Real Paddle programs started with nothing but the contract understand who and where they are."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from paddlecloud.core.contract import JobFacts, Peer, ReplicaFacts, environment

pytestmark = [pytest.mark.paddle, pytest.mark.slow]

ALL_REDUCE = """
import paddle, paddle.distributed as dist
dist.init_parallel_env()
x = paddle.to_tensor([float(dist.get_rank() + 1)])
if dist.get_world_size() > 1:
    dist.all_reduce(x)
print("SEEN", dist.get_rank(), dist.get_world_size(), int(x[0]), flush=True)
"""
SERVER_ROLES = """
import paddle
from paddle.distributed import fleet
paddle.enable_static()
fleet.init()
kind = "server" if fleet.is_server() else "worker"
number = fleet.server_index() if fleet.is_server() else fleet.worker_index()
print("SEEN", kind, number, fleet.worker_num(), fleet.server_num(), flush=True)
"""
HETER_ROLES = """
from paddle.distributed.fleet.base.role_maker import PaddleCloudRoleMaker
role = PaddleCloudRoleMaker(is_collective=False)
role._generate_role()
print("SEEN", role._is_worker(), role._is_server(), role._is_heter_worker(), flush=True)
"""


def peers(count: int, network: str, port: int) -> list[Peer]:
    return [Peer(f"{network}.{i + 1}", port) for i in range(count)]


def make_job(mode: str, trainers: int, pservers: int = 0, heters: int = 0) -> JobFacts:
    # A network of loopback addresses of its own: nobody else listens there.
    network = f"127.{random.randrange(100, 250)}.{random.randrange(250)}"
    port = random.randrange(20000, 30000)
    found = peers(trainers + pservers + heters, network, port)
    return JobFacts(
        job_id="job-4f1c09d2a7b35e60",
        name="check",
        mode=mode,
        datacenter="local",
        user="alice",
        trainers=found[:trainers],
        pservers=found[trainers : trainers + pservers],
        heters=found[trainers + pservers :],
    )


def run(
    python: Path, where: Path, facts: JobFacts, program: str, launcher: tuple[str, ...] = ()
) -> list[str]:
    """What every replica has seen, trainers first."""
    (where / "program.py").write_text(program)
    groups = (("trainer", facts.trainers), ("pserver", facts.pservers), ("heter", facts.heters))
    started = []
    for role, members in groups:
        for index in range(len(members)):
            home = where / f"{role}-{index}"
            home.mkdir()
            env = {"PATH": os.environ["PATH"], "HOME": str(home), "GLOG_minloglevel": "2"}
            env |= environment(facts, ReplicaFacts(role, index))
            command = [str(python), *launcher, str(where / "program.py")]
            started.append(
                subprocess.Popen(
                    command,
                    env=env,
                    cwd=home,
                    text=True,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                )
            )
    seen = []
    try:
        for process in started:
            output, _ = process.communicate(timeout=180)
            assert process.returncode == 0, output
            seen.append([line for line in output.splitlines() if line.startswith("SEEN")][-1])
    finally:
        for process in started:
            process.kill()
            process.communicate()
    return seen


def test_trains_collectively_without_a_launcher(paddle_python: Path, tmp_path: Path) -> None:
    seen = run(paddle_python, tmp_path, make_job("collective", 2), ALL_REDUCE)
    assert seen == ["SEEN 0 2 3", "SEEN 1 2 3"]


def test_trains_collectively_under_paddle_s_launcher(paddle_python: Path, tmp_path: Path) -> None:
    launcher = ("-m", "paddle.distributed.launch")
    seen = run(paddle_python, tmp_path, make_job("collective", 2), ALL_REDUCE, launcher)
    assert seen == ["SEEN 0 2 3", "SEEN 1 2 3"]


@pytest.mark.parametrize("launcher", [(), ("-m", "paddle.distributed.launch")])
def test_leaves_a_single_program_alone(
    paddle_python: Path, tmp_path: Path, launcher: tuple[str, ...]
) -> None:
    seen = run(paddle_python, tmp_path, make_job("single", 1), ALL_REDUCE, launcher)
    assert seen == ["SEEN 0 1 1"]


def test_tells_servers_and_workers_apart(paddle_python: Path, tmp_path: Path) -> None:
    seen = run(paddle_python, tmp_path, make_job("ps", 2, 2), SERVER_ROLES)
    assert seen == [
        "SEEN worker 0 2 2",
        "SEEN worker 1 2 2",
        "SEEN server 0 2 2",
        "SEEN server 1 2 2",
    ]


def test_tells_heterogeneous_workers_apart(paddle_python: Path, tmp_path: Path) -> None:
    seen = run(paddle_python, tmp_path, make_job("heter", 1, 1, 1), HETER_ROLES)
    assert seen == ["SEEN True False False", "SEEN False True False", "SEEN False False True"]
