"""What is under `Client`: the calls about the platform itself, its people, runtimes and files.

It promises what `client` promises. Only `Client` builds on it. It never knows a job.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from paddlecloud.sdk.group_calls import GroupCalls
from paddlecloud.sdk.http import query
from paddlecloud.sdk.transport import Transport
from paddlecloud.wire import routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from paddlecloud.sdk.pfs import Files
    from paddlecloud.wire.algorithm_shapes import AlgorithmShape, AlgorithmWithJobsShape
    from paddlecloud.wire.cluster_shapes import ClusterShape
    from paddlecloud.wire.credential_shapes import (
        AccessShape,
        CertInfoShape,
        CertShape,
        KeyInfoShape,
        KeyShape,
        RevokedShape,
        TokenInfoShape,
    )
    from paddlecloud.wire.published import PublicationShape
    from paddlecloud.wire.registry_shapes import RegistryShape
    from paddlecloud.wire.shapes import (
        AccountShape,
        QuotaShape,
        RuntimeShape,
        StatusShape,
        WhoamiShape,
    )

# How much longer than asked for a long poll may take before the server counts as gone.
LONG_POLL_MARGIN_S = 20.0


class PlatformCalls(GroupCalls):
    """The calls of an administrator and of everyone about themselves."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._files: Files | None = None

    @property
    def endpoint(self) -> str:
        return self._transport.endpoint.url

    def close(self) -> None:
        if self._files is not None:
            self._files.close()
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # --- the platform ----------------------------------------------------------------------

    def healthy(self) -> bool:
        """Whether a server answers there at all; needs no login."""
        response = self._transport.open("GET", routes.HEALTH, timeout_s=5.0)
        return self._transport.read(response).strip() == b"OK"

    def status(self) -> StatusShape:
        return self._call("GET", routes.STATUS)

    def whoami(self) -> WhoamiShape:
        return self._call("GET", routes.WHOAMI)

    def clusters(self) -> list[ClusterShape]:
        """What there is to run on, and what of it the caller's groups may use."""
        return self._items(routes.CLUSTERS)

    # --- algorithms: experiments that jobs belong to ---------------------------------------

    def algorithms(self) -> list[AlgorithmShape]:
        """Those the caller may use, newest first."""
        return self._items(routes.ALGORITHMS)

    def create_algorithm(self, name: str, *, group: str = "", remark: str = "") -> AlgorithmShape:
        """A job belongs to it by the annotation `algo-id`; `group`'s members may use it too."""
        form = {"name": name, "group": group, "remark": remark}
        return self._change("POST", routes.ALGORITHMS, form)

    def algorithm(self, ref: str, *, limit: int | None = None) -> AlgorithmWithJobsShape:
        """By id, or by the name of one's own, with its latest jobs."""
        return self._call("GET", routes.fill(routes.ALGORITHM, ref=ref) + query({"limit": limit}))

    def delete_algorithm(self, ref: str) -> None:
        self._change("DELETE", routes.fill(routes.ALGORITHM, ref=ref), None)

    # --- logging in ------------------------------------------------------------------------

    def login(self, username: str = "", password: str = "") -> str:
        """Exchange a password for a token, remembered in `~/.paddle/token_cache`."""
        return self._transport.login(username, password)

    # --- accounts, quota, runtimes ---------------------------------------------------------

    def quota(self) -> QuotaShape:
        return self._call("GET", routes.QUOTA)

    def accounts(self) -> list[AccountShape]:
        return self._items(routes.ACCOUNTS)

    def add_account(self, name: str, *, password: str = "", admin: bool = False) -> AccountShape:
        form: dict[str, Any] = {"name": name, "admin": admin}
        if password:
            form["password"] = password
        return self._change("POST", routes.ACCOUNTS, form)

    def set_quota(self, name: str, limits: Mapping[str, Any]) -> AccountShape:
        return self._change("PUT", routes.fill(routes.ACCOUNT_QUOTA, name=name), dict(limits))

    def mint_token(self, name: str, *, expires_in_s: int | None = None) -> str:
        form = {} if expires_in_s is None else {"expires_in_s": expires_in_s}
        answer = self._change("POST", routes.fill(routes.ACCOUNT_TOKEN, name=name), form)
        return str(answer["token"])

    def make_certificate(self, name: str) -> CertShape:
        return self._change("POST", routes.fill(routes.ACCOUNT_CERT, name=name), {})

    def certificates(self, name: str) -> list[CertInfoShape]:
        """Every certificate issued to the account, revoked ones too."""
        return self._items(routes.fill(routes.ACCOUNT_CERTS, name=name))

    def tokens(self, name: str) -> list[TokenInfoShape]:
        return self._items(routes.fill(routes.ACCOUNT_TOKENS, name=name))

    def access_keys(self, name: str) -> list[KeyInfoShape]:
        """Every access key of the account, revoked ones too; nothing secret."""
        return self._items(routes.fill(routes.ACCOUNT_KEYS, name=name))

    def make_access_key(
        self, name: str, *, title: str = "", scope: str = "all", ak: str = "", sk: str = ""
    ) -> KeyShape:
        """A new pair, whose secret is told only now. `ak` and `sk` bring one that exists."""
        form = {"name": title, "scope": scope} | ({"ak": ak, "sk": sk} if ak or sk else {})
        return self._change("POST", routes.fill(routes.ACCOUNT_KEYS, name=name), form)

    def rotate_access_key(self, name: str, ak: str, *, overlap_s: float = 0) -> KeyShape:
        """A new secret; the old one is good for `overlap_s` more."""
        path = routes.fill(routes.ACCOUNT_KEYS_ROTATE, name=name)
        return self._change("POST", path, {"ak": ak, "overlap_s": overlap_s})

    def revoke_access_key(self, name: str, ak: str, *, reason: str = "") -> RevokedShape:
        return self._revoke(name, {"key": ak, "reason": reason})

    def revoke_token(self, name: str, token_id: int) -> RevokedShape:
        return self._revoke(name, {"token": token_id})

    def revoke_certificate(self, name: str, serial: str, *, reason: str = "") -> RevokedShape:
        return self._revoke(name, {"cert": serial, "reason": reason})

    def revoke_all(self, name: str, *, reason: str = "") -> RevokedShape:
        """Every token, certificate and access key of the account; perhaps the calling one."""
        return self._revoke(name, {"all": True, "reason": reason})

    def set_password(self, name: str, password: str, old_password: str = "") -> None:
        """Ends the sessions of the old one; tokens and certificates stay.

        Who is no administrator has to name the old one."""
        path = routes.fill(routes.ACCOUNT_PASSWORD, name=name)
        old = {"old_password": old_password} if old_password else {}
        self._change("PUT", path, {"password": password, **old})

    def disable_account(self, name: str, *, kill_jobs: bool = False) -> AccessShape:
        """Every login of it is refused from now on; its jobs go on unless told otherwise."""
        path = routes.fill(routes.ACCOUNT_DISABLE, name=name)
        return self._change("POST", path, {"kill_jobs": kill_jobs})

    def enable_account(self, name: str) -> AccessShape:
        return self._change("POST", routes.fill(routes.ACCOUNT_ENABLE, name=name), {})

    def runtimes(self) -> list[RuntimeShape]:
        return self._items(routes.RUNTIMES)

    def add_runtime(self, name: str, python: str, *, default: bool | None = None) -> RuntimeShape:
        """`python` is a path on the server. Unless told, the first one becomes the default."""
        form: dict[str, Any] = {"name": name, "python": python}
        if default is not None:
            form["default"] = default
        return self._change("POST", routes.RUNTIMES, form)

    def remove_runtime(self, name: str) -> None:
        self._change("DELETE", routes.fill(routes.RUNTIME, name=name), None)

    # --- registries of images --------------------------------------------------------------

    def registries(self) -> list[RegistryShape]:
        """Your logins, without their passwords."""
        return self._items(routes.REGISTRIES)

    def save_registry(
        self, name: str, *, server: str, username: str, password: str
    ) -> RegistryShape:
        """Keep a login for jobs whose `registry` is this name, or replace it."""
        form = {"name": name, "server": server, "username": username, "password": password}
        return self._change("POST", routes.REGISTRIES, form)

    def delete_registry(self, name: str) -> None:
        self._change("DELETE", routes.fill(routes.REGISTRY, name=name), None)

    # --- files -----------------------------------------------------------------------------

    @property
    def files(self) -> Files:
        """The files under `/pfs`: listing, changing, moving many in both directions."""
        if self._files is None:
            from paddlecloud.sdk.pfs import Files

            self._files = Files(self._transport)
        return self._files

    # --- published files -------------------------------------------------------------------

    def publish(self, path: str, expires_in_s: int | None = None) -> PublicationShape:
        """A link to a file of your home, for anybody who has it; it lives a week unless told.

        It gives what is there when it is fetched, so a file that was replaced is served anew.
        """
        form: dict[str, Any] = {"path": path}
        if expires_in_s is not None:
            form["expires_in_s"] = expires_in_s
        return self._change("POST", routes.PUBLICATIONS, form)

    def published(self) -> list[PublicationShape]:
        """Your links that still work, newest first."""
        return self._items(routes.PUBLICATIONS)

    def revoke_publication(self, publication_id: str) -> None:
        """End a link, by the `id` that `publish` and `published` say."""
        self._change("DELETE", routes.fill(routes.PUBLICATION, id=publication_id), None)

    # --- underneath ------------------------------------------------------------------------

    def _call(self, method: str, path: str) -> Any:
        return self._transport.call(method, path)

    def _items(self, path: str) -> list[Any]:
        items: list[Any] = self._call("GET", path)["items"]
        return items

    def _change(self, method: str, path: str, body: object, *, key: str = "") -> Any:
        headers = {routes.IDEMPOTENCY_KEY: key or new_key()}
        return self._transport.call(method, path, body, headers=headers)

    def _revoke(self, name: str, what: dict[str, Any]) -> RevokedShape:
        return self._change("POST", routes.fill(routes.ACCOUNT_REVOKE, name=name), what)

    def _long_poll(self, path: str, asked: dict[str, object], poll_s: float) -> Any:
        path += query({**asked, "timeout_s": f"{poll_s:g}"})
        return self._transport.call("GET", path, timeout_s=poll_s + LONG_POLL_MARGIN_S)


def new_key() -> str:
    """An idempotency key that nobody else will ever use."""
    return os.urandom(16).hex()
