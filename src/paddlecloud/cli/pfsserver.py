"""`paddlecloud pfsserver`: the file service in the foreground, next to the storage.

It becomes the service (no process in between), so signals and the exit code are its own. `up` and
`serve` start the same program themselves.
"""

from __future__ import annotations

import os
import sys

from paddlecloud.cli import local_platform
from paddlecloud.cli.session import Session
from paddlecloud.forms.go_flags import Flag, Kind

USAGE = "paddlecloud pfsserver --root FOLDER --server URL [--host ADDRESS] [--port N] [flags]"
HELP = """
Serves the files below FOLDER (any mounted POSIX storage: a disk, CephFS, NFS) and asks the cloud
server at URL who calls. Every flag can also be given by the environment:
`python -m paddlecloud.pfs.serving --help` names the variables.

Examples:
  paddlecloud pfsserver --root /mnt/storage --server https://cloud.example.org --host 0.0.0.0
"""
FLAGS = (
    Flag(("--root",), value="FOLDER", meaning="where the files are"),
    Flag(("--server",), value="URL", meaning="the cloud server, asked who calls"),
    Flag(("--host",), value="ADDRESS", meaning="address to listen on (default 127.0.0.1)"),
    Flag(
        ("--port",),
        Kind.INT,
        value="N",
        low=0,
        high=65535,
        meaning="port (default 8800; 0 = any free)",
    ),
    Flag(
        ("--datacenter",),
        Kind.LIST,
        value="NAME",
        meaning="a name in /pfs/NAME/... that is served; repeatable (default: any)",
    ),
    Flag(("--run-file",), value="FILE", meaning="written with pid and port when it listens"),
    Flag(("--relay-secret",), value="FILE", meaning="a copy of secrets/pfs-relay of the server"),
    Flag(("--server-ca",), value="FILE", meaning="certificates to believe the server by"),
    Flag(("--tls-cert",), value="FILE", meaning="serve https with this certificate"),
    Flag(("--tls-key",), value="FILE", meaning="and this key"),
    Flag(("--no-sync",), Kind.BOOL, meaning="answer before the disk has it (a power cut loses it)"),
)
_TEXTS = ("root", "server", "host", "run-file", "relay-secret", "server-ca", "tls-cert", "tls-key")


def open_session(words: list[str]) -> Session:
    """`--datacenter` is not the one of the configuration here, so the own flags come last."""
    from paddlecloud.cli import everywhere
    from paddlecloud.forms.faults import FaultList
    from paddlecloud.forms.go_flags import parse

    faults = FaultList()
    parsed = parse(words, (*everywhere.FLAGS, *FLAGS), faults)
    faults.raise_if_any()
    return Session(parsed)


def run(session: Session) -> int:
    local_platform.require_linux()
    parsed = session.parsed
    command = [sys.executable, "-m", "paddlecloud.pfs.serving"]
    for name in _TEXTS:
        if name in parsed:
            command += [f"--{name}", parsed.text(name)]
    if "port" in parsed:
        command += ["--port", str(parsed.number("port"))]
    for name in parsed.texts("datacenter"):
        command += ["--datacenter", name]
    if parsed.switch("no-sync"):
        command.append("--no-sync")
    session.flush()
    os.execv(command[0], command)
