"""`paddlecloud config`: which datacenter is in use, and switching to another.

It shows names and addresses, never a password or token.
"""

from __future__ import annotations

from paddlecloud.cli import tables
from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput

USAGE = "paddlecloud config [show | use-datacenter NAME]"
HELP = """
The forms of the file are explained by `paddlecloud help config`.

Examples:
  paddlecloud config
  paddlecloud config use-datacenter dc2
"""
FLAGS = (output_flag("table", "json", "yaml", "name"),)


def run(session: Session) -> int:
    from paddlecloud.sdk.config import config_path

    path = session.parsed.text("config") or config_path()
    words = session.parsed.positionals
    if not words or words == ("show",):
        return _show(session, path)
    if words[0] == "use-datacenter" and len(words) == 2:
        from paddlecloud.sdk.config_writing import use_datacenter

        profile = use_datacenter(path, words[1])
        session.say(f"using {profile.name}   {profile.endpoint}")
        return 0
    raise InvalidInput(f"config cannot do {' '.join(words)}", hint=f"usage: {USAGE}")


def _show(session: Session, path: str) -> int:
    from paddlecloud.sdk.config import read_config

    config = read_config(path)
    profiles = config.profiles if config else []
    current = config.current if config else None
    items = [
        {
            "name": profile.name,
            "current": profile is current,
            "username": profile.username,
            "endpoint": profile.endpoint,
            "login": _login(profile.token, profile.password, profile.usercert),
        }
        for profile in profiles
    ]
    form = session.parsed.text("o", "table")
    if form != "table":
        from paddlecloud.cli.output import print_items

        print_items(session, items, form)
        return 0
    if not items:
        session.say(f"{path} does not exist" if config is None else f"{path} is empty")
        session.say(f"in use: {session.profile().endpoint}")
        return 0
    rows = [
        ("*" if item["current"] else "", *(str(item[key]) for key in _COLUMNS)) for item in items
    ]
    headers = ("", "NAME", "USERNAME", "ENDPOINT", "LOGIN")
    session.write(tables.render(headers, rows, session.terminal))
    return 0


_COLUMNS = ("name", "username", "endpoint", "login")


def _login(token: str, password: str, usercert: str) -> str:
    words = {"token": token, "password": password, "certificate": usercert}
    return ", ".join(word for word, value in words.items() if value) or "none"
