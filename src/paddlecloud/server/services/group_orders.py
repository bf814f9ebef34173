"""Changes of groups: made and removed, who is in them, what they may use.

An administrator may do everything; a group's owner decides who is in it. Every change reaches the
engines when it is durable. All that is wrong with a request is said at once and nothing is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paddlecloud.core import names
from paddlecloud.core.errors import Conflict, Fault, InvalidInput, NotAllowed, NotFound
from paddlecloud.core.resources import BadQuantity, parse_cpu, parse_gpus, parse_memory
from paddlecloud.server.accounts.models import Account
from paddlecloud.server.authentication import Principal
from paddlecloud.server.database import after_commit, writing
from paddlecloud.server.groups import models
from paddlecloud.server.groups.models import Membership
from paddlecloud.server.job_service.models import Sharing
from paddlecloud.server.jobs.models import Job
from paddlecloud.server.process import here
from paddlecloud.server.services import groups
from paddlecloud.server.services.telling import tell_engines

MAX_WEIGHT = 1000
KINDS = ("guarantee", "limit")
_READERS: dict[str, tuple[str, Callable[[str], int]]] = {
    "cpu": ("cpu_milli", parse_cpu),
    "memory": ("memory_bytes", parse_memory),
    "gpu": ("gpu", parse_gpus),
    "replicas": ("replicas", parse_gpus),
}


# --- reading --------------------------------------------------------------------------------------


def _quota_columns(body: Mapping[str, Any], faults: list[Fault]) -> dict[str, Any]:
    """Columns that change; what is not in the body stays as it is."""
    columns: dict[str, Any] = {}
    for kind in KINDS:
        if kind in body:
            columns |= _amounts(kind, body[kind], faults)
    if "weight" in body:
        weight = body["weight"]
        is_number = isinstance(weight, int) and not isinstance(weight, bool)
        if is_number and 1 <= weight <= MAX_WEIGHT:
            columns["weight"] = weight
        else:
            problem = f"must be a whole number from 1 to {MAX_WEIGHT}"
            faults.append(Fault("weight", problem, str(weight)[:60]))
    if "clusters" in body:
        columns |= _clusters(body["clusters"], faults)
    return columns


def _amounts(kind: str, written: Any, faults: list[Fault]) -> dict[str, int | None]:
    if not isinstance(written, Mapping):
        faults.append(Fault(kind, 'must be an object such as {"gpu": 4}'))
        return {}
    columns: dict[str, int | None] = {}
    for name, value in written.items():
        field = f"{kind}.{name}"
        if name not in _READERS:
            faults.append(Fault(field, f"unknown key; allowed are {', '.join(_READERS)}"))
            continue
        unit, read = _READERS[name]
        if value is None:
            columns[f"{kind}_{unit}"] = None
        elif isinstance(value, bool) or not isinstance(value, str | int | float):
            faults.append(Fault(field, "must be a quantity such as 4 or 10Gi, or null"))
        else:
            try:
                columns[f"{kind}_{unit}"] = read(str(value))
            except BadQuantity as error:
                faults.append(Fault(field, str(error), str(value)[:60]))
    return columns


def _clusters(written: Any, faults: list[Fault]) -> dict[str, str]:
    known = here().engines.clusters
    if not isinstance(written, list) or not all(isinstance(each, str) for each in written):
        faults.append(
            Fault("clusters", "must be a list of names; an empty one means every cluster")
        )
        return {}
    for each in written:
        if each not in known:
            faults.append(Fault("clusters", f"there are: {', '.join(known)}", each[:60]))
    return {"clusters": "\n".join(sorted(set(written)))}


def _check_sense(row: models.Group, faults: list[Fault]) -> None:
    """A guarantee above the limit could never be used."""
    pairs = zip(groups.amounts_of(row, "guarantee"), groups.amounts_of(row, "limit"), strict=True)
    for name, (guarantee, limit) in zip(_READERS, pairs, strict=True):
        if guarantee is not None and limit is not None and guarantee > limit:
            both = groups.amounts_json(groups.amounts_of(row, "guarantee"))[name]
            problem = f"is below the guarantee, {both} {name}"
            value = groups.amounts_json(groups.amounts_of(row, "limit"))[name]
            faults.append(Fault(f"limit.{name}", problem, str(value)))


def _unknown_keys(body: Mapping[str, Any], *known: str) -> list[Fault]:
    return [
        Fault(key, f"unknown key; allowed are {', '.join(known)}")
        for key in body
        if key not in known
    ]


def _account(name: Any) -> Account:
    if not isinstance(name, str) or not name:
        raise InvalidInput("is needed: the name of an account", field="account")
    account = Account.objects.filter(username=name).first()
    if account is None:
        raise NotFound(f"no account {name[:80]}", field="account")
    return account


# --- groups ---------------------------------------------------------------------------------------


def create(body: Mapping[str, Any]) -> str:
    """A new group, with an owner if one is named; its name."""
    faults = _unknown_keys(body, "name", "owner", *KINDS, "weight", "clusters")
    name = body.get("name")
    if not isinstance(name, str) or not name:
        faults.append(Fault("name", "is needed, as a text"))
    else:
        try:
            names.check_account_name(name)
        except names.BadName as error:
            faults.append(Fault("name", str(error), name[:100]))
    row = models.Group(name=name, **_quota_columns(body, faults))
    if not faults:
        _check_sense(row, faults)
    if faults:
        raise InvalidInput(faults=faults)
    with writing():
        if groups.is_taken(row.name):
            raise Conflict(f"there is already a group {name}", field="name")
        row.save(force_insert=True)
        if body.get("owner") is not None:
            owner = _account(body["owner"])
            Membership.objects.create(group=row, account=owner, role=Membership.OWNER)
        after_commit(tell_engines)
    return row.name


def delete(name: str) -> None:
    """Only when nothing of it is live; jobs that have ended stay with their accounts."""
    with writing():
        row = models.Group.objects.filter(name=name).first()
        if row is None:
            raise NotFound(f"no group {name[:80]}", field="group", hint="paddlecloud group list")
        if row.own_account_id is not None:
            raise Conflict(f"{name} is the own group of an account, which always has one")
        live = Job.objects.filter(group=row, live=True).count()
        if live:
            jobs = "job" if live == 1 else "jobs"
            raise Conflict(
                f"group {name} still has {live} live {jobs}", hint="kill them or wait for their end"
            )
        # A group of this name made later is another one: it sees nothing of this one's jobs.
        Sharing.objects.filter(group=name).delete()
        row.delete()
        after_commit(tell_engines)


def set_quota(name: str, body: Mapping[str, Any]) -> None:
    faults = _unknown_keys(body, *KINDS, "weight", "clusters")
    columns = _quota_columns(body, faults)
    with writing():
        row = models.Group.objects.filter(name=name).first()
        if row is None:
            raise NotFound(f"no group {name[:80]}", field="group", hint="paddlecloud group list")
        for column, value in columns.items():
            setattr(row, column, value)
        if not faults:
            _check_sense(row, faults)
        if faults:
            raise InvalidInput(faults=faults)
        row.save()
        after_commit(tell_engines)


# --- members --------------------------------------------------------------------------------------


def _managed(caller: Principal, name: str) -> models.Group:
    row, role = groups.find(caller, name)
    if not caller.is_admin and role != Membership.OWNER:
        raise NotAllowed(
            f"only an owner of group {name} or an administrator may do this",
            hint=f"paddlecloud group info {name} shows its owners",
        )
    return row


def put_member(caller: Principal, name: str, body: Mapping[str, Any]) -> None:
    """Somebody is in the group from now on, in this role, whatever they were before."""
    faults = _unknown_keys(body, "account", "role")
    role = body.get("role", Membership.MEMBER)
    if role not in Membership.ROLES:
        faults.append(Fault("role", f"must be {', '.join(Membership.ROLES)}", str(role)[:60]))
    if faults:
        raise InvalidInput(faults=faults)
    with writing():
        row = _managed(caller, name)
        account = _account(body.get("account"))
        if role != Membership.OWNER:
            _keep_an_owner(row, account)
        Membership.objects.update_or_create(group=row, account=account, defaults={"role": role})


def remove_member(caller: Principal, name: str, body: Mapping[str, Any]) -> None:
    faults = _unknown_keys(body, "account")
    if faults:
        raise InvalidInput(faults=faults)
    with writing():
        row = _managed(caller, name)
        account = _account(body.get("account"))
        found = Membership.objects.filter(group=row, account=account)
        if not found.exists():
            raise NotFound(f"{account.username} is not in group {name}", field="account")
        _keep_an_owner(row, account)
        found.delete()


def _keep_an_owner(row: models.Group, account: Account) -> None:
    if row.own_account_id == account.pk:
        raise Conflict(f"{row.name} is the own group of {account.username}, its owner for good")
    owners = Membership.objects.filter(group=row, role=Membership.OWNER)
    if list(owners.values_list("account_id", flat=True)) == [account.pk]:
        raise Conflict(
            f"{account.username} is the last owner of group {row.name}",
            hint=f"make another one first: paddlecloud group add {row.name} NAME --role owner",
        )
