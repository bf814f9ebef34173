"""The JSON about passwords, tokens, certificates and access keys, as types.

Apart from `wire.shapes` only to keep both short. The same rules: types only, times in RFC 3339.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict


class DisableBody(TypedDict):
    kill_jobs: NotRequired[bool]


class AccessShape(TypedDict):
    """`live_jobs` still wait or run; `killed_jobs` were asked to end by this very call."""

    name: str
    enabled: bool
    live_jobs: int
    killed_jobs: int


class PasswordBody(TypedDict):
    """`old_password` is needed from who is no administrator."""

    password: str
    old_password: NotRequired[str]


class TokenInfoShape(TypedDict):
    """`last_used_at` is right to five minutes; `current` is the token of this request."""

    id: int
    prefix: str
    created_at: str
    last_used_at: str | None
    expires_at: str | None
    current: bool


class TokenListShape(TypedDict):
    items: list[TokenInfoShape]


class CertShape(TypedDict):
    """The key is given once and not kept."""

    serial: str
    cert_pem: str
    key_pem: str
    ca_pem: str


class CertInfoShape(TypedDict):
    """`revoked_at` is null and `reason` empty while it is good."""

    serial: str
    created_at: str
    expires_at: str
    revoked_at: str | None
    reason: str


class CertListShape(TypedDict):
    items: list[CertInfoShape]


class KeyBody(TypedDict):
    """`scope` is read, submit or all (the default). `ak` and `sk` bring a pair that scripts have
    already; without them a new one is made."""

    name: NotRequired[str]
    scope: NotRequired[str]
    ak: NotRequired[str]
    sk: NotRequired[str]


class RotateBody(TypedDict):
    """The old secret is good for `overlap_s` more; 0, the default, ends it at once."""

    ak: str
    overlap_s: NotRequired[float]


class KeyShape(TypedDict):
    """The secret `sk` is given once and cannot be asked for again."""

    ak: str
    sk: str
    name: str
    scope: str


class KeyInfoShape(TypedDict):
    """`last_used_at` is right to five minutes; `revoked_at` is null while the key is good."""

    ak: str
    name: str
    scope: str
    created_at: str
    rotated_at: str | None
    last_used_at: str | None
    old_secret_until: str | None
    revoked_at: str | None
    reason: str


class KeyListShape(TypedDict):
    items: list[KeyInfoShape]


class RevokeBody(TypedDict):
    """Exactly one of `token` (an id), `cert` (a serial number), `key` (an ak) and `all`."""

    token: NotRequired[int]
    cert: NotRequired[str]
    key: NotRequired[str]
    all: NotRequired[bool]
    reason: NotRequired[str]


class RevokedShape(TypedDict):
    tokens: int
    certs: int
    keys: int
