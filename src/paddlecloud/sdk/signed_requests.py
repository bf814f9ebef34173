"""Requests signed with an access key instead of carrying a token.

`signed` gives the headers of one attempt: each has a nonce of its own, so that a repeated one is
not taken for a copy, and the digest of the body. Called by the transport and by the file plane
just before they send. It never sends, and the secret goes into nothing but the signature.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import parse_qsl, unquote

from paddlecloud.sdk.config import Profile
from paddlecloud.sdk.http import Endpoint
from paddlecloud.wire import signing
from paddlecloud.wire.routes import IDEMPOTENCY_KEY


def signed(
    profile: Profile,
    endpoint: Endpoint,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes | Callable[[], Iterable[bytes]] | None,
) -> dict[str, str]:
    """The headers to send. A body of None is streamed: its digests are signed elsewhere."""
    sent = {name: value for name, value in headers.items() if name != "Authorization"}
    if IDEMPOTENCY_KEY in sent:
        sent[signing.REPEATED_KEY] = sent[IDEMPOTENCY_KEY]
    sent[signing.NONCE] = os.urandom(16).hex()
    sent[signing.BODY_DIGEST] = signing.STREAMED if body is None else _digest(body)
    covered = {**sent, "Host": endpoint.authority}
    if isinstance(body, bytes) and (body or method in ("POST", "PUT")):
        covered["Content-Length"] = str(len(body))  # the connection adds it
    path, _, query = (endpoint.prefix + target).partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    request = signing.Signed(method, unquote(path), pairs, covered)
    key = signing.AccessKey(profile.ak, profile.sk)
    sent["Authorization"] = signing.sign(request, key, now_s=int(time.time()))
    return sent


def _digest(body: bytes | Callable[[], Iterable[bytes]]) -> str:
    found = hashlib.sha256()
    for piece in (body,) if isinstance(body, bytes) else body():
        found.update(piece)
    return found.hexdigest()
