"""`paddlecloud account key|keys`: the access keys that `paddlecloud job` signs its requests with.

A secret is printed by the very command that makes it, and by no other. Called by `account`, which
knows the flags.
"""

from __future__ import annotations

import sys

from paddlecloud.cli import times
from paddlecloud.cli.account_access import ago, printed, table
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.wire.credential_shapes import KeyInfoShape, KeyShape

HEADERS = ("AK", "NAME", "SCOPE", "CREATED", "LAST-USED", "STATE")


def keys(session: Session, name: str) -> int:
    items = session.client.access_keys(name)
    rows = [
        (
            item["ak"],
            item["name"],
            item["scope"],
            ago(item["created_at"]),
            ago(item["last_used_at"]) if item["last_used_at"] else "never",
            _state(item),
        )
        for item in items
    ]
    return table(session, items, HEADERS, rows)


def _state(item: KeyInfoShape) -> str:
    if item["revoked_at"]:
        return f"revoked {ago(item['revoked_at'])}: {item['reason']}"
    if item["old_secret_until"]:
        return f"good; its old secret until {times.for_reading(item['old_secret_until'])}"
    return "good"


def key(session: Session, name: str) -> int:
    parsed = session.parsed
    if "rotate" in parsed:
        for flag in ("title", "scope", "import"):
            if flag in parsed:
                raise InvalidInput(f"--{flag} is for a new key, not --rotate", field=f"--{flag}")
        overlap_s = _overlap_s(session)
        return _tell(
            session,
            name,
            session.client.rotate_access_key(name, parsed.text("rotate"), overlap_s=overlap_s),
        )
    if "overlap" in parsed:
        raise InvalidInput("--overlap goes with --rotate", field="--overlap")
    ak, sk = _brought() if parsed.switch("import") else ("", "")
    made = session.client.make_access_key(
        name, title=parsed.text("title"), scope=parsed.text("scope") or "all", ak=ak, sk=sk
    )
    return _tell(session, name, made)


def _overlap_s(session: Session) -> int:
    from paddlecloud.forms.durations import parse_whole_seconds
    from paddlecloud.forms.faults import FaultList

    if "overlap" not in session.parsed:
        return 0
    faults = FaultList()
    found = faults.read("--overlap", session.parsed.text("overlap"), parse_whole_seconds)
    faults.raise_if_any()
    return int(found or 0)


def _brought() -> tuple[str, str]:
    """From the standard input: other users of a machine can see arguments."""
    words = sys.stdin.read(4096).split()
    if len(words) != 2:
        raise InvalidInput(
            "the standard input must hold the access key and the secret key, and nothing else",
            field="--import",
        )
    return words[0], words[1]


def _tell(session: Session, name: str, made: KeyShape) -> int:
    is_name = session.parsed.text("o") == "name"
    if printed(session, {"name": made["ak"]} if is_name else made):
        return 0
    session.say(f"key        {made['name']} of {name}, scope {made['scope']}")
    session.say(f"ak         {made['ak']}")
    session.say(f"sk         {made['sk']}")
    session.note("note: the secret sk is shown only now; give it to nobody else")
    session.say("next       paddlecloud config --ak AK --sk SK")
    return 0
