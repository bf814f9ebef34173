"""`paddle-auth-v1`: how the requests of the `job` client are signed, and how that is checked.

`sign(request, key, ...)` gives the `Authorization` header; `verify(header, request, ...)` raises
`BadSignature` with a stable reason or returns what was proven. Both are pure: time, keys and the
window are arguments. Bytes of a signature are compared in constant time.

What is signed, in the steps of the old service: method, path, query, and of the headers `host`
(without its port), `content-md5`, `content-length`, `content-type` and every `x-paddle-*`. The
body is covered by its length only, so an old signature can be used again on another body of that
length while it is valid. Our own client therefore adds two signed headers, `x-paddle-nonce` and
`x-paddle-content-sha256`; a request that has both is `is_complete`, and its nonce is good once.
A body that is sent while it is read is `streamed` instead of its digest, where its content is
compared with digests that are signed elsewhere; whoever checks says where that is.

    prefix     paddle-auth-v1/{ak}/{unix seconds}/{expires}
    key        hex HMAC-SHA256(sk, prefix)
    signature  hex HMAC-SHA256(key, METHOD \\n path \\n query \\n headers)
    header     {prefix}/{names of signed headers, joined by ;}/{signature}

The names are empty in practice, which means all of the headers above that the request has. Where
they are given exactly those are signed, `host` must be one of them, and an `x-paddle-*` header that
is not is as if it were not there.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

SCHEME = "paddle-auth-v1"
NONCE = "x-paddle-nonce"
BODY_DIGEST = "x-paddle-content-sha256"
STREAMED = "streamed"
REPEATED_KEY = "x-paddle-idempotency-key"  # the idempotency key of a signed request
DEFAULT_EXPIRES_S = 1800
MAX_EXPIRES_S = 24 * 3600
CLOCK_SKEW_S = 300  # how far ahead of ours a client's clock may be
MAX_HEADER = 4096
MAX_NONCE = 128

_PLAIN_HEADERS = frozenset({"host", "content-md5", "content-length", "content-type"})
_OURS = "x-paddle-"
_UNRESERVED = ".~-_"  # beside letters and digits
_ACCESS_KEY = re.compile(r"[A-Za-z0-9]{1,128}")
_SIGNATURE = re.compile(r"[0-9a-f]{64}")
_NUMBER = re.compile(r"[0-9]{1,12}")
_NAMES = re.compile(r"[A-Za-z0-9;_-]*")


class BadSignature(ValueError):
    """The request is not proven. `reason` is a stable word; the message is for people."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class AccessKey:
    ak: str
    sk: str

    def __repr__(self) -> str:
        return f"AccessKey(ak={self.ak!r})"


@dataclass(frozen=True, slots=True)
class Signed:
    """The part of a request a signature covers. `path` is decoded, `query` are decoded pairs."""

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] | None = None  # any case


@dataclass(frozen=True, slots=True)
class Claim:
    """What an `Authorization` header says, before anything of it is believed."""

    ak: str
    timestamp_s: int
    expires_s: int
    signed_headers: tuple[str, ...]
    signature: str

    @property
    def prefix(self) -> str:
        return f"{SCHEME}/{self.ak}/{self.timestamp_s}/{self.expires_s}"


@dataclass(frozen=True, slots=True)
class Proven:
    """A request known to come from the holder of the key."""

    ak: str
    nonce: str
    body_sha256: str
    signature: str
    good_until_s: int

    @property
    def is_complete(self) -> bool:
        """Whether body and uniqueness are signed as well."""
        return bool(self.nonce and self.body_sha256)


# --- canonical spelling ----------------------------------------------------------------------


def _encode(text: str, *, keep: str = "") -> str:
    return quote(text, safe=_UNRESERVED + keep, encoding="utf-8", errors="surrogateescape")


def canonical_path(path: str) -> str:
    return _encode(path, keep="/")


def canonical_query(pairs: Sequence[tuple[str, str]]) -> str:
    return "&".join(sorted(f"{_encode(name)}={_encode(value)}" for name, value in pairs))


def canonical_headers(headers: Mapping[str, str], listed: Sequence[str] = ()) -> str:
    lines = []
    for name, value in _covered(headers, listed).items():
        lines.append(f"{_encode(name)}:{_encode(value)}")
    return "\n".join(sorted(lines))


def is_covered(name: str, listed: Sequence[str] = ()) -> bool:
    """Whether a signature covers the header of this lower-case name."""
    return name in listed if listed else name in _PLAIN_HEADERS or name.startswith(_OURS)


def _covered(headers: Mapping[str, str], listed: Sequence[str] = ()) -> dict[str, str]:
    """The headers a signature covers, by lower-case name."""
    covered: dict[str, str] = {}
    for raw, value in headers.items():
        name = raw.strip().lower()
        if is_covered(name, listed):
            if name in covered:
                raise BadSignature("header_twice", f"the header {name} is there twice")
            covered[name] = _without_port(value.strip()) if name == "host" else value.strip()
    return covered


