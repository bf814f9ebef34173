"""Access keys: made, listed, rotated, revoked. The secret half is shown once and kept sealed.

A key stands for its account within its scope: `read` looks, `submit` also runs jobs and stores
files, `all` does whatever the account may. Everybody looks after their own keys, an administrator
after anyone's (`credentials.managed_by`). `signatures` checks what is signed with them; nothing is
remembered in between, so what is ended here is refused from the moment of the answer on.
"""

from __future__ import annotations

import hmac
import logging
import re
import secrets
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings

from paddlecloud import clock
from paddlecloud.core.errors import Conflict, Fault, InvalidInput, NotFound
from paddlecloud.server import sealing
from paddlecloud.server.accounts.models import AccessKey, Account
from paddlecloud.server.database import fetch, writing
from paddlecloud.server.exchange import rfc3339
from paddlecloud.server.process import here
from paddlecloud.server.secretfiles import secret_text
from paddlecloud.server.services import credentials

log = logging.getLogger(__name__)

MOST_KEYS = 50  # good ones of one account
MAX_OVERLAP_S = 30 * 86400
_AK_BYTES, _SK_BYTES = 16, 32  # of randomness; both are written in hex
_MAX_NAME = 64
_WRITTEN = re.compile(r"[A-Za-z0-9]{1,128}")
_MIN_SECRET = 16  # of one that is brought along


@dataclass(frozen=True, slots=True)
class Known:
    """What a signature is checked with."""

    account_id: int
    account: str
    is_staff: bool
    is_active: bool
    scope: str
    secrets: tuple[str, ...]  # the newest first
    revoked_at: float | None
    last_used_at: float | None


def _master() -> str:
    return secret_text(here().state_dir, "access-keys")


def _about(ak: str) -> str:
    return f"access key {ak}"


def _opened(ak: str, sealed: str) -> str:
    """The secret; empty if it can no longer be read, so that nothing is signed with it."""
    try:
        return sealing.unseal(_master(), sealed, _about(ak))
    except sealing.NotSealed as error:
        log.error("the secret of access key %s cannot be read (%s): rotate it", ak, error)
        return ""


def look_up(ak: str) -> Known | None:
    rows = fetch(
        "SELECT a.id, a.username, a.is_staff, a.is_active, k.scope, k.sealed, k.previous,"
        " k.previous_until, k.revoked_at, k.last_used_at FROM accounts_accesskey k"
        " JOIN accounts_account a ON a.id = k.account_id WHERE k.ak = %s",
        (ak,),
    )
    if not rows:
        return None
    row = rows[0]
    kept = [row[5]] + ([row[6]] if row[6] and row[7] > clock.now() else [])
    opened = tuple(secret for text in kept if (secret := _opened(ak, text)))
    return Known(row[0], row[1], bool(row[2]), bool(row[3]), row[4], opened, row[8], row[9])


def nobodys_secret() -> str:
    """What an unknown key is checked with, so that it takes as long as a known one."""
    return sealing.unseal(_master(), _nobodys(), _about(""))


@cache
def _nobodys() -> str:
    return sealing.seal(_master(), secrets.token_hex(_SK_BYTES), _about(""))


# --- looking after them ----------------------------------------------------------------------


