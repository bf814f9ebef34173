"""The operator's own port, and its lines for whoever collects logs."""

from __future__ import annotations

import json
import logging
import socket
import struct
import subprocess
import sys
import threading
import urllib.request

import pytest

from paddlecloud.controller.__main__ import _JsonLines
from paddlecloud.controller.families import JobKey
from paddlecloud.controller.listening import Listener
from paddlecloud.kube.kinds import PADDLE_JOB
from tests.patience import PATIENCE_S


def _ask(listener: Listener, host: str, path: str = "/healthz") -> str:
    with urllib.request.urlopen(
        f"http://{host}:{listener.port}{path}", timeout=PATIENCE_S
    ) as answer:
        found: str = answer.read().decode()
        return found


def _families() -> list[str]:
    return ["127.0.0.1", "[::1]"] if socket.has_dualstack_ipv6() else ["127.0.0.1"]


@pytest.mark.parametrize(("host", "reached_by"), [("", _families()), ("127.0.0.1", ["127.0.0.1"])])
def test_answers_a_kubelet_of_either_family(host, reached_by):
    listener = Listener(host, 0, lambda: True, lambda: {"jobs": 3.0, "calls_total": 7.0})
    listener.start()
    try:
        assert [_ask(listener, one) for one in reached_by] == ["ok\n"] * len(reached_by)
        assert _ask(listener, reached_by[0], "/metrics") == (
            "# TYPE paddlecloud_operator_jobs gauge\npaddlecloud_operator_jobs 3\n"
            "# TYPE paddlecloud_operator_calls_total counter\n"
            "paddlecloud_operator_calls_total 7\n"
        )
    finally:
        listener.stop()


def test_a_prober_that_hangs_up_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    asked, hung_up = threading.Event(), threading.Event()

    def figures() -> dict[str, float]:
        asked.set()
        assert hung_up.wait(PATIENCE_S)
        return {f"figure_{number}": 1.0 for number in range(100_000)}  # more than buffers hold

    listener = Listener("127.0.0.1", 0, lambda: True, figures)
    listener.start()
    try:
        with socket.create_connection(("127.0.0.1", listener.port)) as prober:
            prober.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            prober.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            assert asked.wait(PATIENCE_S)
        hung_up.set()
        assert _ask(listener, "127.0.0.1") == "ok\n"
    finally:
        listener.stop()
    assert capfd.readouterr() == ("", "")


def test_a_fault_of_its_own_is_one_row_of_the_log(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    def figures() -> dict[str, float]:
        raise ZeroDivisionError("a fault")

    listener = Listener("127.0.0.1", 0, lambda: True, figures)
    listener.start()
    try:
        with pytest.raises(OSError):
            _ask(listener, "127.0.0.1", "/metrics")
    finally:
        listener.stop()
    rows = [json.loads(_JsonLines().format(record)) for record in caplog.records]
    assert [(row["level"], row["trace"].count("ZeroDivisionError: a fault")) for row in rows] == [
        ("error", 1)
    ]
    assert capfd.readouterr() == ("", "")


def test_a_thread_that_dies_is_one_row_of_the_log():
    code = (
        "import threading, warnings\n"
        "from paddlecloud.controller.__main__ import _log_in_json\n"
        "_log_in_json()\n"
        "warnings.warn('odd')\n"
        "thread = threading.Thread(target=lambda: 1 / 0, name='planner')\n"
        "thread.start(); thread.join()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stderr.splitlines()]
    assert [row["level"] for row in rows] == ["warning", "error"]
    assert rows[1]["message"] == "the thread planner ended by a fault"
    assert "ZeroDivisionError" in rows[1]["trace"]


def test_a_line_of_the_log_names_its_job_in_fields():
    key = JobKey(PADDLE_JOB, "team", "wide")
    record = logging.LogRecord("paddlecloud.a.b", logging.WARNING, "", 0, "%s: x", (key,), None)
    record.__dict__ |= key.logged
    row = json.loads(_JsonLines().format(record))
    assert row.pop("time").endswith("Z")
    assert row == {
        "level": "warning",
        "from": "a.b",
        "message": "PaddleJob team/wide: x",
        "kind": "PaddleJob",
        "namespace": "team",
        "name": "wide",
    }