def _without_port(host: str) -> str:
    """`h:80` → `h`, `[::1]:80` → `[::1]`: the old client signed the bare host."""
    head, colon, port = host.rpartition(":")
    return head if colon and port.isdigit() and (":" not in head or head.endswith("]")) else host


def string_to_sign(request: Signed, listed: Sequence[str] = ()) -> str:
    return "\n".join(
        (
            request.method.upper(),
            canonical_path(request.path),
            canonical_query(request.query),
            canonical_headers(request.headers or {}, listed),
        )
    )


def _hmac_hex(key: str, data: str) -> str:
    raw = data.encode("utf-8", "surrogateescape")
    return hmac.new(key.encode("utf-8", "surrogateescape"), raw, hashlib.sha256).hexdigest()


def _signature(sk: str, prefix: str, request: Signed, listed: Sequence[str] = ()) -> str:
    return _hmac_hex(_hmac_hex(sk, prefix), string_to_sign(request, listed))


# --- signing ---------------------------------------------------------------------------------


def sign(request: Signed, key: AccessKey, *, now_s: int, expires_s: int = DEFAULT_EXPIRES_S) -> str:
    """The `Authorization` header. The request's headers must be those that are sent."""
    if not _ACCESS_KEY.fullmatch(key.ak):
        raise ValueError("an access key has letters and digits only")
    prefix = f"{SCHEME}/{key.ak}/{now_s}/{expires_s}"
    return f"{prefix}//{_signature(key.sk, prefix, request)}"


def complete_headers(body: bytes, nonce: str) -> dict[str, str]:
    """The two headers that make a signature cover the body and good once; add them, then sign."""
    return {NONCE: nonce, BODY_DIGEST: hashlib.sha256(body).hexdigest()}


# --- checking --------------------------------------------------------------------------------


def read_claim(header: str) -> Claim:
    """Take an `Authorization` header apart; anything odd about its shape is refused."""
    parts = header.strip().split("/")
    if len(header) > MAX_HEADER or len(parts) != 6 or parts[0] != SCHEME:
        raise BadSignature("malformed", f"the Authorization header is not {SCHEME}/ak/time/...")
    _, ak, timestamp, expires, names, signature = parts
    fits = (
        _ACCESS_KEY.fullmatch(ak)
        and _NUMBER.fullmatch(timestamp)
        and _NUMBER.fullmatch(expires)
        and _NAMES.fullmatch(names)
        and _SIGNATURE.fullmatch(signature)
    )
    # One spelling per number: the prefix is signed as text.
    if not fits or str(int(timestamp)) != timestamp or str(int(expires)) != expires:
        raise BadSignature("malformed", "a part of the Authorization header is not as it should be")
    listed = tuple(name.lower() for name in names.split(";") if name)
    return Claim(ak, int(timestamp), int(expires), listed, signature)


def verify(claim: Claim, request: Signed, sk: str, *, now_s: int) -> Proven:
    """Check a claim with the secret of its key.

    The signature comes first: without the key nobody learns what else would have been wrong.
    Whether the body has the digest, and the nonce is new, the caller checks with what is returned.
    """
    listed = claim.signed_headers
    expected = _signature(sk, claim.prefix, request, listed)
    if not hmac.compare_digest(expected.encode(), claim.signature.encode()):
        raise BadSignature("signature", "the signature does not fit this request and key")
    if not 0 < claim.expires_s <= MAX_EXPIRES_S:
        raise BadSignature("expires", f"expires must be from 1 to {MAX_EXPIRES_S} seconds")
    if claim.timestamp_s > now_s + CLOCK_SKEW_S:
        raise BadSignature(
            "clock", "the request is dated in the future; check this machine's clock"
        )
    good_until_s = claim.timestamp_s + claim.expires_s
    if now_s > good_until_s:
        raise BadSignature("expired", "the request is older than it says it may be")
    covered = _covered(request.headers or {}, listed)
    missing = [name for name in listed if name not in covered]
    if missing:
        raise BadSignature("unsigned_header", f"{missing[0]} is listed as signed and is not there")
    if listed and "host" not in listed:
        raise BadSignature("unsigned_header", "host must be among the signed headers")
    nonce, digest = covered.get(NONCE, ""), covered.get(BODY_DIGEST, "")
    is_digest = not digest or digest == STREAMED or _SIGNATURE.fullmatch(digest)
    if len(nonce) > MAX_NONCE or not is_digest:
        raise BadSignature("malformed", f"{NONCE} or {BODY_DIGEST} is not as it should be")
    return Proven(claim.ak, nonce, digest, claim.signature, good_until_s)


def check_body(proven: Proven, body: bytes) -> None:
    """Refuse a body other than the signed one; an old signature says nothing about it."""
    if not proven.body_sha256:
        return
    if proven.body_sha256 == STREAMED:
        raise BadSignature("body", "the body of this request must be signed")
    found = hashlib.sha256(body).hexdigest()
    if not hmac.compare_digest(found.encode(), proven.body_sha256.encode()):
        raise BadSignature("body", "the body is not the one that was signed")
