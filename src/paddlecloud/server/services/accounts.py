"""Accounts: made by the administrator, each with a home of its own and, when we are root, a uid.

The id decides ownership; a name is only what people type and a part of /pfs paths.
"""

from __future__ import annotations

import os
from typing import Any

from django.contrib.auth.hashers import make_password
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from paddlecloud.core import names
from paddlecloud.core.errors import Conflict, Fault, InvalidInput, NotFound
from paddlecloud.engines.registry import may_serve_second_account
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.owners import Owner, Places
from paddlecloud.server.accounts.models import Account
from paddlecloud.server.database import after_commit, rows_only, writing
from paddlecloud.server.exchange import rfc3339
from paddlecloud.server.groups.models import Group
from paddlecloud.server.process import here
from paddlecloud.server.services import groups

FIRST_UID = 210_000


def uid_of(account_id: int) -> int | None:
    """The uid its jobs run as; None when the platform is not root and everything is its own."""
    return FIRST_UID + account_id if os.geteuid() == 0 else None


def home_tree(account_id: int, name: str) -> Tree:
    """The account's home, made if it is not there: 0700, and its own."""
    return _places().home(Owner(name, account_id, uid_of(account_id)))


def public_tree() -> Tree:
    return Tree(_places().public)


def _places() -> Places:
    places = Places(here().state_dir / "pfs", None)
    if not (places.homes.is_dir() and places.public.is_dir()):
        places.make()
    return places


def _check_new(name: str, password: str | None) -> None:
    faults = []
    try:
        names.check_account_name(name)
    except names.BadName as error:
        faults.append(Fault("name", str(error), name[:100]))
    if password is not None:
        try:
            validate_password(password)
        except ValidationError as error:
            faults.append(Fault("password", " ".join(error.messages)))
    if faults:
        raise InvalidInput(faults=faults)


def _why_alone() -> str:
    """Why no second account may be made; empty when it may."""
    for engine in here().engines:
        is_safe, reason = may_serve_second_account(engine)
        if not is_safe:
            return reason
    return ""


def may_add() -> bool:
    return not _why_alone() or not Account.objects.exists()


def add(name: str, *, password: str | None = None, is_admin: bool = False) -> Account:
    """A new account. Refused where the engine cannot keep two accounts apart."""
    _check_new(name, password)
    rows_only("hashing a password")
    hashed = make_password(password)
    with writing():
        if not may_add():
            raise Conflict(
                f"this platform serves one account only: {_why_alone()}",
                hint="install bubblewrap and restart the platform (paddlecloud down; up)",
            )
        if Account.objects.filter(username=name).exists():
            raise Conflict(f"there is already an account {name}", field="name")
        if Group.objects.filter(name=name).exists():
            raise Conflict(
                f"there is already a group {name}, and every account has a group of its name",
                field="name",
            )
        account = Account(username=name, password=hashed, is_staff=is_admin)
        account.save(force_insert=True)
        groups.own_of(account.pk, name)
        after_commit(lambda: home_tree(account.pk, name))
    return account


def find(name: str) -> Account:
    account = Account.objects.filter(username=name).first()
    if account is None:
        raise NotFound(f"no account {name}", field="name", hint="paddlecloud account list")
    return account


def describe(account: Account) -> dict[str, Any]:
    from paddlecloud.server.services import quotas

    return {
        "name": account.username,
        "id": account.pk,
        "admin": account.is_staff,
        "enabled": account.is_active,
        "created_at": rfc3339(account.created_at),
        "limits": quotas.limits_json(account.pk),
    }
