"""`paddlecloud pfs mkdir`: makes folders and those above them."""

from __future__ import annotations

from paddlecloud.cli.pfs import paths
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.go_flags import Flag, Kind

USAGE = "paddlecloud pfs mkdir [-p] PATH ..."
HELP = """
Folders above are made as needed, and one that is there already is no error, with or without -p.

Examples:
  paddlecloud pfs mkdir '~/data/2026'
  paddlecloud pfs mkdir -p '~/a/b' '~/c'
"""
FLAGS = (Flag(("-p", "--parents"), Kind.BOOL, meaning="as always: folders above are made too"),)


def run(session: Session) -> int:
    typed = session.parsed.positionals
    if not typed:
        raise InvalidInput("mkdir what?", hint=f"usage: {USAGE}")
    words = paths.remote(session, typed, "mkdir")
    with paths.Naming(session, words[0] if len(words) == 1 else ""):
        session.client.files.make_directories(words)
    for word in words:
        session.say(f"mkdir {word}")
    return 0
