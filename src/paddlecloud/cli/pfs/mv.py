"""`paddlecloud pfs mv`: renames files and folders on the platform, or moves them into a folder.

Nothing travels. What is already there is kept unless `-f` is given.
"""

from __future__ import annotations

from paddlecloud.cli.pfs import paths
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import Conflict, InvalidInput, NotFound
from paddlecloud.forms.go_flags import Flag, Kind

USAGE = "paddlecloud pfs mv [-f] [-n] SOURCE ... TARGET"
HELP = """
A target that ends in / or is a folder is moved into. A file that is there already is an error,
unless -f (replace it) or -n (leave both alone) is given.

Examples:
  paddlecloud pfs mv '~/model' '~/model-2026'
  paddlecloud pfs mv '~/part-*' '~/data/'
"""
FLAGS = (
    Flag(("-f", "--force"), Kind.BOOL, meaning="replace what is there"),
    Flag(("-n", "--no-clobber"), Kind.BOOL, meaning="leave it where something is there already"),
    Flag(("-v", "--verbose"), Kind.BOOL, meaning="as always: every move is told"),
)


def run(session: Session) -> int:
    typed = session.parsed.positionals
    if len(typed) < 2:
        raise InvalidInput("mv needs what to move and where to", hint=f"usage: {USAGE}")
    if session.parsed.switch("f") and session.parsed.switch("n"):
        raise InvalidInput("-f and -n say opposite things", hint="give one of them", field="-n")
    for word in typed:
        if not paths.is_remote(word) and not paths.is_home(word):
            hint = "paddlecloud pfs cp copies between here and /pfs"
            raise InvalidInput(
                f"{word} is not a path under /pfs; mv moves only there",
                hint=paths.quote_hint([word]) or hint,
                field=word,
            )
    *sources, target = paths.remote(session, typed, "mv")
    found = paths.expand(session, sources, "mv")
    is_into = _is_into(session, target, len(found))

    def move(source: str) -> None:
        to = paths.below(target, paths.base_name(source)) if is_into else target
        try:
            session.client.files.move(source, to, replace=session.parsed.switch("f"))
        except Conflict as error:
            if session.parsed.switch("n"):
                session.note(f"note: {to} is there already; {source} was left")
                return
            error.hint = error.hint or "-f replaces what is there, -n leaves it"
            raise
        session.say(f"mv {source} {to}")

    return paths.each(session, found, move)


def _is_into(session: Session, target: str, count: int) -> bool:
    if target.endswith("/"):
        return True
    try:
        is_folder = session.client.files.entry(target)["type"] == "directory"
    except NotFound:
        is_folder = False
    if count > 1 and not is_folder:
        raise InvalidInput(
            f"{target} is not a folder, and there are {count} things to move",
            hint=f"to make it one, write {target}/",
            field=target,
        )
    return is_folder
