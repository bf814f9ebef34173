"""`paddlecloud cp`: the copying of the first client, with its words, flags and lines.

It does what `pfs cp` does. Two things are kept for scripts: `-chunksize` without a unit counts in
KB, and each file is told as `[INFO]  Uploaded <source>`.
"""

from __future__ import annotations

from paddlecloud.cli.pfs import cp, transfer
from paddlecloud.cli.session import Session
from paddlecloud.sdk.transfers.events import FileDone

USAGE = "paddlecloud cp [-r] [-f] [-n] [-p] [-v] SOURCE ... TARGET"
HELP = cp.HELP.replace("paddlecloud pfs cp", "paddlecloud cp")
FLAGS = cp.flags("the most one request carries of a large file: KB, or with a unit 4Mi")
_KB = 1024


def run(session: Session) -> int:
    sources, target = cp.typed_paths(session)
    way = transfer.direction(sources, target, "cp")

    def told(done: FileDone) -> str | None:
        if done.action in ("sent", "same"):
            return f"[INFO]  {way.old_word} {done.source}"
        return f"[INFO]  {done.action} {done.source}"

    return cp.copy(session, sources, target, chunk_unit_bytes=_KB, told=told)
