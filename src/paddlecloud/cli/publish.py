"""`paddlecloud publish`: links to your files for people without an account; list and revoke them.

The link itself is all that is printed on the standard output; what else there is to know goes to
the standard error.
"""

from __future__ import annotations

from paddlecloud.cli import tables, times
from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.pfs import paths
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.go_flags import Flag
from paddlecloud.wire.publications import LONGEST_LINK_S, SHORTEST_LINK_S

USAGE = "paddlecloud publish [--expires TIME] PATH | publish --revoke ID | publish"
HELP = """
Whoever has the link can fetch the file, without logging in, until it expires. It gives what the
file is when it is fetched. Only files of your own home, not folders. Without a path: your links.

Examples:
  paddlecloud publish '~/model.tar.gz'
  paddlecloud publish --expires 12h '~/model.tar.gz'
  paddlecloud publish
  paddlecloud publish --revoke 3f0c7d1e
"""
FLAGS = (
    Flag(("--expires",), value="TIME", meaning="how long the link works: 12h, 30d (default 7d)"),
    Flag(("--revoke",), value="ID", meaning="end a link; `publish` lists them"),
    output_flag("table", "json", "yaml"),
)


def run(session: Session) -> int:
    words = session.parsed.positionals
    if "revoke" in session.parsed:
        return _revoke(session, (session.parsed.text("revoke"), *words))
    if not words:
        if "expires" in session.parsed:
            raise InvalidInput("--expires needs a file to publish", hint=f"usage: {USAGE}")
        return _list(session)
    return _publish(session, words)


def _publish(session: Session, words: tuple[str, ...]) -> int:
    expires_in_s = _expires_in_s(session)
    found = paths.remote(session, words, "publish")
    made = []

    def publish(path: str) -> None:
        link = session.client.publish(path, expires_in_s)
        made.append(link)
        if "o" not in session.parsed:
            session.say(link["url"])
            session.flush()
            session.note(
                f"works until {times.for_reading(link['expires_at'])}; to end it: "
                f"paddlecloud publish --revoke {link['id']}"
            )

    code = paths.each(session, found, publish)
    if "o" in session.parsed:
        from paddlecloud.cli.output import print_items

        print_items(session, made, session.parsed.text("o"))  # type: ignore[arg-type]
    return code


def _expires_in_s(session: Session) -> int | None:
    if "expires" not in session.parsed:
        return None
    from paddlecloud.forms.durations import parse_whole_seconds
    from paddlecloud.forms.faults import FaultList

    faults = FaultList()
    given = session.parsed.text("expires")
    seconds = faults.read("--expires", given, parse_whole_seconds)
    if seconds is not None and not SHORTEST_LINK_S <= seconds <= LONGEST_LINK_S:
        faults.add("--expires", "must be from 1m to 365d", given)
    faults.raise_if_any()
    return seconds


def _revoke(session: Session, ids: tuple[str, ...]) -> int:
    def revoke(link_id: str) -> None:
        session.client.revoke_publication(link_id)
        session.say(f"revoked {link_id}")

    return paths.each(session, ids, revoke)


def _list(session: Session) -> int:
    links = session.client.published()
    form = session.parsed.text("o", "table")
    if form != "table":
        from paddlecloud.cli.output import print_items

        print_items(session, links, form)  # type: ignore[arg-type]
        return 0
    rows = [
        (link["id"], times.for_reading(link["expires_at"]), link["path"], link["url"])
        for link in links
    ]
    # Never cut to the terminal: half a link is none.
    session.write(tables.render(("ID", "EXPIRES", "PATH", "URL"), rows))
    return 0
