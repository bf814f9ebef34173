"""`paddlecloud manifests`: what a cluster needs, as YAML for kubectl."""

from __future__ import annotations

import os
import sys

from paddlecloud.cli.session import Session
from paddlecloud.forms.go_flags import Flag, Kind

USAGE = "paddlecloud manifests [--crds] [--namespace N] [--image IMAGE] [flags]"
HELP = """
Prints the custom resource definitions, a namespace, the operator, the server with its file server,
and the rights each needs.

Examples:
  paddlecloud manifests --image you/paddlecloud:1 | kubectl apply -f -
  paddlecloud manifests --no-server | kubectl apply -f -
  paddlecloud manifests --crds | kubectl apply -f -
"""
FLAGS = (
    Flag(("--crds",), Kind.BOOL, meaning="the custom resource definitions alone"),
    Flag(("--no-server",), Kind.BOOL, meaning="without the server and the file server"),
    Flag(("--no-operator",), Kind.BOOL, meaning="without the operator"),
    Flag(("--namespace",), value="N", meaning="where they live (default paddlecloud)"),
    Flag(("--image",), value="IMAGE", meaning="an image with paddlecloud in it"),
    Flag(("--job-image",), value="IMAGE", meaning="the image of jobs that name none"),
    Flag(
        ("--pfs-volume",),
        value="JSON",
        meaning="the volume with the files, as a pod names it (default: a claim, unseen by jobs)",
    ),
)


def run(session: Session) -> int:
    parsed = session.parsed
    command = [sys.executable, "-m", "paddlecloud.controller", "manifests"]
    for name in ("namespace", "image", "job-image", "pfs-volume"):
        if name in parsed:
            command += [f"--{name}", parsed.text(name)]
    command += [f"--{name}" for name in ("crds", "no-server", "no-operator") if parsed.switch(name)]
    session.flush()
    os.execv(command[0], command)
