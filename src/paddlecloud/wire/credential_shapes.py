"""The JSON about passwords, tokens and certificates, as types; the rest is in `wire.shapes`.

Apart only to keep both files short. The same rules: types only, times in RFC 3339.
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
    password: str


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


class RevokeBody(TypedDict):
    """Exactly one of `token` (an id), `cert` (a serial number) and `all`."""

    token: NotRequired[int]
    cert: NotRequired[str]
    all: NotRequired[bool]
    reason: NotRequired[str]


class RevokedShape(TypedDict):
    tokens: int
    certs: int
