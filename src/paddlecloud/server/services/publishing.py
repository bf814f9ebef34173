"""Published files: a link per file that anybody who has it may fetch, until it expires.

Only a regular file in the caller's own home can be published, and a link serves what is there
when it is fetched: a file that was replaced is served anew, one that is gone is not. Everything
that is wrong with a link looks the same from outside: there is no such link.

The secret of a link is not in the database. It is derived from the row's id and a key in
`secrets/`, so that the owner can be shown it again and a copy of the database opens nothing.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import socket
from typing import Any
from urllib.parse import quote, urlencode

from paddlecloud import clock
from paddlecloud.core.errors import InvalidInput, NotAllowed, NotFound, TooLarge
from paddlecloud.server.authentication import Principal
from paddlecloud.server.database import writing
from paddlecloud.server.exchange import Request, encode, rfc3339
from paddlecloud.server.jobs.models import Publication
from paddlecloud.server.process import here
from paddlecloud.server.relaying import Errand
from paddlecloud.server.secretfiles import secret_text
from paddlecloud.server.services import locating, storing
from paddlecloud.wire import routes
from paddlecloud.wire.pfspath import HOME, PfsPath
from paddlecloud.wire.publications import LONGEST_LINK_S, SHORTEST_LINK_S

DEFAULT_S = 7 * 86400
MOST = 1000  # links of one account
_ID_BYTES = 16
_LINK = re.compile(r"([0-9a-f]{32})([0-9a-f]{32})")
_HOST = re.compile(r"([A-Za-z0-9.\-]+)(:[0-9]{1,5})?")


def _mac(*parts: str) -> str:
    key = secret_text(here().state_dir, "publish-key").encode()
    return hmac.digest(key, "\0".join(parts).encode(), "sha256").hex()[: 2 * _ID_BYTES]


def _link(request: Request, publication_id: str) -> str:
    """As the caller reaches us: a link is for others who reach us the same way."""
    process = here()
    base = process.configuration.listening.public_url or _reached_at(request)
    return f"{base}{routes.FILEPUB}?uuid={publication_id}{_mac('link', publication_id)}"


def _reached_at(request: Request) -> str:
    """By a name an administrator has allowed, else by the address the connection was made to: a
    caller must not decide where links of this platform lead."""
    listening = here().configuration.listening
    asked = _HOST.fullmatch(request.headers.get("host", ""))
    own_names = {*listening.allowed_hosts, listening.host, "localhost", socket.gethostname()}
    if asked is not None and asked[1] in own_names:
        return f"{request.scheme}://{asked[0]}"
    address, port = request.reached
    if not address:
        return here().endpoint
    shown = f"[{address}]" if ":" in address else address
    return f"{request.scheme}://{shown}:{port}"


def _describe(request: Request, row: Publication) -> dict[str, Any]:
    return {
        "id": row.id,
        "path": row.path,
        "url": _link(request, row.id),
        "created_at": rfc3339(row.created_at),
        "expires_at": rfc3339(row.expires_at),
    }


# --- the owner -------------------------------------------------------------------------------


def publish(request: Request, path_text: object, expires_in_s: object, key: str) -> dict[str, Any]:
    """A link. The same idempotency key gives the same link again."""
    caller = request.caller
    path = _own_file(caller, path_text)
    lives_s = _lifetime(expires_in_s)
    now = clock.now()
    chosen = _mac("id", str(caller.account_id), key) if key else secrets.token_hex(_ID_BYTES)
    with writing():
        own = Publication.objects.filter(account_id=caller.account_id)
        own.filter(expires_at__lte=now).delete()
        if own.count() >= MOST:
            raise TooLarge(f"an account may have {MOST} links", hint="revoke some")
        row, _ = Publication.objects.get_or_create(
            id=chosen,
            defaults={
                "account_id": caller.account_id,
                "path": path,
                "created_at": now,
                "expires_at": now + lives_s,
            },
        )
    return _describe(request, row)


def _own_file(caller: Principal, text: object) -> str:
    """The path as it is kept, if it is the caller's, a regular file, and there."""
    if not isinstance(text, str) or not text:
        raise InvalidInput("path is needed", field="path")
    path = PfsPath.parse(text)
    if path.area != HOME:
        raise NotAllowed("only files of your own home can be published", field="path")
    tree = locating.tree_of(caller.account_id, caller.name, path)
    if path.is_root or path.is_directory or tree.is_directory(path.parts):
        raise InvalidInput(f"{locating.text(path)} is a directory", field="path")
    try:
        fd, _ = tree.open_file(path.parts)
    except OSError:
        raise NotFound(f"no file {path}", field="path", hint="paddlecloud pfs ls") from None
    os.close(fd)
    return locating.text(path)


