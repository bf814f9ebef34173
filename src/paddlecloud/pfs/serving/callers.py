"""Who calls. The cloud server knows; this asks it and remembers the answer for one second.

The caller's own Authorization header goes to `GET /api/v2/whoami` of the cloud server, or to the
older `/api/v1/token2user/` where there is no such call. The cloud server itself, passing on what a
client sent to it, has checked already: it proves with a secret that both read from one file that
`PFS-Caller` is its word. Nobody else's word counts, and without an answer nobody gets in.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import logging
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from paddlecloud.core.errors import NotLoggedIn, PaddleCloudError, RateLimited, Unavailable
from paddlecloud.pfs.owners import Owner
from paddlecloud.wire.pfspath import BadPath, check_part
from paddlecloud.wire.routes import V1_TOKEN2USER, WHOAMI

if TYPE_CHECKING:
    import http.client
    import ssl

RELAY_SECRET = "pfs-relay"  # headers, in the lower case of `heads`
RELAY_CALLER = "pfs-caller"
_FRESH_S = 1.0
_ASK_WITHIN_S = 5.0
_MOST_KNOWN = 10_000
_MAX_ANSWER_BYTES = 1 << 20

_log = logging.getLogger("paddlecloud.pfs")


class Callers:
    def __init__(
        self, server_url: str, *, relay_secret: Path | None = None, server_ca: str | None = None
    ) -> None:
        self._server_url = server_url
        self._server_ca = server_ca
        self._tls: ssl.SSLContext | None = None
        self._relay_secret = relay_secret
        self._lock = threading.Lock()
        self._known: dict[bytes, tuple[float, Owner | PaddleCloudError]] = {}
        self._asking: dict[bytes, threading.Lock] = {}
        self._connections = threading.local()
        self._is_root = os.geteuid() == 0

    def recall(self, headers: Mapping[str, str]) -> Owner | None:
        """The caller if known without asking; None: ask. Raises for strangers."""
        if RELAY_SECRET in headers:
            return self._relayed(headers)
        key = _key(headers)
        found = self._known.get(key)
        if found is None or found[0] < time.monotonic():
            return None
        return _open(found[1])

    def ask(self, headers: Mapping[str, str]) -> Owner:
        """Asks the cloud server, and waits for it: not for threads that move bytes."""
        key = _key(headers)
        with self._lock:
            one_asks = self._asking.setdefault(key, threading.Lock())
        try:
            with one_asks:  # many requests of one caller ask once
                found = self._known.get(key)
                asked_s = time.monotonic()
                if found is None or found[0] < asked_s:
                    try:
                        answer: Owner | PaddleCloudError = self._ask(headers["authorization"])
                    except PaddleCloudError as error:
                        answer = error  # also that it cannot be asked: not by everybody in turn
                    found = (asked_s + _FRESH_S, answer)
                    self._remember(key, found)
        finally:
            with self._lock:
                self._asking.pop(key, None)
        return _open(found[1])

    def _remember(self, key: bytes, found: tuple[float, Owner | PaddleCloudError]) -> None:
        with self._lock:
            if len(self._known) >= _MOST_KNOWN:
                now_s = time.monotonic()
                self._known = {k: v for k, v in self._known.items() if v[0] >= now_s}
                if len(self._known) >= _MOST_KNOWN:
                    self._known.clear()
            self._known[key] = found

    # --- the cloud server -------------------------------------------------------------------

    def _ask(self, authorization: str) -> Owner:
        status, body = self._get(WHOAMI, authorization)
        if status == 404:
            status, body = self._get(V1_TOKEN2USER + "/", authorization)
        if status in (401, 403):
            raise NotLoggedIn("the cloud server does not know this token")
        if status != 200:
            raise Unavailable(
                f"the cloud server answered {status} when asked who calls", hint="try again"
            )
        return self.owner_from(body)

    def owner_from(self, facts: Any) -> Owner:
        """What whoami (or token2user, with less) says."""
        name = facts.get("name", facts.get("user")) if isinstance(facts, dict) else None
        if not isinstance(name, str):
            raise Unavailable("the cloud server did not say who calls")
        try:
            check_part(name)
        except BadPath:
            raise Unavailable("the cloud server named a caller that cannot have a home") from None
        account_id = facts.get("id")
        if type(account_id) is not int:
            # An older server gives no number; names are unique there and never change.
            account_id = int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big")
        uid = facts.get("uid")
        storage = facts.get("storage") or {}
        return Owner(
            name=name,
            account_id=account_id,
            uid=uid if self._is_root and type(uid) is int else None,
            limit_bytes=storage.get("bytes"),
            limit_files=storage.get("files"),
            is_admin=bool(facts.get("admin")),
            link=link if isinstance(link := facts.get("link"), str) else "",
        )

    def _get(self, path: str, authorization: str) -> tuple[int, Any]:
        import http.client

        # A kept connection may have been closed meanwhile: then once more on a new one.
        for is_last in (False, True):
            kept = getattr(self._connections, "kept", None)
            connection = kept if kept is not None else self._connect()
            self._connections.kept = None
            try:
                connection.request("GET", path, headers={"Authorization": authorization})
                response = connection.getresponse()
                data = response.read(_MAX_ANSWER_BYTES)
                body = json.loads(data) if response.status == 200 else None
            except (OSError, http.client.HTTPException, ValueError) as error:
                connection.close()
                if kept is not None and not is_last:
                    continue
                _log.warning("cannot ask %s who calls: %s", self._server_url, error)
                raise Unavailable(
                    "the cloud server cannot be asked who calls", hint="try again"
                ) from None
            if response.will_close:
                connection.close()
            else:
                self._connections.kept = connection
            return response.status, body
        raise AssertionError("unreachable")

    def _connect(self) -> http.client.HTTPConnection:
        import http.client

        url = urlsplit(self._server_url)
        host, port = url.hostname or "127.0.0.1", url.port
        if url.scheme != "https":
            return http.client.HTTPConnection(host, port, timeout=_ASK_WITHIN_S)
        if self._tls is None:
            import ssl

            self._tls = ssl.create_default_context(cafile=self._server_ca)
        return http.client.HTTPSConnection(host, port, timeout=_ASK_WITHIN_S, context=self._tls)

    # --- the relay --------------------------------------------------------------------------

    def _relayed(self, headers: Mapping[str, str]) -> Owner:
        secret = self._read_secret()
        given = headers[RELAY_SECRET].encode("latin-1")
        if not secret or not hmac.compare_digest(secret, given):
            raise NotLoggedIn("this is not the secret of the cloud server")
        try:
            facts = json.loads(base64.b64decode(headers.get(RELAY_CALLER, ""), validate=True))
        except (ValueError, binascii.Error):
            raise NotLoggedIn("the cloud server did not say who calls") from None
        return self.owner_from(facts)

    def _read_secret(self) -> bytes:
        """Read each time: it may be made after us, and it may be changed."""
        if self._relay_secret is None:
            return b""
        try:
            return self._relay_secret.read_bytes().strip()
        except OSError:
            return b""


def _key(headers: Mapping[str, str]) -> bytes:
    authorization = headers.get("authorization", "")
    if not authorization:
        raise NotLoggedIn("who calls? send the header Authorization", hint="Token <token>")
    return hashlib.sha256(authorization.encode("latin-1")).digest()


def _open(answer: Owner | PaddleCloudError) -> Owner:
    if isinstance(answer, Owner):
        return answer
    raise type(answer)(answer.message, hint=answer.hint)


class InHand:
    """How many requests each account has under way, so that one cannot take all the room.

    Whoever reads through a published link counts for the link, not for its owner."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: dict[int | str, int] = {}
        self._lock = threading.Lock()

    def enter(self, owner: Owner) -> None:
        key = owner.link or owner.account_id
        with self._lock:
            count = self._counts.get(key, 0)
            if count >= self._most:
                raise RateLimited(
                    f"an account may have {self._most} requests under way", hint="try again"
                )
            self._counts[key] = count + 1

    def leave(self, owner: Owner) -> None:
        key = owner.link or owner.account_id
        with self._lock:
            count = self._counts[key] - 1
            if count:
                self._counts[key] = count
            else:
                del self._counts[key]
