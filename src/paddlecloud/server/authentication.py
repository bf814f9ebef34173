"""Who is calling: a token, a name and password, a signature, a session cookie or a certificate.

The front asks `authenticate` once per request. A token costs a hash and a dictionary look-up;
what was looked up is remembered until it is revoked, expires, or `_TRUST_S` have passed (another
server process on the same database may have revoked it). Nothing here says what a caller may do.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import secrets
import threading
import time
from dataclasses import dataclass

from paddlecloud import clock
from paddlecloud.core.errors import NotLoggedIn
from paddlecloud.server.database import fetch, writing
from paddlecloud.server.exchange import Request

log = logging.getLogger(__name__)

TOKEN_PREFIX = "pct_"
SIGNED_PREFIX = "paddle-auth-v1/"
_TRUST_S = 30.0
# When a token was last used is written down this seldom: a row per request would be a write each.
USE_NOTED_EVERY_S = 300.0
_REMEMBERED = 10_000
_HINT = "log in again, or ask the administrator for a token (paddlecloud account token NAME)"


@dataclass(frozen=True, slots=True)
class Principal:
    account_id: int
    name: str
    is_admin: bool
    job_id: str = ""  # set for a job's own token: all it may see
    ak: str = ""  # set for an access key
    scope: str = "all"  # what that key may do


def new_token() -> str:
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def derived_token(secret: str, *parts: str) -> str:
    """The same token for the same parts, so that it can be given again without being stored."""
    text = "\0".join(parts).encode()
    mac = hmac.digest(secret.encode(), b"token\0" + text, "sha256")
    return TOKEN_PREFIX + base64.urlsafe_b64encode(mac).rstrip(b"=").decode()


def token_digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


class _Memory:
    """Principals by the hash of what proved them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[Principal, float]] = {}
        self.generation = 0  # what was looked up before the last clearing is not remembered

    def find(self, proof: str) -> Principal | None:
        entry = self._known.get(proof)
        if entry is None or entry[1] < time.monotonic():
            return None
        return entry[0]

    def keep(
        self, proof: str, principal: Principal, generation: int, trust_s: float = _TRUST_S
    ) -> None:
        with self._lock:
            if generation != self.generation:
                return
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[proof] = (principal, time.monotonic() + trust_s)

    def clear(self) -> None:
        with self._lock:
            self.generation += 1
            self._known.clear()


_memory = _Memory()
_boot_key = secrets.token_bytes(32)


def forget_all() -> None:
    """A token was revoked, a password or an account changed: look everything up again."""
    _memory.clear()


def recall(request: Request) -> Principal | None:
    """The caller, if its token was looked up a moment ago; no database is asked.

    Good for whose turn it is and what its body may cost; `authenticate` decides."""
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() not in ("token", "bearer"):
        return None
    return _memory.find(token_digest(credentials.strip()))


def check_signed_body(request: Request) -> None:
    """Of a caller who has signed what its body is: that it is that one, now that it is here."""
    if request.body_sha256 or request.body_md5:
        from paddlecloud.server.services import signatures

        signatures.check_body(request)


def authenticate(request: Request) -> Principal:
    """The caller, or NotLoggedIn; also when a request says two different things about it."""
    if "authorization" in request.repeated:
        raise NotLoggedIn("the header Authorization is there twice")
    found = _authenticate(request)
    if request.peer and request.headers.get("authorization", ""):
        named = _by_certificate(request.peer)
        if named.account_id != found.account_id:
            raise NotLoggedIn(
                f"the certificate is {named.name}'s and the Authorization is {found.name}'s",
                hint="send one of them, or both of one account",
            )
    return found


def _authenticate(request: Request) -> Principal:
    header = request.headers.get("authorization", "")
    if header:
        if header.startswith(SIGNED_PREFIX):
            from paddlecloud.server.services import signatures

            return signatures.principal_of(request)
        scheme, _, credentials = header.partition(" ")
        scheme = scheme.lower()
        if scheme in ("token", "bearer"):
            return _by_token(credentials.strip())
        if scheme == "basic":
            _refuse_other_sites(request)
            return _by_password(credentials.strip(), request.address)
        raise NotLoggedIn(
            f"the Authorization scheme {scheme[:20]!r} is not known",
            hint="send 'Authorization: Token <token>'",
        )
    if request.peer:
        _refuse_other_sites(request)
        return _by_certificate(request.peer)
    if "sessionid=" in request.headers.get("cookie", ""):
        from paddlecloud.server import sessions

        return sessions.principal_of(request)
    raise NotLoggedIn("this needs a login", hint="send 'Authorization: Token <token>'")


