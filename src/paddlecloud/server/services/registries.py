"""Registries of images: logins an account keeps with us, sealed, for its jobs to pull with.

Saved, listed and removed by their owner; nobody is ever shown a password. An engine that pulls
images (`set_registries`) is told the whole set of an account whenever it changes and before each
job that needs it, so a telling that failed is made good by the next one. An engine without images
takes the name in a job's `registry` and says in an event that it does nothing.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from paddlecloud import clock
from paddlecloud.core.errors import Conflict, InvalidInput, NotFound
from paddlecloud.core.jobspec import JobSpec
from paddlecloud.core.names import dns_label
from paddlecloud.engines.protocols import Engine
from paddlecloud.forms import registries as forms
from paddlecloud.server import sealing
from paddlecloud.server.accounts.models import Account, Registry
from paddlecloud.server.authentication import Principal
from paddlecloud.server.database import after_commit, forget_broken_connection, writing
from paddlecloud.server.exchange import decode, rfc3339, rfc3339_seconds
from paddlecloud.server.jobs.models import Job
from paddlecloud.server.process import here
from paddlecloud.server.secretfiles import secret_text

log = logging.getLogger(__name__)

MOST = 50  # of one account
HINT = "paddlecloud get registry shows yours, paddlecloud registry add makes one"


def _master() -> str:
    return secret_text(here().state_dir, "registries")


def _about(account_id: int, name: str) -> str:
    return f"registry {account_id} {name}"


# --- looking after them ----------------------------------------------------------------------


def save(caller: Principal, body: object) -> dict[str, Any]:
    """A new one, or another login in its place."""
    wish = forms.parse(body)
    with writing():
        mine = Registry.objects.filter(account_id=caller.account_id)
        row = mine.filter(name=wish.name).first()
        if row is None and mine.count() >= MOST:
            raise Conflict(
                f"you have {MOST} registries, and that is the most",
                hint="paddlecloud delete registry NAME",
            )
        row = row or Registry(account_id=caller.account_id, name=wish.name)
        row.server, row.username, row.changed_at = wish.server, wish.username, clock.now()
        row.sealed = sealing.seal(_master(), wish.password, _about(caller.account_id, wish.name))
        row.save()
        _tell_engines_after_commit(caller.account_id, caller.name)
    return _shape(row)


def listed(caller: Principal) -> list[dict[str, Any]]:
    rows = Registry.objects.filter(account_id=caller.account_id).order_by("name")
    return [_shape(row) for row in rows]


def as_secrets(caller: Principal) -> list[dict[str, Any]]:
    """As the first server gave them, but for what is secret; and only these, where it gave every
    secret of the namespace."""
    rows = Registry.objects.filter(account_id=caller.account_id).order_by("name")
    return [
        {
            "metadata": {
                "name": forms.secret_name(row.name),
                "namespace": dns_label(caller.name),
                "creation_timestamp": rfc3339_seconds(row.created_at),
            },
            "type": "kubernetes.io/dockerconfigjson",
        }
        for row in rows
    ]


def remove(caller: Principal, name: object) -> None:
    plain = forms.plain_name(name) if isinstance(name, str) else ""
    if not plain:
        raise InvalidInput("is missing: which registry?", field="name")
    with writing():
        row = Registry.objects.filter(account_id=caller.account_id, name=plain).first()
        if row is None:
            raise NotFound(f"no registry {plain[:80]}", field="name", hint=HINT)
        if users := _live_users(caller.account_id, plain):
            raise Conflict(
                f"the registry {plain} is needed by live jobs: {', '.join(users[:5])}",
                hint="kill them, or wait for their end; adding it again replaces its login",
            )
        row.delete()
        _tell_engines_after_commit(caller.account_id, caller.name)


def _live_users(account_id: int, name: str) -> list[str]:
    live = Job.objects.filter(account_id=account_id, live=True).values_list("name", "spec")
    return [job for job, spec in live if forms.plain_name(decode(spec)["registry"]) == name]


def _shape(row: Registry) -> dict[str, Any]:
    return {
        "name": row.name,
        "secret": forms.secret_name(row.name),
        "server": row.server,
        "username": row.username,
        "created_at": rfc3339(row.created_at),
        "changed_at": rfc3339(row.changed_at),
    }


# --- jobs ------------------------------------------------------------------------------------


def settle(caller: Principal, spec: JobSpec, engine: Engine) -> JobSpec:
    """The spec with the name of the secret its pods pull with; an unknown one is refused where
    it would be needed."""
    if not spec.registry or not _pulls(engine):
        return spec
    name = forms.plain_name(spec.registry)
    if not Registry.objects.filter(account_id=caller.account_id, name=name).exists():
        raise InvalidInput(f"you have no registry {name[:80]}", field="registry", hint=HINT)
    return replace(spec, registry=forms.secret_name(name))


def unused_note(spec: JobSpec, engine: Engine) -> str:
    """What to say of a registry that this engine does not use; mostly nothing."""
    if not spec.registry or _pulls(engine):
        return ""
    return f"registry {spec.registry} is not used: jobs of {engine.cluster} have no images"


def _pulls(engine: Engine) -> bool:
    return hasattr(engine, "set_registries")


# --- telling engines -------------------------------------------------------------------------


def docker_configs(account_id: int) -> Mapping[str, str]:
    """Every registry of the account that can still be read, as text for a cluster."""
    found = {}
    for row in Registry.objects.filter(account_id=account_id):
        try:
            password = sealing.unseal(_master(), row.sealed, _about(account_id, row.name))
        except sealing.NotSealed as error:
            log.error("the password of registry %s cannot be read (%s)", row, error)
            continue
        login = forms.Registry(row.name, row.server, row.username, password)
        found[row.name] = forms.docker_config(login)
    return found


def tell(engine: Engine, account_id: int, account: str) -> None:
    """The engine has this account's registries when this returns; engines without images: none."""
    if _pulls(engine):
        engine.set_registries(  # type: ignore[attr-defined]
            account_id, account, docker_configs(account_id)
        )


def tell_all() -> None:
    """After a start: whatever an engine missed."""
    owners = Account.objects.filter(registries__isnull=False).distinct()
    for account_id, name in owners.values_list("id", "username"):
        _tell_engines(account_id, name)


def _tell_engines_after_commit(account_id: int, account: str) -> None:
    after_commit(functools.partial(_tell_engines, account_id, account))


def _tell_engines(account_id: int, account: str) -> None:
    """In the engine's own time: a slow one delays nothing but itself."""
    process = here()
    for engine in process.engines:
        if _pulls(engine):
            process.asking.submit(tell, (engine, account_id, account), _noted)


def _noted(result: object, error: BaseException | None) -> None:
    if error is not None:
        log.warning(
            "an engine was not told registries; the next job that needs one does: %s", error
        )
        forget_broken_connection()
