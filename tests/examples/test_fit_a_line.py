"""The program of the TrainingJob examples, with the variables the operator gives its pods."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

from paddlecloud.testing.ports import free_port
from tests.patience import PATIENCE_S

PROGRAM = Path(__file__).parents[2] / "examples" / "trainingjob" / "fit_a_line.py"
PASSES = 4


def start(role: str, rank: int, servers: list[str], **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(PROGRAM)],
        stdout=subprocess.PIPE,
        text=True,
        env={
            "PATH": os.environ["PATH"],
            "PADDLE_TRAINING_ROLE": role,
            "PADDLE_TRAINER_ID": str(rank),
            "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(servers),
            "PADDLE_INIT_NUM_PASSES": str(PASSES),
            "TRAINERS": "2",
            **env,
        },
    )


def test_learns_with_two_servers_and_two_trainers():
    hosts = ["127.0.0.2", "127.0.0.3"]
    ports = [free_port(host=host) for host in hosts]
    endpoints = [f"{host}:{port}" for host, port in zip(hosts, ports, strict=True)]
    servers = [
        start("PSERVER", number, endpoints, POD_IP=host, PADDLE_PORT=str(port))
        for number, (host, port) in enumerate(zip(hosts, ports, strict=True))
    ]
    try:
        for server in servers:
            assert server.stdout is not None
            assert server.stdout.readline().startswith("serving at")
        for host, port in zip(hosts, ports, strict=True):
            _until_listening(host, port, servers)
        trainers = [start("TRAINER", rank, endpoints) for rank in range(2)]
        said = [trainer.communicate(timeout=PATIENCE_S)[0] for trainer in trainers]
        assert [trainer.returncode for trainer in trainers] == [0, 0]
    finally:
        for server in servers:
            server.terminate()
            server.communicate(timeout=PATIENCE_S)
    for rank, text in enumerate(said):
        losses = [float(loss) for loss in re.findall(rf"trainer {rank} pass \d loss (.*)", text)]
        assert len(losses) == PASSES
        assert losses[-1] < losses[0] / 10


def _until_listening(host: str, port: int, servers: list[subprocess.Popen[str]]) -> None:
    while True:
        assert all(server.poll() is None for server in servers)
        try:
            socket.create_connection((host, port), timeout=1).close()
        except ConnectionRefusedError:
            continue
        return
