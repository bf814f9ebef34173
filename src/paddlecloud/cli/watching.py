"""`--watch`: a list that stays. On a terminal it is drawn anew, on a pipe changed lines follow.

It waits for the server to say that something changed; it never polls. Called by `get`.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from paddlecloud.cli import tables
from paddlecloud.cli.get import Listing
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Ages move even when nothing happens.
REDRAW_S = 10.0
LONGEST_WAIT_S = 50.0


def watch(session: Session, look: Callable[[], Listing], form: str) -> int:
    """Until Ctrl-C."""
    appending = _Appending(session, form)
    while True:
        # Asked before looking: what changes in between is noticed the next time.
        revision = session.client.changes(0, timeout_s=0)
        listing = look()
        if form in ("table", "wide") and session.terminal.is_terminal:
            table = tables.render(listing.headers, listing.rows, session.terminal)
            session.write(session.terminal.clear() + table)
        else:
            appending.show(listing)
        session.flush()
        _wait(session, revision)


def _wait(session: Session, revision: int) -> None:
    if session.terminal.is_terminal:
        session.client.changes(revision, timeout_s=REDRAW_S)
        return
    while session.client.changes(revision, timeout_s=LONGEST_WAIT_S) <= revision:
        pass


class _Appending:
    """Each line when it is new or changed, and once more when its job has left the list."""

    def __init__(self, session: Session, form: str) -> None:
        self._session = session
        self._form = form
        self._seen: dict[str, str] = {}  # id or name → what was last printed for it
        self._widths: list[int] = []

    def show(self, listing: Listing) -> None:
        if self._form in ("table", "wide") and not self._widths:
            self._widths = [0] * len(listing.headers)
            tables.render(listing.headers, listing.rows, widths=self._widths)
            self._session.write(tables.render(listing.headers, [], widths=self._widths))
        now = {
            _key(item): self._line(listing, number, item)
            for number, item in enumerate(listing.items)
        }
        for key, line in now.items():
            if self._seen.get(key) != line:
                self._session.write(line)
        for key in self._seen.keys() - now.keys():
            self._session.write(self._last_line(listing, key))
        self._seen = now

    def _line(self, listing: Listing, number: int, item: Any) -> str:
        if self._form == "name":
            return f"{item['name']}\n"
        if self._form in ("table", "wide"):
            table = tables.render(listing.headers, [listing.rows[number]], widths=self._widths)
            return table.partition("\n")[2]
        return json.dumps(item, ensure_ascii=False) + "\n"

    def _last_line(self, listing: Listing, key: str) -> str:
        """How a job that is no longer listed ended; nothing if it is gone altogether."""
        if listing.row_of is None:
            return ""
        try:
            job = self._session.client.get(key)
        except NotFound:
            return ""
        alone = Listing(listing.headers, [listing.row_of(0, job)], [job])
        return self._line(alone, 0, job)


def _key(item: Any) -> str:
    return str(item["id"]) if "id" in item else f"{item['name']}.{item['attempt']}"