def _lifetime(expires_in_s: object) -> float:
    if expires_in_s is None:
        return DEFAULT_S
    is_number = isinstance(expires_in_s, int | float) and not isinstance(expires_in_s, bool)
    if not is_number or not SHORTEST_LINK_S <= expires_in_s <= LONGEST_LINK_S:  # type: ignore[operator]
        raise InvalidInput(
            f"must be a number of seconds from {SHORTEST_LINK_S} to {LONGEST_LINK_S} (a year)",
            field="expires_in_s",
        )
    return float(expires_in_s)  # type: ignore[arg-type]


def listed(request: Request) -> list[dict[str, Any]]:
    """The caller's links that still work, newest first."""
    rows = Publication.objects.filter(
        account_id=request.caller.account_id, expires_at__gt=clock.now()
    ).order_by("-created_at", "id")
    return [_describe(request, row) for row in rows]


def revoke(caller: Principal, publication_id: str) -> None:
    with writing():
        own = Publication.objects.filter(account_id=caller.account_id, id=publication_id)
        if not own.delete()[0]:
            raise NotFound("no such link", field="id", hint="paddlecloud publish lists yours")


def revoke_path(caller: Principal, path_text: object) -> None:
    """All links to a file, which need not be there any more."""
    if not isinstance(path_text, str) or not path_text:
        raise InvalidInput("path is needed", field="path")
    path = locating.text(PfsPath.parse(path_text))
    with writing():
        own = Publication.objects.filter(account_id=caller.account_id, path=path)
        if not own.delete()[0]:
            raise NotFound("no link to this file", field="path")


# --- anybody ---------------------------------------------------------------------------------


def fetch(link: str) -> Errand:
    """What to ask the file server on behalf of the owner."""
    matched = _LINK.fullmatch(link)
    if matched is None or not hmac.compare_digest(_mac("link", matched[1]), matched[2]):
        raise no_such_link()
    row = Publication.objects.select_related("account").filter(id=matched[1]).first()
    if row is None or row.expires_at <= clock.now() or not row.account.is_active:
        raise no_such_link()
    owner = Principal(row.account_id, row.account.username, False)
    return Errand(
        facts=encode({**storing.facts_of(owner), "link": row.id}),
        raw_path=routes.PFS_CONTENT.encode(),
        query=urlencode({"path": row.path}).encode(),
        headers=_download_headers(row.path.rpartition("/")[2]),
        link=row.id,
        refusal=no_such_link,
    )


def _download_headers(name: str) -> list[tuple[bytes, bytes]]:
    """Whatever it is, a browser saves it: nothing a user stored runs as a page of this server."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", name)
    shown = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
    return [
        (b"content-type", b"application/octet-stream"),
        (b"content-disposition", shown.encode()),
        (b"content-security-policy", b"sandbox; default-src 'none'"),
        (b"referrer-policy", b"no-referrer"),
        (b"cache-control", b"private, no-cache"),
    ]


def no_such_link() -> NotFound:
    return NotFound("there is no such link", hint="it may have expired or been revoked")
