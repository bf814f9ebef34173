"""`paddlecloud config`: which datacenter is in use, switching to another, and the settings of the
second client (`--ak --sk -t -s`), kept where that client kept them.

It shows names and addresses, never a password, a token or a key.
"""

from __future__ import annotations

from paddlecloud.cli import tables
from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.go_flags import Flag, Kind

USAGE = (
    "paddlecloud config [show | use-datacenter NAME] [--ak A --sk S] [-t] [-s] [--host H --port P]"
)
HELP = """
The forms of the file are explained by `paddlecloud help config`. --ak, --sk, -t and -s are of the
second client (`paddlecloud job`) and are kept in ~/.paddlecli/config, as are --host and --port.

Examples:
  paddlecloud config
  paddlecloud config use-datacenter dc2
  paddlecloud config -s
"""
FLAGS = (
    Flag(("--ak",), value="KEY", meaning="your access key"),
    Flag(("--sk",), value="KEY", meaning="your secret key"),
    Flag(("-t", "--token"), Kind.BOOL, meaning="ask for access key and secret key"),
    Flag(("-s", "--server"), Kind.BOOL, meaning="ask for the server's host and port"),
    Flag(("--token-name",), value="NAME", meaning="what the pair of keys is called"),
    Flag(("--host",), value="HOST", meaning="the server's host, without asking"),
    Flag(("--port",), value="PORT", meaning="the server's port, without asking"),
    output_flag("table", "json", "yaml", "name"),
)

# As the second client printed it.
OLD_HELP = """\
usage: paddlecloud config [-h] [--ak <ARG>] [--sk <ARG>] [-t] [-s]

optional arguments:
  -h, --help    show this help message and exit
  --ak <ARG>    your access key
  --sk <ARG>    your secret key
  -t, --token   configure user's access key and secret key (deprecated, will
                be removed in next version)
  -s, --server  configure paddlecloud server host, port
"""


def show_help(words: list[str]) -> int:
    import sys

    sys.stdout.write(OLD_HELP)
    return 0


def run(session: Session) -> int:
    from paddlecloud.sdk.config import config_path

    path = session.parsed.text("config") or config_path()
    words = session.parsed.positionals
    if any(flag in session.parsed for flag in _SECOND):
        from paddlecloud.cli.job import configuring

        if words:
            raise InvalidInput(
                f"config cannot do {' '.join(words)} as well", hint=f"usage: {USAGE}"
            )
        return configuring.run(session)
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


_SECOND = ("ak", "sk", "t", "s", "token-name", "host", "port")
_COLUMNS = ("name", "username", "endpoint", "login")


def _login(token: str, password: str, usercert: str) -> str:
    words = {"token": token, "password": password, "certificate": usercert}
    return ", ".join(word for word, value in words.items() if value) or "none"
