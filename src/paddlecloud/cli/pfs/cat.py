"""`paddlecloud pfs cat`: the bytes of files, to the standard output, exactly as they are."""

from __future__ import annotations

import sys

from paddlecloud.cli.pfs import paths
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput

USAGE = "paddlecloud pfs cat PATH ..."
HELP = """
Examples:
  paddlecloud pfs cat '~/jobs/wide-deep/output/metrics.json'
  paddlecloud pfs cat '~/data/part-*.gz' | zcat | head
"""
FLAGS = ()


def run(session: Session) -> int:
    words = session.parsed.positionals
    if not words:
        raise InvalidInput("cat what?", hint=f"usage: {USAGE}")
    found = paths.expand(session, words, "cat")
    session.flush()
    out = sys.stdout.buffer

    def write(path: str) -> None:
        for piece in session.client.files.read(path):
            left = memoryview(piece)
            while left:  # an unbuffered output (python -u) may take only a part
                left = left[out.write(left) or 0 :]
        out.flush()

    return paths.each(session, found, write)
