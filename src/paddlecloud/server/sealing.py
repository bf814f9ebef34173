"""Secrets that must be read again, kept in rows: sealed with a key that is not in the database.

`seal` encrypts and authenticates, `unseal` refuses what was changed or moved to another row. Used
for the secret halves of access keys, which a signature check needs in the clear; a dump of the
database alone says nothing about them. Why it is made of HMAC alone is in
docs/decisions/0007-sealed-secrets.md.

    text      v1.<base64url of nonce (16) + body + tag (32)>
    body      plain XOR (HMAC(encryption key, nonce + 0) + HMAC(encryption key, nonce + 1) + ...)
    tag       HMAC(authentication key, length of about + about + nonce + body)
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets

_VERSION = "v1."
_NONCE_BYTES = 16
_TAG_BYTES = 32


class NotSealed(ValueError):
    """What stands there was not sealed with this key and for this purpose."""


def seal(master: str, plain: str, about: str) -> str:
    """`about` names what the secret belongs to; it is needed to unseal it and not kept in it."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    body = _mix(master, nonce, plain.encode())
    sealed = nonce + body + _tag(master, about, nonce, body)
    return _VERSION + base64.urlsafe_b64encode(sealed).decode()


def unseal(master: str, text: str, about: str) -> str:
    try:
        if not text.startswith(_VERSION):
            raise NotSealed("of another version")
        raw = base64.urlsafe_b64decode(text[len(_VERSION) :].encode())
    except (binascii.Error, UnicodeEncodeError):
        raise NotSealed("not base64") from None
    nonce, body, tag = raw[:_NONCE_BYTES], raw[_NONCE_BYTES:-_TAG_BYTES], raw[-_TAG_BYTES:]
    # The tag first: nothing is made of bytes nobody of ours wrote.
    if not hmac.compare_digest(tag, _tag(master, about, nonce, body)):
        raise NotSealed("changed, moved, or sealed with another key")
    return _mix(master, nonce, body).decode()


def _key(master: str, use: bytes) -> bytes:
    return hmac.digest(master.encode(), b"sealing v1\0" + use, "sha256")


def _tag(master: str, about: str, nonce: bytes, body: bytes) -> bytes:
    named = about.encode()
    text = len(named).to_bytes(8, "big") + named + nonce + body
    return hmac.digest(_key(master, b"authentication"), text, "sha256")


def _mix(master: str, nonce: bytes, data: bytes) -> bytes:
    """The same both ways."""
    key = _key(master, b"encryption")
    stream = b""
    for number in range(-(-len(data) // _TAG_BYTES)):
        stream += hmac.digest(key, nonce + number.to_bytes(8, "big"), "sha256")
    return bytes(a ^ b for a, b in zip(data, stream, strict=False))
