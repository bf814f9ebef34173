"""`paddlecloud pfs rm`: removes files, and with `-r` folders with all in them.

All paths are checked before the first is removed. What a server removed is gone: there is no bin.
"""

from __future__ import annotations

from paddlecloud.cli import sizes
from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.pfs import paths
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.go_flags import Flag, Kind

USAGE = "paddlecloud pfs rm [-r] [-f] [-v] PATH ..."
HELP = """
Patterns (* ? [..]) are looked up on the platform; quote them. If one path cannot be removed (it
is not there, or is a folder and -r is missing) nothing is.

Examples:
  paddlecloud pfs rm '~/data/old.gz'
  paddlecloud pfs rm -r -v '~/data'
  paddlecloud pfs rm '~/data/*.tmp'
"""
FLAGS = (
    Flag(("-r", "-R", "--recursive"), Kind.BOOL, meaning="folders too, with all that is in them"),
    Flag(("-f", "--force"), Kind.BOOL, meaning="what is not there is no error"),
    Flag(("-v", "--verbose"), Kind.BOOL, meaning="say how many files and bytes went"),
    output_flag("json", "yaml"),
)


def run(session: Session) -> int:
    words = session.parsed.positionals
    if not words:
        raise InvalidInput("rm what?", hint=f"usage: {USAGE}")
    missing_ok = session.parsed.switch("f")
    found = paths.expand(session, words, "rm", missing_ok)
    removed = []
    if found:
        with paths.Naming(session, found[0] if len(found) == 1 else ""):
            removed = session.client.files.remove(found, session.parsed.switch("r"), missing_ok)
    if "o" in session.parsed:
        from paddlecloud.cli.output import print_items

        print_items(session, removed, session.parsed.text("o"))
        return 0
    for item in removed:
        line = f"rm {item['path']}"
        if session.parsed.switch("v"):
            files = sizes.counted(item["files"], "file")
            line += f"   {files}, {sizes.binary(item['bytes'])}"
        session.say(line)
    return 0
