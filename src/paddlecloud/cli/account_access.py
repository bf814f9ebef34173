"""`paddlecloud account disable|enable|tokens|revoke|password` and the list of `cert`.

What ends or changes a login. Called by `account`, which knows the flags. A password is asked for
or read from the standard input, never taken from the command line, where others could see it.
"""

from __future__ import annotations

import sys

from paddlecloud.cli import tables, times
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def disable(session: Session, name: str) -> int:
    is_killing = session.parsed.switch("kill-jobs")
    done = session.client.disable_account(name, kill_jobs=is_killing)
    if printed(session, done):
        return 0
    session.say(f"account    {name} disabled: its tokens, sessions and certificates are refused")
    if done["killed_jobs"]:
        session.say(f"jobs       {_count(done['killed_jobs'], 'job')} told to end")
    elif done["live_jobs"]:
        session.say(
            f"jobs       {_count(done['live_jobs'], 'job')} still live, going on;"
            f" paddlecloud account disable {name} --kill-jobs ends them"
        )
    return 0


def enable(session: Session, name: str) -> int:
    done = session.client.enable_account(name)
    if not printed(session, done):
        session.say(f"account    {name} enabled, with the tokens and certificates it had")
    return 0


def tokens(session: Session, name: str) -> int:
    items = session.client.tokens(name)
    rows = [
        (
            str(item["id"]),
            item["prefix"] + (" (this one)" if item["current"] else ""),
            ago(item["created_at"]),
            ago(item["last_used_at"]) if item["last_used_at"] else "never",
            times.for_reading(item["expires_at"]) or "never",
        )
        for item in items
    ]
    return table(session, items, ("ID", "TOKEN", "CREATED", "LAST-USED", "EXPIRES"), rows)


def certificates(session: Session, name: str) -> int:
    items = session.client.certificates(name)
    rows = [
        (
            item["serial"],
            ago(item["created_at"]),
            times.for_reading(item["expires_at"]),
            f"revoked {ago(item['revoked_at'])}: {item['reason']}"
            if item["revoked_at"]
            else "good",
        )
        for item in items
    ]
    return table(session, items, ("SERIAL", "CREATED", "EXPIRES", "STATE"), rows)


def revoke(session: Session, name: str) -> int:
    parsed = session.parsed
    ways = [flag for flag in ("token", "cert", "key", "all") if flag in parsed]
    if len(ways) != 1:
        raise InvalidInput(
            "say what to revoke: --token ID, --cert SERIAL, --key AK or --all",
            hint=f"paddlecloud account tokens {name}, account keys {name},"
            f" and account cert {name} --list",
        )
    if "reason" in parsed and ways == ["token"]:
        raise InvalidInput("--reason goes with --cert, --key and --all", field="--reason")
    reason = parsed.text("reason")
    if ways == ["token"]:
        text = parsed.text("token")
        if not text.isdecimal():
            raise InvalidInput(
                f"--token {text[:20]}: must be a number from the column ID",
                field="--token",
                hint=f"paddlecloud account tokens {name}",
            )
        done = session.client.revoke_token(name, int(text))
    elif ways == ["cert"]:
        done = session.client.revoke_certificate(name, parsed.text("cert"), reason=reason)
    elif ways == ["key"]:
        done = session.client.revoke_access_key(name, parsed.text("key"), reason=reason)
    else:
        done = session.client.revoke_all(name, reason=reason)
    if printed(session, {"name": name, **done}):
        return 0
    counts = [
        _count(count, word)
        for count, word in ((done["tokens"], "token"), (done["certs"], "certificate"))
        if count or ways == ["all"]
    ]
    if done.get("keys"):  # most accounts have none
        counts.append(_count(done["keys"], "access key"))
    listed = " and ".join([", ".join(counts[:-1]), counts[-1]] if counts[:-1] else counts)
    session.say(f"revoked    {listed} of {name}")
    return 0


def password(session: Session, name: str) -> int:
    new = _new_password(session, name)
    try:
        session.client.set_password(name, new)
    except InvalidInput as error:
        if error.field != "old_password":
            raise
        session.client.set_password(name, new, _present_password(session, name))
    session.say(f"password   of {name} changed; sessions of the old one have ended")
    return 0


def _new_password(session: Session, name: str) -> str:
    if session.parsed.switch("stdin"):
        text = sys.stdin.readline().rstrip("\r\n")
        if not text:
            raise InvalidInput("no password came on the standard input", field="--stdin")
        return text
    if not sys.stdin.isatty():
        raise InvalidInput(
            "there is no terminal to ask for a password on",
            hint=f"paddlecloud account password {name} --stdin reads one line",
        )
    from getpass import getpass

    first = getpass(f"new password of {name}: ")
    if not first:
        raise InvalidInput("the password is empty", hint="nothing was changed")
    if getpass("once more: ") != first:
        raise InvalidInput("the two passwords differ", hint="nothing was changed")
    return first


def _present_password(session: Session, name: str) -> str:
    """Asked for when the server wants it: administrators need none."""
    if session.parsed.switch("stdin"):
        text = sys.stdin.readline().rstrip("\r\n")
        if not text:
            raise InvalidInput(
                "the present password is needed too, on a second line",
                field="--stdin",
                hint="an administrator can set a new one without it",
            )
        return text
    from getpass import getpass

    return getpass(f"present password of {name}: ")


# --- printing --------------------------------------------------------------------------------


def table(
    session: Session,
    items: Sequence[Mapping[str, object]],
    headers: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
) -> int:
    form = session.parsed.text("o", "table")
    if form in ("table", "wide"):
        session.write(tables.render(headers, rows, session.terminal))
        return 0
    from paddlecloud.cli.output import print_items

    key = {"ID": "id", "SERIAL": "serial", "AK": "ak"}[headers[0]]
    named = [{"name": str(item[key]), **item} for item in items] if form == "name" else items
    print_items(session, named, form)
    return 0


def printed(session: Session, value: Mapping[str, object]) -> bool:
    """Whether `-o` asked for the answer itself."""
    form = session.parsed.text("o", "table")
    if form in ("table", "wide"):
        return False
    if form == "name":
        session.say(str(value["name"]))
    else:
        from paddlecloud.cli.output import print_object

        print_object(session, value, form)
    return True


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def ago(stamp: str | None) -> str:
    return f"{times.age(stamp)} ago" if stamp else ""
