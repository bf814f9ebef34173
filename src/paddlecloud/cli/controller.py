"""`paddlecloud controller`: the operator for Kubernetes in the foreground.

It becomes the operator (no process in between), so signals and the exit code are its own.
"""

from __future__ import annotations

import os
import sys

from paddlecloud.cli.session import Session
from paddlecloud.forms.go_flags import Flag, Kind

USAGE = "paddlecloud controller [--kubeconfig FILE] [--namespace N] [--metrics-port P] [flags]"
HELP = """
Makes pods of PaddleJob objects and keeps them as the objects say. Inside a cluster it uses the
service account of its pod; outside say which cluster with --kubeconfig. Several may run: one
leads, the others wait for its lease.

Examples:
  paddlecloud controller --kubeconfig ~/.kube/config --metrics-port 8080
"""
FLAGS = (
    Flag(("--kubeconfig",), value="FILE", meaning="the cluster (default: the one this runs in)"),
    Flag(("--context",), value="NAME", meaning="a context of that file (default: its current one)"),
    Flag(("--namespace",), value="N", meaning="look after this namespace only (default: all)"),
    Flag(
        ("--metrics-port",),
        Kind.INT,
        value="P",
        low=0,
        high=65535,
        meaning="answer /healthz, /readyz and /metrics there (0 = any free)",
    ),
    Flag(("--metrics-host",), value="ADDRESS", meaning="address for them"),
    Flag(("--lease-namespace",), value="N", meaning="where the leader's lease is kept"),
    Flag(("--no-lease",), Kind.BOOL, meaning="lead without asking; for a single operator"),
    Flag(("--no-planner",), Kind.BOOL, meaning="make pods at once, whether there is room or not"),
    Flag(
        ("--workers",),
        Kind.INT,
        value="N",
        low=1,
        high=256,
        meaning="jobs worked on at once (default 8)",
    ),
    Flag(
        ("--etcd-server",), value="HOST:PORT", meaning="for jobs with Paddle's own elastic launcher"
    ),
    Flag(
        ("--log-wait",),
        Kind.INT,
        value="S",
        low=0,
        high=3600,
        meaning="seconds an ended pod is held for its log to be stored (default 60)",
    ),
)
_TEXTS = (
    "kubeconfig",
    "context",
    "namespace",
    "metrics-host",
    "metrics-port",
    "lease-namespace",
    "workers",
    "etcd-server",
    "log-wait",
)


def run(session: Session) -> int:
    parsed = session.parsed
    command = [sys.executable, "-m", "paddlecloud.controller", "run"]
    for name in _TEXTS:
        if name in parsed:
            value = parsed.number(name) if name in ("metrics-port", "workers", "log-wait") else None
            command += [f"--{name}", parsed.text(name) if value is None else str(value)]
    command += [f"--{name}" for name in ("no-lease", "no-planner") if parsed.switch(name)]
    session.flush()
    os.execv(command[0], command)
