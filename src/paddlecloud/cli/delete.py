"""`paddlecloud delete registry NAME ...`: forgets logins to registries of images.

The one thing the first client could delete. Jobs are removed by `kill -rm`.
"""

from __future__ import annotations

from paddlecloud.cli.registry import remove
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.go_flags import Flag

USAGE = "paddlecloud delete registry NAME ..."
HELP = """
A registry that a live job needs is kept. To remove a job: paddlecloud kill -rm JOB.

Examples:
  paddlecloud delete registry hub
"""
FLAGS: tuple[Flag, ...] = ()


def run(session: Session) -> int:
    what, *names = session.parsed.positionals or ("",)
    if what in ("job", "jobs"):
        which = " ".join(names) or "JOB"
        raise InvalidInput("delete is for registries", hint=f"paddlecloud kill -rm {which}")
    if what != "registry":
        shown = f"delete cannot remove {what}" if what else "delete what?"
        raise InvalidInput(shown, hint=f"usage: {USAGE}; for jobs: paddlecloud kill -rm JOB")
    if not names:
        raise InvalidInput("delete which registry?", hint="paddlecloud get registry lists them")
    for name in names:
        remove(session, name)
    return 0