def make(
    account: Account,
    *,
    name: str,
    scope: str,
    key: str = "",
    brought: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """A new pair. The same non-empty idempotency `key` gives the same pair again.

    `brought` is a pair that exists already, in scripts nobody wants to change.
    """
    _check_words(name, scope, brought)
    ak, sk = brought or _new_pair(account.pk, key)
    with writing(is_durable=True):
        there = AccessKey.objects.filter(pk=ak).first()
        if there is not None and not _is_same(there, account, sk):
            raise Conflict(f"there is already an access key {ak}", field="ak")
        if there is None:
            good = AccessKey.objects.filter(account=account, revoked_at=None)
            if good.count() >= MOST_KEYS:
                raise Conflict(
                    f"{account.username} has {MOST_KEYS} access keys, and that is the most",
                    hint=f"paddlecloud account revoke {account.username} --key AK",
                )
            there = AccessKey.objects.create(
                ak=ak,
                account=account,
                name=name or f"key-{ak[:6]}",
                scope=scope,
                sealed=sealing.seal(_master(), sk, _about(ak)),
            )
    return {"ak": ak, "sk": sk, "name": there.name, "scope": there.scope}


def _is_same(there: AccessKey, account: Account, sk: str) -> bool:
    """Whether this very pair was made before: the answer that told it may have been lost."""
    if there.account_id != account.pk or there.revoked_at is not None:
        return False
    return _opened(there.ak, there.sealed) == sk


def _new_pair(account_id: int, key: str) -> tuple[str, str]:
    if not key:
        return secrets.token_hex(_AK_BYTES), secrets.token_hex(_SK_BYTES)
    whole = _derived("new", str(account_id), key)
    return _derived("ak", whole)[: 2 * _AK_BYTES], _derived("sk", whole)


def _derived(*parts: str) -> str:
    text = "\0".join(("access key", *parts)).encode()
    return hmac.digest(settings.SECRET_KEY.encode(), text, "sha256").hex()


def _check_words(name: str, scope: str, brought: tuple[str, str] | None) -> None:
    faults = []
    if len(name) > _MAX_NAME or not name.isprintable():
        faults.append(Fault("name", f"must be at most {_MAX_NAME} printable characters"))
    if scope not in AccessKey.SCOPES:
        allowed = ", ".join(AccessKey.SCOPES)
        faults.append(Fault("scope", f"must be one of {allowed}", scope[:40]))
    if brought is not None:
        for field, text in zip(("ak", "sk"), brought, strict=True):
            if not _WRITTEN.fullmatch(text):
                faults.append(Fault(field, "must be 1 to 128 letters and digits"))
        if 0 < len(brought[1]) < _MIN_SECRET:
            faults.append(Fault("sk", f"must have at least {_MIN_SECRET} characters"))
    if faults:
        raise InvalidInput(faults=faults)


def listed(account: Account) -> list[dict[str, Any]]:
    """Newest first, revoked ones too; nothing secret."""
    now = clock.now()
    rows = AccessKey.objects.filter(account=account).order_by("-created_at", "ak")
    return [
        {
            "ak": row.ak,
            "name": row.name,
            "scope": row.scope,
            "created_at": rfc3339(row.created_at),
            "rotated_at": rfc3339(row.rotated_at),
            "last_used_at": rfc3339(row.last_used_at),
            "old_secret_until": rfc3339(row.previous_until) if row.previous_until > now else None,
            "revoked_at": rfc3339(row.revoked_at),
            "reason": row.reason,
        }
        for row in rows
    ]


def rotate(account: Account, ak: str, *, overlap_s: float, key: str = "") -> dict[str, Any]:
    """A new secret; the old one goes at once, or is good for `overlap_s` more."""
    sk = _derived("rotated", ak, key) if key else secrets.token_hex(_SK_BYTES)
    with writing(is_durable=True):
        row = _row(account, ak)
        if row.revoked_at is not None:
            raise Conflict(f"the access key {ak} is revoked", field="ak", hint="make a new one")
        if _opened(ak, row.sealed) != sk:  # else: asked a second time
            now = clock.now()
            row.previous = row.sealed if overlap_s else ""
            row.previous_until = now + overlap_s if overlap_s else 0.0
            row.sealed = sealing.seal(_master(), sk, _about(ak))
            row.rotated_at = now
            row.save()
        credentials.look_again(account.pk)
    return {"ak": ak, "sk": sk, "name": row.name, "scope": row.scope}


def revoke(account: Account, ak: str, by: str, reason: str) -> None:
    """Repeating it changes nothing: the first reason stays."""
    with writing(is_durable=True):
        row = _row(account, ak)
        if row.revoked_at is None:
            _end(AccessKey.objects.filter(pk=row.pk), by, reason)
        credentials.look_again(account.pk)


def revoke_all(account: Account, by: str, reason: str) -> int:
    with writing(is_durable=True):
        good = AccessKey.objects.filter(account=account, revoked_at=None)
        ended = _end(good, by, reason)
        credentials.look_again(account.pk)
    return ended


def _end(rows: Any, by: str, reason: str) -> int:
    # The secret is forgotten but for the current one: its holder may be told what happened.
    return int(
        rows.update(revoked_at=clock.now(), reason=credentials.words(by, reason), previous="")
    )


def _row(account: Account, ak: str) -> AccessKey:
    row: AccessKey | None = AccessKey.objects.filter(account=account, ak=ak).first()
    if row is None:
        raise NotFound(
            f"{account.username} has no access key {ak[:128]}",
            field="ak",
            hint=f"paddlecloud account keys {account.username}",
        )
    return row
