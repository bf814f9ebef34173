"""`--watch`: a list that stays. On a terminal it is drawn anew, on a pipe changed lines follow.

It waits for the server to say that something changed; it never polls. Called by `get`.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from paddlecloud.cli import tables
from paddlecloud.cli.get import Listing
from paddlecloud.cli.session import Session

# Ages move even when nothing happens.
REDRAW_S = 10.0
LONGEST_WAIT_S = 50.0


def watch(session: Session, look: Callable[[], Listing], form: str) -> int:
    """Until Ctrl-C."""
    seen: set[tuple[str, ...]] = set()
    is_first = True
    while True:
        # Asked before looking: what changes in between is noticed the next time.
        revision = session.client.changes(0, timeout_s=0)
        listing = look()
        if form not in ("table", "wide"):
            _print_as_lines(session, listing, form, seen)
        elif session.terminal.is_terminal:
            table = tables.render(listing.headers, listing.rows, session.terminal)
            session.write(session.terminal.clear() + table)
        else:
            _append(session, listing, seen, is_first)
        session.flush()
        is_first = False
        _wait(session, revision)


def _wait(session: Session, revision: int) -> None:
    if session.terminal.is_terminal:
        session.client.changes(revision, timeout_s=REDRAW_S)
        return
    while session.client.changes(revision, timeout_s=LONGEST_WAIT_S) <= revision:
        pass


def _append(session: Session, listing: Listing, seen: set[tuple[str, ...]], is_first: bool) -> None:
    rows = [tuple(row) for row in listing.rows]
    new = [row for row in rows if row not in seen]
    text = tables.render(listing.headers, new)
    session.write(text if is_first else text.partition("\n")[2])
    seen.clear()
    seen.update(rows)


def _print_as_lines(
    session: Session, listing: Listing, form: str, seen: set[tuple[str, ...]]
) -> None:
    """One object per line, each when it is new or changed."""
    lines = [
        str(item["name"]) if form == "name" else json.dumps(item, ensure_ascii=False)
        for item in listing.items
    ]
    for line in lines:
        if (line,) not in seen:
            session.say(line)
    seen.clear()
    seen.update((line,) for line in lines)
