"""`paddlecloud pfs du`: how much space folders take, and how much of the limit is used.

Sizes are those of the files' bytes, each folder with all below it, the folder itself last.
"""

from __future__ import annotations

from paddlecloud.cli import sizes, tables
from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.pfs import paths
from paddlecloud.cli.session import Session
from paddlecloud.forms.go_flags import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

USAGE = "paddlecloud pfs du [-h] [-s] [-o json|wide] [PATH ...]"
HELP = """
Without a path: your own folder. -o wide and -o json tell files and folders, what unfinished
uploads hold, and your limit.

Examples:
  paddlecloud pfs du -h '~/data'
  paddlecloud pfs du -s -h
  paddlecloud pfs du -o wide
"""
FLAGS = (
    Flag(("-h", "--human"), Kind.BOOL, meaning="sizes for people: 1.2 GiB"),
    Flag(("-s", "--summary"), Kind.BOOL, meaning="only the total of each path"),
    output_flag("wide", "json", "yaml"),
)


def run(session: Session) -> int:
    words = session.parsed.positionals or (paths.home(session),)
    found = paths.expand(session, words, "du")
    form = session.parsed.text("o")
    if form:
        return _as_data(session, found, form)
    if session.parsed.switch("s"):
        return paths.each(session, found, lambda path: _total(session, path))
    return paths.each(session, found, lambda path: _folders(session, path))


def _line(session: Session, size_bytes: int, path: str) -> None:
    shown = sizes.binary(size_bytes) if session.parsed.switch("h") else str(size_bytes)
    session.say(f"{shown}\t{path}")


def _total(session: Session, path: str) -> None:
    _line(session, session.client.files.usage(path)["bytes"], path.rstrip("/"))


def _folders(session: Session, path: str) -> None:
    """Every folder once it is complete: they come depth first."""
    top = path.rstrip("/")
    open_folders: list[str] = []  # from the outermost to the one being listed
    held_bytes: list[int] = []
    total_bytes = 0

    def close_last() -> None:
        size_bytes = held_bytes.pop()
        _line(session, size_bytes, f"{top}/{open_folders.pop()}")
        if held_bytes:
            held_bytes[-1] += size_bytes

    for entry in session.client.files.entries(path, recursive=True):
        while open_folders and not entry["name"].startswith(open_folders[-1] + "/"):
            close_last()
        if entry["type"] == "directory":
            open_folders.append(entry["name"])
            held_bytes.append(0)
            continue
        total_bytes += entry["size"]
        if held_bytes:
            held_bytes[-1] += entry["size"]
    while open_folders:
        close_last()
    _line(session, total_bytes, top)


def _as_data(session: Session, found: list[str], form: str) -> int:
    usages: list[dict[str, Any]] = []
    code = paths.each(session, found, lambda path: usages.append(session.client.files.usage(path)))
    if form != "wide":
        from paddlecloud.cli.output import print_items

        print_items(session, usages, form)
        return code
    rows = [
        (
            f"{usage['files']:,}",
            f"{usage['directories']:,}",
            sizes.binary(usage["bytes"]),
            sizes.binary(usage["unfinished_bytes"]),
            usage["path"],
        )
        for usage in usages
    ]
    headers = ("FILES", "FOLDERS", "SIZE", "UNFINISHED", "PATH")
    session.write(tables.render(headers, rows, session.terminal))
    if usages:
        session.say(f"account   {_account(usages[-1])}")
    return code


def _account(usage: dict[str, Any]) -> str:
    used_bytes, limit_bytes = usage["used_bytes"], usage["limit_bytes"]
    used_files, limit_files = usage["used_files"], usage["limit_files"]
    space = f"{sizes.binary(used_bytes)} used"
    if limit_bytes is not None:
        space = f"{sizes.binary(used_bytes)} of {sizes.binary(limit_bytes)} used"
    files = f"{sizes.counted(used_files, 'file')}"
    if limit_files is not None:
        files = f"{used_files:,} of {sizes.counted(limit_files, 'file')}"
    is_limited = limit_bytes is not None or limit_files is not None
    return f"{space}, {files}" + ("" if is_limited else ", no limit")
