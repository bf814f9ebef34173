"""Remembers which answer a change was given under a client's key.

`find` before the change, `keep` in the change's own transaction: both commit or neither does, so
a request repeated after any crash is either done once or done now. The same key with another
request is refused. Keys belong to an account and are forgotten after a week.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from django.conf import settings

from paddlecloud import clock
from paddlecloud.core.errors import Conflict, InvalidInput
from paddlecloud.server.exchange import Request
from paddlecloud.server.jobs.models import IdempotencyKey
from paddlecloud.server.process import here
from paddlecloud.wire.routes import IDEMPOTENCY_KEY

_MAX_KEY = 255
_SWEEP_EVERY = 500
_kept = 0


@dataclass(frozen=True, slots=True)
class Seen:
    status: int
    response: bytes
    job_id: str


def key_of(request: Request) -> str:
    key = request.headers.get(IDEMPOTENCY_KEY.lower(), "").strip()
    if len(key) > _MAX_KEY or not key.isprintable():
        raise InvalidInput(
            f"must be at most {_MAX_KEY} printable characters", field=IDEMPOTENCY_KEY
        )
    return key


def _fingerprint(request: Request) -> str:
    """Keyed, because a body may hold a password."""
    mac = hmac.new(settings.SECRET_KEY.encode(), digestmod="sha256")
    query = ",".join(f"{name}={value}" for name, value in sorted(request.params.items()))
    for part in (request.method, request.path, query):
        mac.update(part.encode("utf-8", "surrogatepass") + b"\0")
    mac.update(request.body)
    return mac.hexdigest()


def find(request: Request) -> Seen | None:
    """What this very request was answered under its key, if it was."""
    key = key_of(request)
    if not key:
        return None
    row = (
        IdempotencyKey.objects.filter(account_id=request.caller.account_id, key=key)
        .values_list("request", "status", "response", "job_id")
        .first()
    )
    if row is None:
        return None
    if row[0] != _fingerprint(request):
        word = request.repeat_word
        raise Conflict(
            f"the {word} was used for another request",
            field=word,
            hint=f"a new request needs a new {word}",
        )
    return Seen(row[1], bytes(row[2]), row[3])


def keep(request: Request, status: int, response: bytes = b"", job_id: str = "") -> None:
    """Call inside the transaction of the change."""
    global _kept
    key = key_of(request)
    if not key:
        return
    now = clock.now()
    IdempotencyKey.objects.create(
        account_id=request.caller.account_id,
        key=key,
        request=_fingerprint(request),
        status=status,
        response=response,
        job_id=job_id,
        created_at=now,
    )
    _kept += 1
    if _kept % _SWEEP_EVERY == 1:
        oldest = now - here().configuration.limits.idempotency_s
        IdempotencyKey.objects.filter(created_at__lt=oldest).delete()
