"""`paddlecloud pfs stat`: all about one file or folder; `--verify` reads every byte again."""

from __future__ import annotations

from paddlecloud.cli import sizes
from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.pfs import paths
from paddlecloud.cli.pfs.ls import changed
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.go_flags import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

USAGE = "paddlecloud pfs stat [--verify] [-o json] PATH ..."
HELP = """
The digest tells whether two files are the same: it is what cp and sync compare. --verify has the
platform read the stored bytes again; if they are no longer those that were stored, that is an
error (exit code 5).

Examples:
  paddlecloud pfs stat '~/model'
  paddlecloud pfs stat --verify '~/model'
"""
FLAGS = (
    Flag(("--verify",), Kind.BOOL, meaning="read the stored bytes again and compare"),
    output_flag("json", "yaml"),
)


def run(session: Session) -> int:
    words = session.parsed.positionals
    if not words:
        raise InvalidInput("stat what?", hint=f"usage: {USAGE}")
    found = paths.expand(session, words, "stat")
    is_verified = session.parsed.switch("verify")
    items: list[dict[str, Any]] = []
    is_data = "o" in session.parsed

    def show(path: str) -> None:
        entry = session.client.files.entry(path, verify=is_verified, digest=True)
        entry = {"path": path, **entry}
        items.append(entry)
        if not is_data:
            blank = "\n" if len(items) > 1 else ""
            session.write(blank + _text(entry, is_verified))

    code = paths.each(session, found, show)
    if is_data:
        from paddlecloud.cli.output import print_items, print_object

        form = session.parsed.text("o")
        if len(found) == 1:
            print_object(session, items[0], form)
        else:
            print_items(session, items, form)
    return code


def _text(entry: dict[str, Any], is_verified: bool) -> str:
    is_file = entry["type"] == "file"
    rows = [("path", entry["path"]), ("type", "file" if is_file else "folder")]
    if is_file:
        size = entry["size"]
        shown = f"{size:,} bytes" + (f" ({sizes.binary(size)})" if size >= 1000 else "")
        rows += [("size", shown), ("executable", "yes" if entry["executable"] else "no")]
    rows.append(("changed", changed(entry)))
    if is_file:
        rows.append(("digest", entry["digest"] or "not known yet"))
    if is_file and is_verified:
        rows.append(("verified", "every byte was read again and is as it was stored"))
    return "".join(f"{name:<11} {value}\n" for name, value in rows)
