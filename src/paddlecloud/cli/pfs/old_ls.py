"""`paddlecloud ls`: the listing of the first client, for scripts that read it.

    /pfs/local/home/alice/data :
    2026-11-15 07:52:45 d        4096 /pfs/local/home/alice/data/sub
    2026-11-15 07:52:45 f          36 /pfs/local/home/alice/data/model.json

An error stands in its place (`  error:<message>`), as it always has, and the exit code tells it
too. `paddlecloud pfs ls` is the one for people.
"""

from __future__ import annotations

from paddlecloud.cli.pfs import paths
from paddlecloud.cli.pfs.ls import changed, with_paths
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput, NotAllowed, NotFound
from paddlecloud.forms.go_flags import Flag, Kind

USAGE = "paddlecloud ls [-r] PATH ..."
HELP = """
The format of the first client: time (UTC), d or f, size in bytes, path. paddlecloud pfs ls prints
bare names, or JSON.

Examples:
  paddlecloud ls '~'
  paddlecloud ls -r '~/data'
"""
FLAGS = (Flag(("-r", "-R", "--recursive"), Kind.BOOL, meaning="all that is below, too"),)
_LEAST_COLUMNS = 11


def run(session: Session) -> int:
    words = session.parsed.positionals
    if not words:
        raise InvalidInput("ls which folder?", hint=f"usage: {USAGE}")
    code = 0
    for word in words:
        session.say(f"{word} :")
        try:
            session.write(_rows(session, word))
        except (InvalidInput, NotAllowed, NotFound) as error:
            session.say(f"  error:{error.message}")
            code = code or error.exit_code
        session.say()
    return code


def _rows(session: Session, word: str) -> str:
    listed = []
    for path in paths.expand(session, [word], "ls"):
        with paths.Naming(session, path):
            entries = list(session.client.files.entries(path, session.parsed.switch("r")))
        listed += with_paths(session, path, entries)
    width = max((len(str(entry["size"])) for entry in listed), default=0)
    width = max(width, _LEAST_COLUMNS)
    return "".join(
        f"{changed(entry)} {'d' if entry['type'] == 'directory' else 'f'} "
        f"{entry['size']:>{width}} {entry['path']}\n"
        for entry in listed
    )
