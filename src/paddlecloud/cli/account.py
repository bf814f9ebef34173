"""`paddlecloud account`: people, their limits and what they log in with.

A token is a secret: it is printed only by `account token`, whose whole purpose it is.
"""

from __future__ import annotations

import os
import sys

from paddlecloud.cli import tables, times
from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import Conflict, InvalidInput, NotFound
from paddlecloud.forms.go_flags import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

USAGE = (
    "paddlecloud account"
    " add|list|quota|token|cert|tokens|key|keys|revoke|password|disable|enable [NAME] [flags]"
)
HELP = """
  add NAME      make an account; --password-stdin reads its password from the standard input
  list          all accounts and their limits
  quota NAME    set the limits that are given, keep the others; `none` lifts one
  token NAME    print a new token for NAME: a secret, give it to nobody else
  cert NAME     write NAME.pem, NAME-key.pem and ca.pem for a login by certificate;
                --list shows those issued before
  tokens NAME   the tokens of NAME: id, beginning, when made and last used
  key NAME      make an access key for `paddlecloud job` (--title, --scope); its secret is shown
                once. --rotate AK gives one a new secret; --import reads a pair that scripts have
  keys NAME     the access keys of NAME: scope, when made and last used
  revoke NAME   end one token (--token), one certificate (--cert), one access key (--key) or all
                of them (--all)
  password NAME change a password: asked for twice, or one line with --stdin
  disable NAME  refuse every login of NAME from now on; its jobs go on, or --kill-jobs
  enable NAME   let NAME in again

Everybody may use cert --list, tokens, key, keys, revoke and password for themselves, and leave out
NAME; the rest is for administrators.

Examples:
  paddlecloud account add bob
  paddlecloud account quota bob -cpu 4 -memory 8Gi -gpu none
  paddlecloud account quota bob --storage 100Gi --files 1000000
  paddlecloud account token bob
  paddlecloud account cert bob --dir ./bob
  paddlecloud account key --title laptop --scope submit
  paddlecloud account key --rotate 0b5c9a17e2d84f36 --overlap 1d
  paddlecloud account revoke bob --token 7
  paddlecloud account disable bob --kill-jobs
"""
FLAGS = (
    Flag(("--admin",), Kind.BOOL, meaning="add: may do what you may"),
    Flag(("--password-stdin",), Kind.BOOL, meaning="add: read a password, one line"),
    Flag(("-cpu",), value="CPU", meaning="quota: cpu in all, or none"),
    Flag(("-memory",), value="SIZE", meaning="quota: memory in all, or none"),
    Flag(("-gpu",), value="N", meaning="quota: cards in all, or none"),
    Flag(("-replicas",), value="N", meaning="quota: replicas in all, or none"),
    Flag(("--storage",), value="SIZE", meaning="quota: bytes stored in all, or none"),
    Flag(("--files",), value="N", meaning="quota: files stored in all, or none"),
    Flag(("--expires-in",), value="TIME", meaning="token: dies after 12h, 30d (default never)"),
    Flag(("--dir",), value="FOLDER", meaning="cert: where to write (default here)"),
    Flag(("--list",), Kind.BOOL, meaning="cert: show what was issued, make nothing"),
    Flag(("--token",), value="ID", meaning="revoke: this token"),
    Flag(("--cert",), value="SERIAL", meaning="revoke: this certificate"),
    Flag(("--key",), value="AK", meaning="revoke: this access key"),
    Flag(("--all",), Kind.BOOL, meaning="revoke: every token, certificate and access key"),
    Flag(("--reason",), value="TEXT", meaning="revoke: what its holder is told"),
    Flag(("--title",), value="TEXT", meaning="key: what to call it"),
    Flag(
        ("--scope",),
        value="SCOPE",
        choices=("read", "submit", "all"),
        meaning="key: read, submit (jobs and files) or all (default all)",
    ),
    Flag(("--rotate",), value="AK", meaning="key: a new secret for this one"),
    Flag(("--overlap",), value="TIME", meaning="key --rotate: the old secret is good for 1h, 1d"),
    Flag(("--import",), Kind.BOOL, meaning="key: read `AK SK` from the standard input"),
    Flag(("--stdin",), Kind.BOOL, meaning="password: read it from the standard input, one line"),
    Flag(("--kill-jobs",), Kind.BOOL, meaning="disable: end the jobs too"),
    output_flag("table", "wide", "json", "yaml", "name"),
)
HINT = "an account is not removed, because its jobs and files have its name; disable it"
_OWN = ("tokens", "key", "keys", "revoke", "password")
_ACCESS = (*_OWN, "disable", "enable")
_KNOWN = ("add", "list", "quota", "token", "cert", *_ACCESS)
STORED = ("storage", "files")  # left alone unless given: the platform has a default for them
LIMITS = ("cpu", "memory", "gpu", "replicas", *STORED)


def run(session: Session) -> int:
    words = session.parsed.positionals
    action, names = (words[0], words[1:]) if words else ("", ())
    if action == "list" and not names:
        return _list(session)
    actions = {"add": _add, "quota": _quota, "token": _token, "cert": _cert}
    is_cert_list = action == "cert" and (session.parsed.switch("list") or not names)
    if is_cert_list or action in _OWN:
        if len(names) <= 1:
            return _access(session, "certificates" if is_cert_list else action, *names)
    elif action in _ACCESS and len(names) == 1:
        return _access(session, action, names[0])
    elif action in actions and len(names) == 1:
        return actions[action](session, names[0])
    if action and action not in _KNOWN:
        raise InvalidInput(f"account cannot {action}; it can {', '.join(_KNOWN)}", hint=HINT)
    raise InvalidInput("account needs an action and a name", hint=f"usage: {USAGE}")


