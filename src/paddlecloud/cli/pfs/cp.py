"""`paddlecloud pfs cp`: copies files and folders to /pfs, from it, or within it.

Only what changed travels, and the same command goes on where the last one was stopped.
"""

from __future__ import annotations

from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.pfs import paths, transfer
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.go_flags import Flag, Kind
from paddlecloud.sdk.transfers.events import FileDone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from paddlecloud.sdk.pfs import Replace
    from paddlecloud.sdk.transfers.events import OnEvent, Summary

USAGE = "paddlecloud pfs cp [-r] [-f] [-n] [-p] [-v] SOURCE ... TARGET"
HELP = """
SOURCE or TARGET begins with /pfs/ or '~/', your home there (quoted: your shell replaces a bare ~);
everything else is local. To send a folder takes -r, to fetch one does not. SRC is the folder itself
and goes into TARGET (or becomes it, if TARGET ends in the same name), SRC/ is what is in it. A file
becomes TARGET, or goes into it if TARGET ends in / or is a folder. Patterns (* ? [..]) on the
platform are looked up there; quote them.

Files that are the same on both sides are not sent again. Stopped or cut off, run it again: it
goes on from there. Nothing is seen under its name before it is complete.

Examples:
  paddlecloud pfs cp -r ./data '~/'
  paddlecloud pfs cp a.gz b.gz '~/data/'
  paddlecloud pfs cp /pfs/local/public/mnist.tar.gz ./
  paddlecloud pfs cp '~/data/part-*' ./parts/
"""


def flags(chunk_meaning: str) -> tuple[Flag, ...]:
    return (
        Flag(("-r", "-R", "--recursive"), Kind.BOOL, meaning="folders, with all that is in them"),
        Flag(("-f", "--force"), Kind.BOOL, meaning="send what is the same, too"),
        Flag(("-n", "--no-clobber"), Kind.BOOL, meaning="leave every file that exists alone"),
        Flag(("-p", "--preserve"), Kind.BOOL, meaning="keep the times of the last change"),
        Flag(("-v", "--verbose"), Kind.BOOL, meaning="one line per file"),
        Flag(("--chunksize",), value="SIZE", meaning=chunk_meaning),
        output_flag("json", "yaml"),
    )


FLAGS = flags("the most one request carries of a large file: bytes, or 4Mi")


def run(session: Session) -> int:
    return copy(session, *typed_paths(session))


def typed_paths(session: Session) -> tuple[list[str], str]:
    words = session.parsed.positionals
    if len(words) < 2:
        raise InvalidInput("cp needs what to copy and where to", hint=f"usage: {USAGE}")
    *sources, target = paths.resolve(session, words)
    return sources, target


def copy(
    session: Session,
    sources: list[str],
    target: str,
    *,
    chunk_unit_bytes: int = 1,
    told: Told | None = None,
) -> int:
    """As the flags say; those a verb has not count as not given. `told` replaces the words of
    each file."""
    way = transfer.direction(sources, target, "cp")
    replace = _replace(session)
    chunk_bytes = _chunk_bytes(session, chunk_unit_bytes)
    is_data, is_told = "o" in session.parsed, session.parsed.switch("v")
    kept: list[FileDone] = []
    if is_data:
        told = _keeper(kept)
    elif told is None and is_told:
        told = way.file_line
    teller = transfer.Teller(session, way, sources, told=told, has_head=told is None)

    def start(on_event: OnEvent) -> Summary:
        return session.client.files.copy(
            sources,
            target,
            recursive=session.parsed.switch("r") or way is transfer.DOWN,
            replace=replace,
            preserve_times=session.parsed.switch("p"),
            chunk_bytes=chunk_bytes,
            tell_same=is_told,
            on_event=on_event,
        )

    summary = transfer.carry_out(session, teller, start)
    if is_data and summary is not None:
        from paddlecloud.cli.output import print_object

        items = kept if is_told else ()
        print_object(session, transfer.as_data(summary, items), session.parsed.text("o"))
    return transfer.finish(session, way, summary)


if TYPE_CHECKING:
    Told = Callable[[FileDone], str | None]


def _keeper(kept: list[FileDone]) -> Told:
    def keep(done: FileDone) -> None:
        kept.append(done)

    return keep


def _replace(session: Session) -> Replace:
    if session.parsed.switch("f") and session.parsed.switch("n"):
        raise InvalidInput("-f and -n say opposite things", hint="give one of them", field="-n")
    if session.parsed.switch("n"):
        return "never"
    return "always" if session.parsed.switch("f") else "changed"


def _chunk_bytes(session: Session, unit_bytes: int) -> int | None:
    """A bare number counts in the unit of the spelling; a quantity says its own."""
    if "chunksize" not in session.parsed:
        return None
    from paddlecloud.core.resources import parse_memory
    from paddlecloud.forms.faults import FaultList

    text = session.parsed.text("chunksize")
    faults = FaultList()
    size_bytes = faults.read("--chunksize", text, parse_memory)
    if size_bytes == 0:
        faults.add("--chunksize", "must be more than 0", text)
    faults.raise_if_any()
    assert size_bytes is not None
    return size_bytes * unit_bytes if text.strip().isdecimal() else size_bytes
