"""One request and its answer, as routers see them: no framework, no sockets.

The front builds requests from ASGI and sends answers; routers and services never touch either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from paddlecloud.core.errors import InvalidInput, PaddleCloudError
from paddlecloud.wire.routes import IDEMPOTENCY_KEY

if TYPE_CHECKING:
    from paddlecloud.server.authentication import Principal
    from paddlecloud.server.routing import Route

encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode
decode: Callable[[bytes | str], Any] = msgspec.json.Decoder().decode
_JSON = (b"content-type", b"application/json")


@dataclass(slots=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]  # lower-case names
    address: str  # of the client
    route: Route
    segments: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    body: bytes = b""
    scheme: str = "http"
    reached: tuple[str, int] = ("", 0)  # the address of ours the connection was made to
    peer: str = ""  # id, serial and name in a TLS client certificate
    query: bytes = b""  # as sent
    repeated: frozenset[str] = frozenset()  # names of headers that were sent more than once
    most_fields: int = 100  # of the query
    kept_bytes: int = 0  # of the body, so far
    is_read: bool = False  # the body is here; else whoever reads it compares it with the digest
    body_sha256: str = ""  # what the caller signed as its digest
    body_md5: str = ""  # the same of a legacy signature, in base64 or hexadecimal
    repeat_word: str = IDEMPOTENCY_KEY  # what the caller calls the key of a repeated request
    principal: Principal | None = None

    @property
    def has_body(self) -> bool:
        """Whether one comes that anybody here reads."""
        if self.method not in ("POST", "PUT", "DELETE", "PATCH"):
            return False
        return "transfer-encoding" in self.headers or (
            self.headers.get("content-length", "0") != "0"
        )

    @property
    def caller(self) -> Principal:
        if self.principal is None:
            raise RuntimeError(f"{self.route.path} is open to anonymous and asked who calls")
        return self.principal

    def json(self, *, optional: bool = False) -> dict[str, Any]:
        """The body as an object; anything else is the sender's fault."""
        if optional and not self.body.strip():
            return {}
        try:
            value = decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidInput(
                f"the body is not JSON: {error}", field="body", hint="send a JSON object"
            ) from None
        if not isinstance(value, dict):
            raise InvalidInput("the body must be a JSON object", field="body")
        return value


@dataclass(slots=True)
class Answer:
    status: int = 200
    body: bytes = b""
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)


def json_answer(value: Any, status: int = 200) -> Answer:
    return Answer(status, encode(value), [_JSON])


def text_answer(text: str, status: int = 200) -> Answer:
    return Answer(status, text.encode(), [(b"content-type", b"text/plain; charset=utf-8")])


def error_answer(error: PaddleCloudError, dialect: str, status: int = 0) -> Answer:
    """`status` is the error's own unless HTTP has a number that says more. v2: the error's
    own JSON. v1: `code` is the HTTP status and `msg` the sentence, as the old clients read them,
    with the other fields beside. job_v1 has no `msg`, cluster_v1 no `message`, and both an empty
    `data`."""
    status = status or error.http_status
    body = error.to_json()
    if dialect != "v2":
        body = {**body, "error": body["code"], "code": status}
    if dialect in ("v1", "cluster_v1"):
        body["msg"] = error.message
    if dialect in ("job_v1", "cluster_v1"):
        body["data"] = None
    if dialect == "cluster_v1":
        del body["message"]
    answer = json_answer(body, status)
    if status == 401:
        answer.headers.append((b"www-authenticate", b'Token realm="paddlecloud"'))
    retry_after_s = getattr(error, "retry_after_s", None)
    if retry_after_s is not None:
        answer.headers.append((b"retry-after", str(max(1, round(retry_after_s))).encode()))
    return answer


def rfc3339(at: float | None) -> str | None:
    """`2026-11-15T07:52:45.120Z`."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def rfc3339_seconds(at: float | None) -> str | None:
    """The spelling of the old clients, `2017-05-24T07:52:45Z`."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")[:-6] + "Z"
