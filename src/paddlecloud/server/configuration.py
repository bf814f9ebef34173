"""What an operator may set, as typed groups; each field says its unit, default and reason.

`load` is called once by the process (from `settings`), reads only the environment it is given and
fails with a sentence that names the variable. `python -m paddlecloud.server` writes its arguments
into the same variables first, so there is one source.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from paddlecloud.core.errors import InvalidInput
from paddlecloud.core.resources import BadQuantity, parse_memory
from paddlecloud.forms.custom_resources import GPU_NAMES


@dataclass(frozen=True, slots=True)
class Listening:
    """Where the server is reached."""

    host: str = "127.0.0.1"  # PADDLECLOUD_HOST; loopback: opening up is a decision, not a default
    port: int = 8000  # PADDLECLOUD_PORT; 0 = any free port, written to run/server.json
    public_url: str = ""  # PADDLECLOUD_PUBLIC_URL; what clients and jobs are told, if not host:port
    allowed_hosts: tuple[str, ...] = ()  # PADDLECLOUD_ALLOWED_HOSTS, comma list; pages only
    tls: bool = False  # PADDLECLOUD_TLS=1: serve https with the state directory's own CA
    behind_tls_proxy: bool = False  # PADDLECLOUD_TLS=proxy: someone in front ends TLS

    @property
    def is_loopback(self) -> bool:
        return self.host in ("localhost", "::1") or self.host.startswith("127.")


@dataclass(frozen=True, slots=True)
class Storage:
    state_dir: Path  # PADDLECLOUD_HOME; everything the platform writes is below it
    # PADDLECLOUD_DATABASE_URL; empty = SQLite in the state directory. It holds a password, so it
    # is kept out of whatever prints the configuration.
    database_url: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Engines:
    kind: str = "local"  # PADDLECLOUD_ENGINE: local, kubernetes or fake (for tests)
    cluster: str = "local"  # PADDLECLOUD_CLUSTER: the <datacenter> of /pfs paths
    answer_within_s: float = 5.0  # PADDLECLOUD_ENGINE_TIMEOUT_S; then a request says Unavailable


@dataclass(frozen=True, slots=True)
class Cluster:
    """How jobs are written for a Kubernetes cluster; read by that engine alone."""

    kubeconfig: Path | None = None  # PADDLECLOUD_KUBECONFIG; left out: the cluster this runs in
    context: str = ""  # PADDLECLOUD_KUBE_CONTEXT; left out: the file's current one
    image: str = ""  # PADDLECLOUD_KUBE_IMAGE of jobs that name none; left out: the first client's
    # PADDLECLOUD_KUBE_PFS_VOLUME: JSON, a volume as a pod names it, with home/ and public/ in it.
    # Left out, jobs see no files.
    pfs_volume: Mapping[str, Any] | None = None
    namespace_prefix: str = ""  # PADDLECLOUD_KUBE_NAMESPACE_PREFIX; left out: paddlecloud-
    gpu_resource: str = ""  # PADDLECLOUD_KUBE_GPU; left out: nvidia.com/gpu
    pod_security: str = "baseline"  # PADDLECLOUD_KUBE_POD_SECURITY of accounts' namespaces
    kubectl_user: str = ""  # PADDLECLOUD_KUBE_USER, e.g. oidc:{account}; left out: nobody
    archives_logs: bool = True  # PADDLECLOUD_KUBE_ARCHIVE=0: logs end with their pods


@dataclass(frozen=True, slots=True)
class FileService:
    """The file server: a child of ours, or one that runs elsewhere."""

    url: str = ""  # PADDLECLOUD_PFS_URL; an outside one, reached there by us and by clients
    knows_secret: bool = False  # PADDLECLOUD_PFS_SECRET=1: it has a copy of secrets/pfs-relay
    port: int = 0  # PADDLECLOUD_PFS_PORT of our own; 0 = any free port, told in /api/v2/status
    # What an account may store unless its own quota says otherwise; None = no limit.
    storage_bytes: int | None = None  # PADDLECLOUD_STORAGE_BYTES, e.g. 100Gi
    storage_files: int | None = None  # PADDLECLOUD_STORAGE_FILES


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What a client may cost before anybody knows who it is."""

    most: int = 4096  # PADDLECLOUD_MAX_CONNECTIONS; fewer where descriptors do not reach
    # PADDLECLOUD_MAX_CONNECTIONS_PER_ADDRESS; one office or one machine of jobs is one address.
    # Not applied behind a proxy, where everybody has the proxy's address.
    per_address: int = 1024
    head_bytes: int = 32 << 10  # PADDLECLOUD_MAX_HEAD_BYTES; request line and headers
    headers: int = 100  # PADDLECLOUD_MAX_HEADERS
    query_fields: int = 100  # PADDLECLOUD_MAX_QUERY_FIELDS
    head_within_s: float = 10.0  # PADDLECLOUD_HEAD_TIMEOUT_S; from its first byte to its last
    # PADDLECLOUD_BODY_TIMEOUT_S; without a byte sent, or taken of the answer
    body_silence_s: float = 60.0
    stranger_body_bytes: int = 64 << 10  # bodies of calls that need no login, and of pages


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what one request may cost."""

    body_bytes: int = 1 << 20  # JSON bodies; a spec is a few kB
    package_bytes: int = 4 << 30  # PADDLECLOUD_MAX_PACKAGE_BYTES; one submitted folder
    package_files: int = 200_000
    file_bytes: int = 4 << 40  # PADDLECLOUD_MAX_FILE_BYTES; the file server reads it too
    log_read_bytes: int = 4 << 20  # the most one log request returns
    idempotency_s: float = 7 * 86400.0  # how long a key is remembered
    followers: int = 5000  # open streams and waits; above it 503
    requests_per_account: int = 1024  # PADDLECLOUD_MAX_REQUESTS; waits, streams and transfers too
    body_bytes_per_account: int = 64 << 20  # bodies of requests that are not answered yet
    # What may be fetched through one published link at a time; strangers all share it.
    fetches_per_link: int = 64


@dataclass(frozen=True, slots=True)
class Logins:
    """Wrong passwords: free tries, then a delay that doubles, per account and per address."""

    free_tries: int = 5
    first_delay_s: float = 1.0
    max_delay_s: float = 900.0
    address_free_tries: int = 20  # PADDLECLOUD_LOGIN_TRIES_PER_ADDRESS; many may share one
    forget_after_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class Signatures:
    """Requests signed with access keys."""

    # PADDLECLOUD_LEGACY_SIGNATURES=0 refuses signatures that cover neither the body nor a nonce:
    # whoever reads one on the way can use it for another body of that length while it is good.
    takes_legacy: bool = True


@dataclass(frozen=True, slots=True)
class Threads:
    """Sizes of the pools. Few: one interpreter runs them and rows are answered in a millisecond."""

    requests: int = 4
    requests_each: int = 3  # of one caller at a time: one is always left for the others
    logs: int = 4  # reads of logs: a slow engine holds these and nothing else
    log_waits: int = 8  # logs that are waited for at the same instant


@dataclass(frozen=True, slots=True)
class Configuration:
    storage: Storage
    listening: Listening = Listening()
    engines: Engines = Engines()
    kubernetes: Cluster = Cluster()
    files: FileService = FileService()
    limits: Limits = Limits()
    connections: ConnectionLimits = ConnectionLimits()
    logins: Logins = Logins()
    signatures: Signatures = Signatures()
    threads: Threads = Threads()


_N = TypeVar("_N", int, float)
_ENGINE_WORDS = {"embedded": "local"}  # what `status` calls it


def _number(env: Mapping[str, str], name: str, default: _N, low: _N, high: _N) -> _N:
    text = env.get(name, "")
    if not text:
        return default
    try:
        value = type(default)(text)
    except ValueError:
        value = None
    if value is None or not low <= value <= high:
        raise InvalidInput(
            f"{name} is {text!r}; it must be a number from {low} to {high}", field=name
        )
    return value


def _quantity(env: Mapping[str, str], name: str) -> int | None:
    """`100Gi` or `1000000`; left out, no limit."""
    text = env.get(name, "")
    if not text:
        return None
    try:
        return parse_memory(text)
    except BadQuantity as error:
        raise InvalidInput(f"{name} is {text!r}: {error}", field=name) from None


def _service_url(env: Mapping[str, str], name: str) -> str:
    url = env.get(name, "").rstrip("/")
    if url and not url.startswith(("http://", "https://")):
        raise InvalidInput(f"{name} is {url!r}; it must begin with http:// or https://", field=name)
    return url


_LEVELS = ("privileged", "baseline", "restricted")
_PREFIX = re.compile(r"[a-z0-9]([a-z0-9-]{0,30})?")


def _cluster(env: Mapping[str, str]) -> Cluster:
    def text(name: str, default: str = "") -> str:
        return env.get(f"PADDLECLOUD_{name}", "") or default

    level = text("KUBE_POD_SECURITY", "baseline")
    if level not in _LEVELS:
        raise _refused("KUBE_POD_SECURITY", level, f"allowed are {', '.join(_LEVELS)}")
    prefix = text("KUBE_NAMESPACE_PREFIX")
    if prefix and not _PREFIX.fullmatch(prefix):
        raise _refused("KUBE_NAMESPACE_PREFIX", prefix, "write a-z, 0-9 and '-', e.g. team-")
    user = text("KUBE_USER")
    if user and "{account}" not in user:
        raise _refused("KUBE_USER", user, "write {account} where the account's name belongs")
    gpu = text("KUBE_GPU")
    if gpu and gpu not in GPU_NAMES:
        raise _refused("KUBE_GPU", gpu, f"allowed are {', '.join(GPU_NAMES)}")
    file = text("KUBECONFIG")
    return Cluster(
        kubeconfig=Path(file).expanduser().absolute() if file else None,
        context=text("KUBE_CONTEXT"),
        image=text("KUBE_IMAGE"),
        pfs_volume=_volume(text("KUBE_PFS_VOLUME")),
        namespace_prefix=prefix,
        gpu_resource=gpu,
        pod_security=level,
        kubectl_user=user,
        archives_logs=bool(_number(env, "PADDLECLOUD_KUBE_ARCHIVE", 1, 0, 1)),
    )


def _volume(text: str) -> Mapping[str, Any] | None:
    if not text:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or len(found) != 1 or "name" in found:
        wanted = 'write one volume as a pod does, e.g. {"nfs": {"server": "files", "path": "/pfs"}}'
        raise _refused("KUBE_PFS_VOLUME", text, wanted)
    return found


def _refused(name: str, text: str, wanted: str) -> InvalidInput:
    variable = f"PADDLECLOUD_{name}"
    return InvalidInput(f"{variable} is {text[:80]!r}; {wanted}", field=variable)


def _connections(env: Mapping[str, str], *, is_behind_proxy: bool) -> ConnectionLimits:
    usual = ConnectionLimits()
    most = _number(env, "PADDLECLOUD_MAX_CONNECTIONS", usual.most, 1, 1 << 20)
    each = _number(env, "PADDLECLOUD_MAX_CONNECTIONS_PER_ADDRESS", usual.per_address, 1, 1 << 20)
    return ConnectionLimits(
        most=most,
        per_address=most if is_behind_proxy else each,
        head_bytes=_number(env, "PADDLECLOUD_MAX_HEAD_BYTES", usual.head_bytes, 4 << 10, 16 << 20),
        headers=_number(env, "PADDLECLOUD_MAX_HEADERS", usual.headers, 20, 10_000),
        query_fields=_number(env, "PADDLECLOUD_MAX_QUERY_FIELDS", usual.query_fields, 20, 10_000),
        head_within_s=_number(env, "PADDLECLOUD_HEAD_TIMEOUT_S", usual.head_within_s, 0.1, 3600.0),
        body_silence_s=_number(
            env, "PADDLECLOUD_BODY_TIMEOUT_S", usual.body_silence_s, 0.1, 3600.0
        ),
    )


def load(env: Mapping[str, str] | None = None) -> Configuration:
    """The configuration the environment describes."""
    env = os.environ if env is None else env
    home = env.get("PADDLECLOUD_HOME") or os.path.join(os.path.expanduser("~"), ".paddlecloud")
    tls = env.get("PADDLECLOUD_TLS", "").lower()
    if tls not in ("", "0", "1", "proxy"):
        raise InvalidInput(
            f"PADDLECLOUD_TLS is {tls!r}; allowed are 0, 1 and proxy", field="PADDLECLOUD_TLS"
        )
    defaults = Limits()
    return Configuration(
        storage=Storage(Path(home).absolute(), env.get("PADDLECLOUD_DATABASE_URL", "")),
        listening=Listening(
            host=env.get("PADDLECLOUD_HOST") or "127.0.0.1",
            port=_number(env, "PADDLECLOUD_PORT", 8000, 0, 65535),
            public_url=env.get("PADDLECLOUD_PUBLIC_URL", "").rstrip("/"),
            allowed_hosts=tuple(
                host.strip()
                for host in env.get("PADDLECLOUD_ALLOWED_HOSTS", "").split(",")
                if host.strip()
            ),
            tls=tls == "1",
            behind_tls_proxy=tls == "proxy",
        ),
        engines=Engines(
            kind=_ENGINE_WORDS.get(env.get("PADDLECLOUD_ENGINE", ""), env.get("PADDLECLOUD_ENGINE"))
            or "local",
            cluster=env.get("PADDLECLOUD_CLUSTER") or "local",
            answer_within_s=_number(env, "PADDLECLOUD_ENGINE_TIMEOUT_S", 5.0, 0.05, 300.0),
        ),
        kubernetes=_cluster(env),
        files=FileService(
            url=_service_url(env, "PADDLECLOUD_PFS_URL"),
            knows_secret=bool(_number(env, "PADDLECLOUD_PFS_SECRET", 0, 0, 1)),
            port=_number(env, "PADDLECLOUD_PFS_PORT", 0, 0, 65535),
            storage_bytes=_quantity(env, "PADDLECLOUD_STORAGE_BYTES"),
            storage_files=_quantity(env, "PADDLECLOUD_STORAGE_FILES"),
        ),
        signatures=Signatures(
            takes_legacy=bool(_number(env, "PADDLECLOUD_LEGACY_SIGNATURES", 1, 0, 1))
        ),
        logins=Logins(
            address_free_tries=_number(
                env, "PADDLECLOUD_LOGIN_TRIES_PER_ADDRESS", Logins().address_free_tries, 1, 1 << 30
            )
        ),
        connections=_connections(env, is_behind_proxy=tls == "proxy"),
        limits=Limits(
            package_bytes=_number(
                env, "PADDLECLOUD_MAX_PACKAGE_BYTES", defaults.package_bytes, 1, 1 << 50
            ),
            file_bytes=_number(env, "PADDLECLOUD_MAX_FILE_BYTES", defaults.file_bytes, 1, 1 << 50),
            requests_per_account=_number(
                env, "PADDLECLOUD_MAX_REQUESTS", defaults.requests_per_account, 1, 1 << 20
            ),
        ),
    )
