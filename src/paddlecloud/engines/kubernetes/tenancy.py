"""Accounts' namespaces on a cluster: made when first needed, and kept right.

`ensure` is level triggered and may be called as often as one likes: what was sent last is
remembered for a while, so most calls cost nothing. Everything is sent by server-side apply, so a
field that somebody changed comes back and fields of others stay. A namespace that is not marked as
this account's is never taken over. The engine calls it from several threads.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from paddlecloud.core.errors import Conflict, Unavailable
from paddlecloud.engines.kubernetes import tenant_bodies as bodies
from paddlecloud.engines.kubernetes.tenant_bodies import (
    REGISTRIES_ANNOTATION,
    UNLIMITED,
    Tenant,
    Terms,
    namespace_of,
)
from paddlecloud.forms.registries import secret_name
from paddlecloud.kube.client import Client, member
from paddlecloud.kube.refusals import Refused
from paddlecloud.kube.words import ACCOUNT_ANNOTATION
from paddlecloud.scheduling.snapshot import Quota

Json = dict[str, Any]
FIELD_MANAGER = "paddlecloud-server"
APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML
BELIEVED_FOR_S = 60.0

_PLURALS = {
    "Namespace": ("v1", "namespaces"),
    "ResourceQuota": ("v1", "resourcequotas"),
    "LimitRange": ("v1", "limitranges"),
    "ServiceAccount": ("v1", "serviceaccounts"),
    "Secret": ("v1", "secrets"),
    "RoleBinding": (f"{bodies.RBAC}/v1", "rolebindings"),
}


def _path(body: Json) -> str:
    version, plural = _PLURALS[body["kind"]]
    metadata = body["metadata"]
    return member(version, plural, metadata.get("namespace", ""), metadata["name"])


class Tenancy:
    def __init__(
        self, client: Client, terms: Terms, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._terms = terms
        self._clock = clock
        self._lock = threading.Lock()
        self._quotas: Mapping[int, Quota] = {}
        self._registries: dict[int, Mapping[str, str]] = {}
        self._known: dict[int, str] = {}  # accounts that have a namespace
        self._sent: dict[int, tuple[Tenant, float]] = {}

    def set_quotas(self, quotas: Mapping[int, Quota]) -> None:
        """Used from the next `ensure` on; `refresh` sends them to those who have a namespace."""
        self._quotas = dict(quotas)

    def set_registries(self, account_id: int, account: str, registries: Mapping[str, str]) -> None:
        """All of the account's; when this returns the cluster has these and no others."""
        with self._lock:
            self._registries[account_id] = dict(registries)
        if registries or account_id in self._known or self._exists(account):
            self.ensure(account_id, account)

    def ensure(self, account_id: int, account: str) -> str:
        """The account's namespace, as it should be."""
        name = namespace_of(account, self._terms.prefix)
        with self._lock:
            tenant = self._tenant(account_id, account)
            sent, at = self._sent.get(account_id, (None, 0.0))
            if sent == tenant and self._clock() - at < BELIEVED_FOR_S:
                return name
            self._send(tenant, name)
            self._sent[account_id] = (tenant, self._clock())
            self._known[account_id] = account
        return name

    def refresh(self) -> None:
        """Send what has changed to everybody who has a namespace."""
        for account_id, account in list(self._known.items()):
            self.ensure(account_id, account)

    def forget(self, account_id: int) -> None:
        """Something was not as it should be: the next `ensure` sends all of it again."""
        with self._lock:
            self._sent.pop(account_id, None)

    # --- underneath --------------------------------------------------------------------------

    def _tenant(self, account_id: int, account: str) -> Tenant:
        quota = self._quotas.get(account_id, UNLIMITED)
        return Tenant(account_id, account, quota, self._registries.get(account_id))

    def _exists(self, account: str) -> bool:
        return self._look(namespace_of(account, self._terms.prefix)) is not None

    def _look(self, name: str) -> Json | None:
        try:
            return self._client.get(member("v1", "namespaces", "", name))
        except Refused as refused:
            if refused.is_missing:
                return None
            raise

    def _send(self, tenant: Tenant, name: str) -> None:
        there = self._look(name)
        if there is not None:
            _check_is_theirs(there, tenant.account)
        before = _registries_of(there)
        wanted = before if tenant.registries is None else set(tenant.registries)
        # First those that may be there, so that a crash in between leaves no secret unlisted.
        self._apply(bodies.namespace(tenant, self._terms, sorted(before | wanted)))
        for body in bodies.inside(tenant, self._terms):
            self._apply(body)
        for body in bodies.secrets(tenant, self._terms):
            self._apply(body)
        gone = before - wanted
        for registry in sorted(gone):
            self._delete_secret(name, secret_name(registry))
        if gone:
            self._apply(bodies.namespace(tenant, self._terms, sorted(wanted)))

    def _apply(self, body: Json) -> None:
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        self._client.call("PATCH", _path(body), body, query=query, content_type=APPLY_PATCH)

    def _delete_secret(self, namespace: str, name: str) -> None:
        try:
            self._client.delete(member("v1", "secrets", namespace, name))
        except Refused as refused:
            if not refused.is_missing:
                raise


def _check_is_theirs(namespace: Json, account: str) -> None:
    metadata = namespace["metadata"]
    name = metadata["name"]
    if metadata.get("deletionTimestamp"):
        raise Unavailable(f"the namespace {name} is being deleted", hint="try again in a moment")
    owner = (metadata.get("annotations") or {}).get(ACCOUNT_ANNOTATION)
    if owner != account:
        whose = f"belongs to the account {owner}" if owner else "was not made by this platform"
        raise Conflict(
            f"the namespace {name} {whose}",
            hint="to give it to the account:"
            f" kubectl annotate namespace {name} {ACCOUNT_ANNOTATION}={account}",
        )


def _registries_of(namespace: Json | None) -> set[str]:
    notes = (namespace or {}).get("metadata", {}).get("annotations") or {}
    try:
        found = json.loads(notes.get(REGISTRIES_ANNOTATION) or "[]")
    except ValueError:
        return set()
    return {name for name in found if isinstance(name, str)} if isinstance(found, list) else set()
