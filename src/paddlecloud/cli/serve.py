"""`paddlecloud serve`: the server in the foreground, for a service manager or a container.

It becomes the server (no process in between), so signals and the exit code are the server's own,
and starting it again is the service manager's business.
"""

from __future__ import annotations

import os

from paddlecloud.cli import engine_choice, local_platform, platform_life
from paddlecloud.cli.session import Session
from paddlecloud.forms.go_flags import Flag, Kind

USAGE = "paddlecloud serve [--port N] [--host ADDRESS] [--state FOLDER] [--account NAME]"
HELP = """
Unlike `up` it writes no configuration. The token of the account it makes on the first start is
left in secrets/bootstrap-token of the state folder.

Examples:
  paddlecloud serve --host 0.0.0.0 --port 8000 --account admin
  paddlecloud serve --engine kubernetes --kubeconfig ~/.kube/config --image you/paddle:2.6
"""
FLAGS = (
    Flag(
        ("--port",),
        Kind.INT,
        value="N",
        low=0,
        high=65535,
        meaning="port (default 8000; 0 = any free)",
    ),
    Flag(("--host",), value="ADDRESS", meaning="address to listen on (default 127.0.0.1)"),
    Flag(("--state",), value="FOLDER", meaning="state folder (default ~/.paddlecloud)"),
    Flag(("--tls",), Kind.BOOL, meaning="serve https, with a CA of the platform's own"),
    Flag(("--account",), value="NAME", meaning="make this administrator on the first start"),
    *engine_choice.FLAGS,
)


def run(session: Session) -> int:
    local_platform.require_linux()
    command = platform_life.server_command(
        state=local_platform.state_directory(session.parsed.text("state")),
        host=session.parsed.text("host"),
        port=session.parsed.number("port") if "port" in session.parsed else None,
        account=session.parsed.text("account"),
    )
    engine_choice.to_environment(session.parsed)
    if session.parsed.switch("tls"):
        os.environ["PADDLECLOUD_TLS"] = "1"
    session.flush()
    os.execv(command[0], command)
