"""`paddlecloud version`: the version of this program, and of the server with `--server`."""

from __future__ import annotations

from paddlecloud import __version__
from paddlecloud.cli.session import Session
from paddlecloud.forms.go_flags import Flag, Kind

USAGE = "paddlecloud version [--server]"
HELP = """
Examples:
  paddlecloud version
  paddlecloud version --server
"""
FLAGS = (Flag(("--server",), Kind.BOOL, meaning="also ask the server for its version"),)


def run(session: Session) -> int:
    session.say(f"paddlecloud {__version__}")
    if session.parsed.switch("server"):
        session.say(f"server {session.client.status()['version']}")
    return 0
