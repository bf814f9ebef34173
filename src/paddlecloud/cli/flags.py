"""`paddlecloud flags`: a word of the first client; the text is in `topics`."""

from __future__ import annotations

from paddlecloud.cli.session import Session
from paddlecloud.cli.topics import text_of

USAGE = "paddlecloud flags"
HELP = """
Examples:
  paddlecloud flags
"""
FLAGS = ()


def run(session: Session) -> int:
    session.write(text_of("flags") or "")
    return 0
