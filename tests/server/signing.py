"""`paddle-auth-v1` by the steps of the old service, for tests: nothing of `wire.signing`.

`Signer` sends requests as the old client did (legacy), or with the nonce and the digest of ours.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import time
import uuid
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from tests.patience import PATIENCE_S
from tests.server.running import Answer

_PLAIN = "host content-md5 content-length content-type".split()


def mac(key: str, text: str) -> str:
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def percent(text: str, safe: str = "") -> str:
    return quote(text, safe=".~-_" + safe)


def authorization(
    ak: str,
    sk: str,
    method: str,
    target: str,
    headers: dict[str, str],
    *,
    at_s: int | None = None,
    expires_s: int = 1800,
    listed: str = "",
) -> str:
    """The header of a request whose other headers are `headers`, by the table of steps."""
    prefix = f"paddle-auth-v1/{ak}/{int(time.time()) if at_s is None else at_s}/{expires_s}"
    parts = urlsplit(target)
    query = "&".join(sorted(f"{percent(k)}={percent(v)}" for k, v in parse_qsl(parts.query, True)))
    lines = []
    for raw, value in headers.items():
        name = raw.lower()
        is_signed = name in _PLAIN or name.startswith("x-paddle-")
        if name in listed.split(";") if listed else is_signed:
            bare = value.strip().partition(":")[0] if name == "host" else value.strip()
            lines.append(f"{percent(name)}:{percent(bare)}")
    text = "\n".join([method, percent(unquote(parts.path), "/"), query, "\n".join(sorted(lines))])
    return f"{prefix}/{listed}/{mac(mac(sk, prefix), text)}"


class Signer:
    """Requests with a key pair to a server on this machine; a new connection for each."""

    def __init__(self, port: int, ak: str, sk: str) -> None:
        self.port = port
        self.ak = ak
        self.sk = sk

    def headers(self, data: bytes, nonce: str = "") -> dict[str, str]:
        """What the old client sends; with a nonce also what ours adds."""
        sent = {
            "host": f"127.0.0.1:{self.port}",
            "content-type": "application/json",
            "content-length": str(len(data)),
            "expires": "1800",
            "request-id": str(uuid.uuid1()),
            "User-Agent": "paddle-cli/1.0.0/2.7.5/linux2",
        }
        if nonce:
            sent["x-paddle-nonce"] = nonce
            sent["x-paddle-content-sha256"] = hashlib.sha256(data).hexdigest()
        return sent

    def legacy(self, method: str, target: str, body: Any = None, **how: Any) -> Answer:
        """As a client of the old package; `headers` are added before the signature."""
        return self._call(method, target, body, "", **how)

    def complete(self, method: str, target: str, body: Any = None, **how: Any) -> Answer:
        return self._call(method, target, body, how.pop("nonce", "") or uuid.uuid4().hex, **how)

    def _call(self, method: str, target: str, body: Any, nonce: str, **how: Any) -> Answer:
        data = b"" if body is None else json.dumps(body).encode()
        headers = self.headers(data, nonce) | how.pop("headers", {})
        after = how.pop("after", {})
        headers["Authorization"] = authorization(self.ak, self.sk, method, target, headers, **how)
        return self.send(method, target, headers | after, data)

    def send(self, method: str, target: str, headers: dict[str, str], data: bytes) -> Answer:
        """Exactly these headers, signed or not."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(data)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()