def _access(session: Session, action: str, name: str = "") -> int:
    """Without a name it is the caller."""
    from paddlecloud.cli import account_access, account_keys

    part = account_keys if action in ("key", "keys") else account_access
    act: Callable[[Session, str], int] = getattr(part, action)
    return act(session, name or session.client.whoami()["name"])


def _add(session: Session, name: str) -> int:
    password = ""
    if session.parsed.switch("password-stdin"):
        password = sys.stdin.readline().rstrip("\r\n")
        if not password:
            raise InvalidInput("no password came on the standard input", field="--password-stdin")
    account = session.client.add_account(
        name, password=password, admin=session.parsed.switch("admin")
    )
    if "o" in session.parsed:
        return _print(session, account)  # type: ignore[arg-type]
    session.say(f"account    {name} added" + (" (administrator)" if account["admin"] else ""))
    if not password:
        session.say(f"next       paddlecloud account token {name}")
    return 0


def _list(session: Session) -> int:
    accounts = session.client.accounts()
    form = session.parsed.text("o", "table")
    if form not in ("table", "wide"):
        from paddlecloud.cli.output import print_items

        print_items(session, accounts, form)  # type: ignore[arg-type]
        return 0
    columns = LIMITS if form == "wide" else LIMITS[:4]
    rows = []
    for account in accounts:
        limits: dict[str, Any] = account["limits"]  # type: ignore[assignment]
        shown = [tables.NIL if limits.get(key) is None else str(limits[key]) for key in columns]
        admin = "yes" if account["admin"] else "no"
        enabled = "yes" if account.get("enabled", True) else "no"
        rows.append((account["name"], admin, enabled, *shown, times.age(account["created_at"])))
    headers = ("NAME", "ADMIN", "ENABLED", *(key.upper() for key in columns), "AGE")
    session.write(tables.render(headers, rows, session.terminal))
    return 0


def _quota(session: Session, name: str) -> int:
    given = {key: session.parsed.text(key) for key in LIMITS if key in session.parsed}
    account = next((a for a in session.client.accounts() if a["name"] == name), None)
    if account is None:
        raise NotFound(f"no account {name}", hint="paddlecloud account list")
    limits: dict[str, Any] = dict(account["limits"])
    if not given:
        return _show_limits(session, name, limits)
    sent = {key: value for key, value in limits.items() if key not in STORED}
    sent |= {key: _limit(key, text) for key, text in given.items()}
    account = session.client.set_quota(name, sent)
    return _show_limits(session, name, dict(account["limits"]))


def _limit(key: str, text: str) -> str | int | None:
    if text.lower() in ("none", "unlimited"):
        return None
    if key in ("cpu", "memory", "storage"):
        return text
    if not text.isdecimal():
        flag = f"--{key}" if key in STORED else f"-{key}"
        raise InvalidInput(f"{flag} {text}: must be a whole number or none", field=flag)
    return int(text)


def _show_limits(session: Session, name: str, limits: dict[str, Any]) -> int:
    if "o" in session.parsed:
        return _print(session, {"name": name, "limits": limits})
    shown = ", ".join(f"{key} {limits[key]}" for key in LIMITS if limits.get(key) is not None)
    session.say(f"{name}   {shown or 'no limits'}")
    return 0


def _token(session: Session, name: str) -> int:
    from paddlecloud.forms.durations import parse_whole_seconds
    from paddlecloud.forms.faults import FaultList

    faults = FaultList()
    expires_in_s = None
    if "expires-in" in session.parsed:
        text = session.parsed.text("expires-in")
        expires_in_s = faults.read("--expires-in", text, parse_whole_seconds)
    faults.raise_if_any()
    session.say(session.client.mint_token(name, expires_in_s=expires_in_s))
    return 0


def _cert(session: Session, name: str) -> int:
    from paddlecloud.sdk.config_writing import write_private

    folder = session.parsed.text("dir") or "."
    stem = name.replace("@", "-at-").replace("/", "-")
    cert, key = os.path.join(folder, f"{stem}.pem"), os.path.join(folder, f"{stem}-key.pem")
    for path in (cert, key):
        if os.path.lexists(path):
            raise Conflict(f"file already exist: {path}", hint="remove it or choose another --dir")
    made = session.client.make_certificate(name)
    os.makedirs(folder, exist_ok=True)
    write_private(cert, made["cert_pem"])
    write_private(key, made["key_pem"])
    write_private(os.path.join(folder, "ca.pem"), made["ca_pem"])
    session.say(f"wrote {cert}, {key} and ca.pem; in ~/.paddle/config of {name}:")
    scheme, _, host = session.client.endpoint.partition("://")
    if scheme == "http":
        session.note("note: certificates work over TLS only: paddlecloud down, then up --tls")
    session.say(
        f"datacenter1:\n  username: {name}\n  usercert: {os.path.abspath(cert)}\n"
        f"  userkey: {os.path.abspath(key)}\n  endpoint: {host}"
    )
    return 0


def _print(session: Session, value: dict[str, Any]) -> int:
    from paddlecloud.cli.output import print_object

    form = session.parsed.text("o")
    if form == "name":
        session.say(str(value["name"]))
    else:
        print_object(session, value, "json" if form == "table" else form)
    return 0
