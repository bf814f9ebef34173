"""Ports for servers of tests: never one that somebody else has or is about to have."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from paddlecloud.testing.ports import free_port
from tests.patience import PATIENCE_S


def test_is_nobody_elses_before_anything_listens_there() -> None:
    with socket.socket() as one, socket.socket() as two:
        for probe in (one, two):
            probe.bind(("127.0.0.1", 0))
        among = sorted(probe.getsockname()[1] for probe in (one, two))
    code = (
        "from paddlecloud.testing.ports import free_port\n"
        f"print(free_port({among!r}), flush=True)\n"
        "input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert {int(other.stdout.readline()), free_port(among)} == set(among)
        with pytest.raises(OSError, match="no port from"):
            free_port(among)
        other.communicate("\n", timeout=PATIENCE_S)


def test_is_not_one_that_somebody_listens_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(OSError):
        free_port([server.getsockname()[1]])
