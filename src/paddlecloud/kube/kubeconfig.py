"""Where the API server is and who we are: a kubeconfig file, or the pod we run in.

`from_file(path)` and `from_pod()` give an `Access`; `Access.tls()` makes the SSL context and
`Access.headers()` the credentials of one call. Read by `kube.client`. Key material given inline
is on disk only while OpenSSL reads it.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from paddlecloud.core.errors import Fault, InvalidInput, NotFound

IN_POD = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_REREAD_S = 60.0  # a kubelet replaces the token of a pod well before it expires


@dataclass
class Access:
    host: str
    port: int
    secure: bool = True
    path: str = ""  # before /api, for servers behind a proxy
    namespace: str = "default"
    authority: bytes | None = None  # PEM
    verify: bool = True
    certificate: bytes | None = None  # PEM
    key: bytes | None = None
    token: str = ""
    token_file: Path | None = None
    command: Mapping[str, Any] | None = None  # an exec plug-in
    _token_read_at: float = field(default=-1e9, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def tls(self) -> ssl.SSLContext | None:
        if not self.secure:
            return None
        context = ssl.create_default_context(
            cadata=self.authority.decode() if self.authority else None
        )
        if not self.verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if self.certificate and self.key:
            with ExitStack() as stack:
                files = [
                    stack.enter_context(tempfile.NamedTemporaryFile(prefix="paddlecloud-"))
                    for _ in range(2)
                ]
                for file, content in zip(files, (self.certificate, self.key), strict=True):
                    file.write(content)
                    file.flush()
                context.load_cert_chain(files[0].name, files[1].name)
        return context

    def headers(self) -> dict[str, str]:
        with self._lock:
            self._refresh()
            return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def _refresh(self) -> None:
        now = time.monotonic()
        if now - self._token_read_at < TOKEN_REREAD_S:
            return
        if self.token_file is not None:
            self.token = self.token_file.read_text().strip()
        elif self.command is not None:
            self.token = _ask(self.command)
        self._token_read_at = now


def _ask(command: Mapping[str, Any]) -> str:
    """The token an exec plug-in prints."""
    given = {one["name"]: one["value"] for one in command.get("env") or ()}
    info = {"kind": "ExecCredential", "apiVersion": command["apiVersion"], "spec": {}}
    done = subprocess.run(
        [command["command"], *(command.get("args") or ())],
        env={**os.environ, **given, "KUBERNETES_EXEC_INFO": json.dumps(info)},
        capture_output=True,
        timeout=60,
        check=True,
    )
    return str(json.loads(done.stdout)["status"]["token"])


def from_pod(folder: Path = IN_POD) -> Access:
    """The service account of the pod this runs in."""
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
    if not host or not (folder / "token").exists():
        raise NotFound(
            "this is not a pod of a cluster with a service account",
            hint="outside a cluster say which one: --kubeconfig FILE",
        )
    return Access(
        host=host,
        port=int(port),
        namespace=(folder / "namespace").read_text().strip(),
        authority=(folder / "ca.crt").read_bytes(),
        token_file=folder / "token",
    )


def from_file(path: Path, context: str = "") -> Access:
    """The cluster, user and namespace of a context of the file, by default its current one."""
    try:
        body = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFound(f"there is no kubeconfig {path}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise _bad(path, f"is not YAML: {error}") from None
    if not isinstance(body, dict):
        raise _bad(path, "is not a kubeconfig")
    chosen = context or str(body.get("current-context") or "")
    try:
        names = _named(body, "contexts", chosen)["context"]
        cluster = _named(body, "clusters", names["cluster"])["cluster"]
        user = _named(body, "users", names["user"]).get("user") or {}
        server = urlsplit(cluster["server"])
    except (KeyError, TypeError) as error:
        raise _bad(path, f"lacks {error} for the context {chosen!r}") from None
    secure = server.scheme == "https"
    return Access(
        host=server.hostname or "",
        port=server.port or (443 if secure else 80),
        secure=secure,
        path=server.path.rstrip("/"),
        namespace=names.get("namespace") or "default",
        authority=_content(path, cluster, "certificate-authority"),
        verify=not cluster.get("insecure-skip-tls-verify"),
        certificate=_content(path, user, "client-certificate"),
        key=_content(path, user, "client-key"),
        token=str(user.get("token") or ""),
        token_file=Path(user["tokenFile"]) if user.get("tokenFile") else None,
        command=user.get("exec"),
    )


def _named(body: Mapping[str, Any], key: str, name: str) -> Mapping[str, Any]:
    for one in body.get(key) or ():
        if one.get("name") == name:
            return one  # type: ignore[no-any-return]
    raise KeyError(f"{key}: {name}")


def _content(path: Path, body: Mapping[str, Any], key: str) -> bytes | None:
    """Given inline, or as a file beside the kubeconfig."""
    if body.get(f"{key}-data"):
        return base64.b64decode(body[f"{key}-data"])
    return (path.parent / body[key]).read_bytes() if body.get(key) else None


def _bad(path: Path, problem: str) -> InvalidInput:
    return InvalidInput(faults=[Fault("--kubeconfig", problem, str(path))])