def _refuse_other_sites(request: Request) -> None:
    """A browser adds passwords and certificates to requests that any page makes; tokens not."""
    origin = request.headers.get("origin", "")
    is_foreign = origin and origin.partition("://")[2] != request.headers.get("host", "")
    if is_foreign or request.headers.get("sec-fetch-site", "") in ("cross-site", "same-site"):
        raise NotLoggedIn("requests made by pages of other sites need a token")


def _by_token(token: str) -> Principal:
    proof = token_digest(token)
    known = _memory.find(proof)
    if known is not None:
        return known
    generation = _memory.generation
    rows = fetch(
        "SELECT a.id, a.username, a.is_staff, t.job_id, t.expires_at, a.is_active, t.last_used_at"
        " FROM accounts_apitoken t JOIN accounts_account a ON a.id = t.account_id"
        " WHERE t.digest = %s",
        (proof,),
    )
    now = clock.now()
    if not rows or (rows[0][4] is not None and rows[0][4] <= now):
        raise NotLoggedIn("the token is unknown, expired or revoked", hint=_HINT)
    account_id, name, is_staff, job_id, expires_at, is_active, last_used_at = rows[0]
    if not is_active:
        raise _disabled(name)
    if not job_id and (last_used_at or 0.0) < now - USE_NOTED_EVERY_S:
        _note_use(proof, now)
    principal = Principal(account_id, name, bool(is_staff) and not job_id, job_id or "")
    if job_id:
        return principal  # looked up each time: it ends with the run, whoever is told first
    trust_s = _TRUST_S if expires_at is None else min(_TRUST_S, expires_at - now)
    _memory.keep(proof, principal, generation, trust_s)
    return principal


def _disabled(name: str) -> NotLoggedIn:
    """Said only to who has proved to be that account."""
    return NotLoggedIn(f"the account {name} is disabled", hint="ask the administrator")


def _note_use(proof: str, at: float) -> None:
    from paddlecloud.server.accounts.models import ApiToken

    try:
        with writing():
            ApiToken.objects.filter(digest=proof).update(last_used_at=at)
    except Exception as error:  # a full disk must not keep anybody out
        log.warning("the use of a token was not noted: %s", error)


def _by_password(credentials: str, address: str) -> Principal:
    from paddlecloud.server.services import logins

    try:
        name, found, password = base64.b64decode(credentials, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        found = ""
    if not found:
        raise NotLoggedIn("the Basic credentials are not name:password in base64")
    # Keyed, so that a dump of this process's memory is no list of password hashes.
    proof = hmac.new(_boot_key, credentials.encode(), "sha256").hexdigest()
    principal = _memory.find(proof)
    if principal is None:
        generation = _memory.generation
        principal = logins.check_password(name, password, address)
        _memory.keep(proof, principal, generation)
    return principal


def _by_certificate(peer: str) -> Principal:
    """The TLS layer has checked that our CA signed it; the account must still be the same."""
    account_id, serial, name = peer.split(":", 2)
    rows = fetch(
        "SELECT a.id, a.username, a.is_staff, a.is_active, c.revoked_at, c.reason"
        " FROM accounts_clientcertificate c JOIN accounts_account a ON a.id = c.account_id"
        " WHERE c.serial = %s AND a.id = %s AND a.username = %s",
        (serial, int(account_id) if account_id.isdigit() else 0, name),
    )
    if not rows:
        raise NotLoggedIn("the client certificate is none this platform has issued", hint=_HINT)
    _, _, is_staff, is_active, revoked_at, reason = rows[0]
    if revoked_at is not None:
        raise NotLoggedIn(f"the client certificate was revoked: {reason}", hint=_HINT)
    if not is_active:
        raise _disabled(name)
    return Principal(rows[0][0], rows[0][1], bool(is_staff))
