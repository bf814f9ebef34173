"""Accounts, quota and login."""

from __future__ import annotations

from typing import Any

from paddlecloud.core.errors import Fault, InvalidInput
from paddlecloud.server.accounts.models import Account
from paddlecloud.server.exchange import Answer, Request, json_answer
from paddlecloud.server.services import accounts, idempotency, logins, quotas, tokens


def _text(body: dict[str, Any], *names: str) -> list[str]:
    faults = [
        Fault(name, "is needed, as a text")
        for name in names
        if not isinstance(body.get(name), str) or not body[name]
    ]
    if faults:
        raise InvalidInput(faults=faults)
    return [body[name] for name in names]


def login(request: Request) -> Answer:
    """A token for a name and a password. Each login makes its own token."""
    name, password = _text(request.json(), "username", "password")
    principal = logins.check_password(name, password, request.address)
    return json_answer({"token": tokens.make(principal.account_id)})


def own_quota(request: Request) -> Answer:
    return json_answer(quotas.show(request.caller.account_id))


def list_accounts(request: Request) -> Answer:
    rows = Account.objects.order_by("username")
    return json_answer({"items": [accounts.describe(account) for account in rows]})


def add_account(request: Request) -> Answer:
    body = request.json()
    unknown = sorted(set(body) - {"name", "password", "admin"})
    if unknown:
        raise InvalidInput(faults=[Fault(key, "unknown key") for key in unknown])
    (name,) = _text(body, "name")
    password = body.get("password")
    if password is not None and not isinstance(password, str):
        raise InvalidInput("must be a text", field="password")
    account = accounts.add(name, password=password or None, is_admin=body.get("admin") is True)
    return json_answer(accounts.describe(account), 201)


def set_quota(request: Request) -> Answer:
    account = accounts.find(request.segments["name"])
    quotas.set_limits(account.pk, request.json())
    return json_answer(quotas.show(account.pk))


def make_token(request: Request) -> Answer:
    account = accounts.find(request.segments["name"])
    expires_in_s = request.json(optional=True).get("expires_in_s")
    is_number = isinstance(expires_in_s, int | float) and not isinstance(expires_in_s, bool)
    if expires_in_s is not None and not (is_number and expires_in_s > 0):
        raise InvalidInput("must be a number of seconds above 0", field="expires_in_s")
    token = tokens.make(account.pk, expires_in_s=expires_in_s, key=idempotency.key_of(request))
    return json_answer({"token": token}, 201)
