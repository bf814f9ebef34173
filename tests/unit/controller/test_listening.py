"""The operator's own port, and its lines for whoever collects logs."""

from __future__ import annotations

import json
import logging
import socket
import urllib.request

import pytest

from paddlecloud.controller.__main__ import _JsonLines
from paddlecloud.controller.families import JobKey
from paddlecloud.controller.listening import Listener
from paddlecloud.kube.kinds import PADDLE_JOB


def _ask(listener: Listener, host: str, path: str = "/healthz") -> str:
    with urllib.request.urlopen(f"http://{host}:{listener.port}{path}", timeout=10) as answer:
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
