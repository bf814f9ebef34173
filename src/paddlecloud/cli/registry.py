"""`paddlecloud registry add|del`: logins to registries of images, and the list of `get registry`.

The server keeps them sealed and shows no password; jobs name one by `-registry`. The first client
ignored the word and always added; here `del` removes.
"""

from __future__ import annotations

import sys

from paddlecloud.cli import tables, times
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.faults import FaultList
from paddlecloud.forms.go_flags import Flag, Kind

USAGE = (
    "paddlecloud registry add -name NAME -username USER -password PASSWORD -server HOST"
    " | registry del -name NAME"
)
HELP = """
The same name again replaces the login. --password-stdin reads the password from the standard input,
so that it stays out of the shell's history and of `ps`.

Examples:
  paddlecloud registry add -name hub -username alice --password-stdin -server hub.example.com < key
  paddlecloud submit -registry hub -image hub.example.com/alice/train:1 -entry "python t.py" ./pkg
  paddlecloud get registry
  paddlecloud registry del -name hub
"""
FLAGS = (
    Flag(("-name",), value="NAME", meaning="what to call it; jobs say -registry NAME"),
    Flag(("-username",), value="USER", meaning="add: who logs in"),
    Flag(("-password",), value="PASSWORD", meaning="add: with what"),
    Flag(("--password-stdin",), Kind.BOOL, meaning="add: read the password, all of the input"),
    Flag(("-server",), value="HOST", meaning="add: host of the registry, as in the image's name"),
)
_NEEDED = ("name", "username", "password", "server")


def run(session: Session) -> int:
    words = session.parsed.positionals
    action = words[0] if words else "add"
    if action not in ("add", "del", "delete") or len(words) > 1:
        wrong = " ".join(words)
        raise InvalidInput(f"registry cannot {wrong}; it can add and del", hint=f"usage: {USAGE}")
    if action == "add":
        return _add(session)
    if "name" not in session.parsed:
        raise InvalidInput("-name: is missing", field="-name", hint=f"usage: {USAGE}")
    remove(session, session.parsed.text("name"))
    return 0


def _add(session: Session) -> int:
    given = {key: session.parsed.text(key) for key in _NEEDED}
    faults = FaultList()
    if session.parsed.switch("password-stdin"):
        if given["password"]:
            faults.add("--password-stdin", "and -password are two ways to say the same")
        given["password"] = sys.stdin.read().rstrip("\r\n")
    for key in _NEEDED:
        if not given[key]:
            faults.add(f"-{key}", "is missing")
    faults.raise_if_any(hint=f"usage: {USAGE}")
    saved = session.client.save_registry(
        given["name"],
        server=given["server"],
        username=given["username"],
        password=given["password"],
    )
    session.say(f"registry: [{saved['name']}] is added")
    return 0


def remove(session: Session, name: str) -> None:
    session.client.delete_registry(name)
    session.say(f"registry: [{name}] is deleted")


def show(session: Session) -> int:
    items = session.client.registries()
    form = session.parsed.text("o", "table")
    if form not in ("table", "wide"):
        from paddlecloud.cli.output import print_items

        print_items(session, items, form)  # type: ignore[arg-type]
        return 0
    # DATA is spelt as the first client spelt it, and is when the registry was added.
    columns = 5 if form == "wide" else 3
    rows = [
        (
            str(number),
            item["name"],
            tables.nil(times.whole_seconds(item["created_at"])),
            item["server"],
            item["username"],
        )[:columns]
        for number, item in enumerate(items)
    ]
    headers = ("ID", "NAME", "DATA", "SERVER", "USERNAME")[:columns]
    session.write(tables.render(headers, rows, session.terminal))
    return 0
