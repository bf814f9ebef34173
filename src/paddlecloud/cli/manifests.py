"""`paddlecloud manifests`: what a cluster needs for PaddleJob objects, as YAML for kubectl."""

from __future__ import annotations

import os
import sys

from paddlecloud.cli.session import Session
from paddlecloud.forms.go_flags import Flag, Kind

USAGE = "paddlecloud manifests [--crds] [--namespace N] [--image IMAGE]"
HELP = """
Prints the custom resource definitions, a namespace, the operator and the rights it needs.

Examples:
  paddlecloud manifests --image you/paddlecloud:1 | kubectl apply -f -
  paddlecloud manifests --crds | kubectl apply -f -
"""
FLAGS = (
    Flag(("--crds",), Kind.BOOL, meaning="the custom resource definitions alone"),
    Flag(("--namespace",), value="N", meaning="where the operator lives (default paddlecloud)"),
    Flag(("--image",), value="IMAGE", meaning="an image with paddlecloud in it"),
)


def run(session: Session) -> int:
    parsed = session.parsed
    command = [sys.executable, "-m", "paddlecloud.controller", "manifests"]
    for name in ("namespace", "image"):
        if name in parsed:
            command += [f"--{name}", parsed.text(name)]
    if parsed.switch("crds"):
        command.append("--crds")
    session.flush()
    os.execv(command[0], command)
