"""Django's WSGI pages behind the ASGI front: one thread hop, bodies bounded, answers whole.

Only the admin site and its files come through here, so simplicity wins over streaming. Django is
asked for its handler with the first such request.
"""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from paddlecloud.pfs.serving.connection_counts import network_of
from paddlecloud.server.pools import Pool

Message = MutableMapping[str, Any]
# Pages load from this server alone, send forms to it alone, and nobody frames them.
_POLICY = (
    b"content-security-policy",
    b"default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none';"
    b" form-action 'self'; frame-ancestors 'none'",
)


class Bridge:
    def __init__(self, body_bytes: int, pool: Pool) -> None:
        self._body_bytes = body_bytes
        self._pool = pool
        self._application: Callable[..., Any] | None = None

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        body = b""
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self._body_bytes:
                await send({"type": "http.response.start", "status": 413, "headers": []})
                await send({"type": "http.response.body", "body": b"the body is too large"})
                return
        client = scope.get("client") or ("",)
        status, headers, content = await self._pool.run(
            self._call, _environ(scope, body), turn="@" + network_of(client[0])
        )
        await send({"type": "http.response.start", "status": status, "headers": headers})
        is_head = scope["method"] == "HEAD"
        await send({"type": "http.response.body", "body": b"" if is_head else content})

    def _call(self, environ: dict[str, Any]) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        if self._application is None:
            from django.core.handlers.wsgi import WSGIHandler

            self._application = WSGIHandler()
        head: list[Any] = []

        def start_response(status: str, headers: Any, exc_info: Any = None) -> None:
            head[:] = [int(status.split(" ", 1)[0]), headers]

        result = self._application(environ, start_response)
        try:
            content = b"".join(result)
        finally:
            result.close()
        headers = [(n.lower().encode("latin-1"), v.encode("latin-1")) for n, v in head[1]]
        headers.append(_POLICY)
        return head[0], headers, content


def _environ(scope: Message, body: bytes) -> dict[str, Any]:
    server = scope.get("server") or ("localhost", 80)
    client = scope.get("client") or ("", 0)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode().decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "REMOTE_ADDR": client[0],
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if name == "content-type":
            environ["CONTENT_TYPE"] = value
        elif name != "content-length" and "_" not in name:
            key = "HTTP_" + name.upper().replace("-", "_")
            # Two cookies headers are one; of other repeated headers the joined list is meant.
            joint = "; " if name == "cookie" else ","
            environ[key] = f"{environ[key]}{joint}{value}" if key in environ else value
    return environ
