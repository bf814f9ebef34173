"""`paddlecloud pfs ls`: what is in a folder, one name per line; `-l` says more.

Folders end in a slash. Rows are printed as they arrive, so a folder of any size starts at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.pfs import paths
from paddlecloud.cli.session import Session
from paddlecloud.forms.go_flags import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

USAGE = "paddlecloud pfs ls [-r] [-l] [-o json|name|wide] [PATH ...]"
HELP = """
Without a path: your own folder. Times are UTC, sizes are bytes. Patterns (* ? [..]) are looked up
on the platform; quote them, or your shell looks here.

Examples:
  paddlecloud pfs ls
  paddlecloud pfs ls -l '~/data'
  paddlecloud pfs ls -r -o json '~/data'
  paddlecloud pfs ls '~/data/part-*.gz'
"""
FLAGS = (
    Flag(("-r", "-R", "--recursive"), Kind.BOOL, meaning="all that is below, too"),
    Flag(("-l",), Kind.BOOL, meaning="type, size and time of the last change before each name"),
    output_flag("json", "yaml", "name", "wide"),
)
_SIZE_COLUMNS = 13  # a terabyte to the byte


def run(session: Session) -> int:
    words = session.parsed.positionals or (paths.home(session),)
    found = paths.expand(session, words, "ls")
    form = session.parsed.text("o")
    if form in ("json", "yaml"):
        return _as_data(session, found, form)
    is_first = True

    def show(path: str) -> None:
        nonlocal is_first
        entries = session.client.files.entries(
            path, recursive=session.parsed.switch("r"), digests=form == "wide"
        )
        lines = _lines(entries, form == "wide", session.parsed.switch("l") and form != "name")
        if len(found) > 1:
            head = f"{path}:\n" if is_first else f"\n{path}:\n"
            lines = _headed(head, lines)
        is_first = False
        for line in lines:
            session.write(line)

    return paths.each(session, found, show)


def _headed(head: str, lines: Iterable[str]) -> Iterable[str]:
    """The head only once the server has said that there is something to list."""
    is_told = False
    for line in lines:
        if not is_told:
            yield head
            is_told = True
        yield line
    if not is_told:
        yield head


def _lines(entries: Iterable[dict[str, Any]], is_wide: bool, is_long: bool) -> Iterable[str]:
    for entry in entries:
        is_folder = entry["type"] == "directory"
        name = entry["name"] + ("/" if is_folder else "")
        if is_wide:
            yield f"{_long(entry)}  {entry['digest'] or '-':<64}  {name}\n"
        elif is_long:
            yield f"{_long(entry)}  {name}\n"
        else:
            yield f"{name}\n"


def _long(entry: dict[str, Any]) -> str:
    """`x            36  2026-11-15 07:52:45`"""
    kind = "d" if entry["type"] == "directory" else "x" if entry["executable"] else "f"
    size = "-" if kind == "d" else str(entry["size"])
    return f"{kind} {size:>{_SIZE_COLUMNS}}  {changed(entry)}"


def changed(entry: dict[str, Any]) -> str:
    """`2026-11-15 07:52:45`"""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(entry["mtime_ns"] // 1_000_000_000))


def _as_data(session: Session, found: list[str], form: str) -> int:
    from paddlecloud.cli.output import print_items

    items: list[dict[str, Any]] = []

    def collect(path: str) -> None:
        entries = list(session.client.files.entries(path, session.parsed.switch("r"), digests=True))
        items.extend(with_paths(session, path, entries))

    code = paths.each(session, found, collect)
    print_items(session, items, form)
    return code


def with_paths(session: Session, path: str, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each with its whole path. What is listed may be one file, or a folder that has only one."""
    name = paths.base_name(path)
    is_file = (
        len(entries) == 1
        and entries[0]["type"] == "file"
        and entries[0]["name"] == name
        and session.client.files.entry(path)["type"] == "file"
    )
    if is_file:
        return [{"path": path.rstrip("/"), **entries[0]}]
    return [{"path": paths.below(path, entry["name"]), **entry} for entry in entries]
