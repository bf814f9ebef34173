"""File requests of clients that reach only one port: passed on to the file server, both ways.

The front has said who calls; the request goes on with that (see `services.storing`) instead of
the caller's own proof. Bytes are passed on as they come: at most a few hundred kilobytes of a
request are ever here, a slow end slows the other, and when one end goes the other is told at once.
Nothing is looked at, changed or kept on the way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any, Protocol

from paddlecloud.core.errors import PaddleCloudError, Unavailable

log = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]

_PIECE_BYTES = 64 * 1024
_HEAD_BYTES = 64 * 1024
_CONNECT_WITHIN_S = 5.0
_PUBLIC = (200, 206, 304)  # what anybody may be answered as the file server said it
# About one connection, or proof of who calls: never passed on.
_OWN = frozenset(
    b"connection keep-alive te trailer transfer-encoding upgrade http2-settings expect host"
    b" proxy-authorization proxy-authenticate proxy-connection authorization cookie pfs-relay"
    b" pfs-caller x-content-type-options".split()
)


@dataclass(frozen=True, slots=True)
class Target:
    """Where the file server listens, and what goes before every request to it."""

    socket_path: str = ""  # a Unix socket, else host and port
    host: str = ""
    port: int = 0
    tls: SSLContext | None = None
    prefix: str = ""  # before the path, of a file server behind another address

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        async with asyncio.timeout(_CONNECT_WITHIN_S):
            if self.socket_path:
                return await asyncio.open_unix_connection(self.socket_path, limit=_PIECE_BYTES)
            return await asyncio.open_connection(
                self.host, self.port, ssl=self.tls, limit=_PIECE_BYTES
            )


@dataclass(frozen=True, slots=True)
class Errand:
    """What is asked of the file server for one request, and on whose behalf."""

    facts: bytes  # about the caller, JSON
    raw_path: bytes = b""  # instead of the request's own
    query: bytes = b""
    headers: list[Header] = field(default_factory=list)  # of the answer, instead of its own
    link: str = ""  # the published link it came by, whose readers share one allowance
    # Of a request by nobody in particular: what to say in place of anything but the bytes.
    refusal: Callable[[], PaddleCloudError] | None = None


class FileService(Protocol):
    """What the relay needs to know of a file server."""

    def target(self) -> Target: ...

    def proof(self, authorization: str, facts: bytes) -> list[Header]: ...


class Relays:
    """All requests on their way through; so many, and no more."""

    def __init__(self, files: FileService, at_most: int) -> None:
        self._files = files
        self._at_most = at_most
        self._open = 0

    async def run(self, relay: Relay) -> None:
        if self._open >= self._at_most:
            raise Unavailable(
                f"{self._open} transfers already go through this server",
                hint="try again in a moment, or use the file server's own port",
            )
        self._open += 1
        try:
            own = relay.header(b"authorization").decode("latin-1")
            await relay.run(self._files.target(), self._files.proof(own, relay.errand.facts))
        except asyncio.CancelledError:
            # Only a server that stops cancels, after it has waited: a cut, and no fault of ours.
            log.warning("the stop cuts a transfer")
        finally:
            self._open -= 1


class _Cut(Exception):
    """One end went away in the middle."""


class Relay:
    """One request. `run` returns when both ends have been served or told."""

    def __init__(
        self, scope: MutableMapping[str, Any], receive: Receive, send: Send, errand: Errand
    ) -> None:
        self._scope = scope
        self.errand = errand
        self._receive = receive
        self._send = send
        self._headers: list[Header] = scope["headers"]
        self._has_started = False
        self._is_read = False  # the request's body, to its end
        self._may_send = asyncio.Event()

    async def run(self, target: Target, proof: Iterable[Header]) -> None:
        try:
            reader, writer = await target.connect()
        except (OSError, TimeoutError) as error:
            raise not_there() from error
        try:
            writer.write(self._head(target, proof))
            await self._both_ways(reader, writer)
        except (_Cut, OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            if not self._has_started:
                raise not_there() from error
            # The head is out: returning without an end is what makes the front cut the client.
            log.warning("a relayed %s ended early", self._scope["path"])
        finally:
            writer.close()

    # --- the request -----------------------------------------------------------------------

    def header(self, name: bytes) -> bytes:
        return next((value for key, value in self._headers if key == name), b"")

    def _head(self, target: Target, proof: Iterable[Header]) -> bytes:
        own = self._scope["raw_path"], self._scope["query_string"]
        raw_path, query = (self.errand.raw_path, self.errand.query) if self.errand.raw_path else own
        path = target.prefix.encode() + raw_path + (b"?" + query if query else b"")
        host = target.host or "localhost"
        lines = [b"%s %s HTTP/1.1" % (self._scope["method"].encode(), path)]
        lines += [b"host: " + host.encode(), b"connection: close"]
        lines += [b"%s: %s" % pair for pair in self._headers if pair[0] not in _OWN]
        if self._is_chunked:
            lines.append(b"transfer-encoding: chunked")
        if self._waits:
            lines.append(b"expect: 100-continue")
        else:
            self._may_send.set()
        lines += [b"%s: %s" % pair for pair in proof]
        return b"\r\n".join(lines) + b"\r\n\r\n"

    @property
    def _waits(self) -> bool:
        return self.header(b"expect").lower() == b"100-continue"

    @property
    def _is_chunked(self) -> bool:
        return bool(self.header(b"transfer-encoding")) and not self.header(b"content-length")

    async def _both_ways(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upwards = asyncio.create_task(self._upwards(writer))
        downwards = asyncio.create_task(self._downwards(reader))
        try:
            await asyncio.wait((upwards, downwards), return_when=asyncio.FIRST_COMPLETED)
            if not downwards.done() and isinstance(upwards.exception(), OSError):
                # The file server reads no further; what it says about that may be on its way.
                await asyncio.wait((downwards,), timeout=_CONNECT_WITHIN_S)
            if downwards.done():
                downwards.result()
            else:
                raise _Cut
        finally:
            for task in (upwards, downwards):
                task.cancel()
            await asyncio.gather(upwards, downwards, return_exceptions=True)

    async def _upwards(self, writer: asyncio.StreamWriter) -> None:
        """The request's body, then wait for the client to leave; ends only when it has."""
        await self._may_send.wait()
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                return
            data = message.get("body", b"")
            self._is_read = not message.get("more_body", False)
            if self._is_chunked:
                data = (b"%x\r\n%s\r\n" % (len(data), data) if data else b"") + (
                    b"0\r\n\r\n" if self._is_read else b""
                )
            if data:
                writer.write(data)
                await writer.drain()

    # --- the answer ------------------------------------------------------------------------

    async def _downwards(self, reader: asyncio.StreamReader) -> None:
        status, headers = await self._answer_head(reader)
        if self.errand.refusal is not None and status not in _PUBLIC:
            raise self.errand.refusal() if status < 500 else not_there()
        set_here = {name for name, _ in self.errand.headers}
        passed = [pair for pair in headers if pair[0] not in _OWN and pair[0] not in set_here]
        passed += self.errand.headers
        if self._has_body and not self._is_read:
            passed.append((b"connection", b"close"))  # what comes now is not another request
        self._has_started = True
        await self._send({"type": "http.response.start", "status": status, "headers": passed})
        if self._scope["method"] != "HEAD" and status not in (204, 304):
            async for data in _body(reader, dict(headers)):
                await self._send({"type": "http.response.body", "body": data, "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})

    @property
    def _has_body(self) -> bool:
        return self._is_chunked or self.header(b"content-length") not in (b"", b"0")

    async def _answer_head(self, reader: asyncio.StreamReader) -> tuple[int, list[Header]]:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            first, *lines = head[:-4].split(b"\r\n")
            words = first.split(b" ", 2)
            if len(words) < 2 or not words[1].isdigit():
                raise _Cut
            status = int(words[1])
            if status == 100:
                self._may_send.set()
            if status >= 200:
                pairs = (line.partition(b":") for line in lines)
                return status, [(name.strip().lower(), value.strip()) for name, _, value in pairs]


async def _body(reader: asyncio.StreamReader, headers: dict[bytes, bytes]) -> AsyncIterator[bytes]:
    if b"chunked" in headers.get(b"transfer-encoding", b"").lower():
        while length := int(await reader.readline(), 16):
            async for data in _exactly(reader, length):
                yield data
            await reader.readexactly(2)
        return
    announced = headers.get(b"content-length")
    if announced is not None:
        async for data in _exactly(reader, int(announced)):
            yield data
        return
    while data := await reader.read(_PIECE_BYTES):
        yield data


async def _exactly(reader: asyncio.StreamReader, length: int) -> AsyncIterator[bytes]:
    while length:
        data = await reader.read(min(length, _PIECE_BYTES))
        if not data:
            raise EOFError
        length -= len(data)
        yield data


def not_there() -> Unavailable:
    return Unavailable(
        "the file server does not answer",
        hint="it is started again by itself; try again in a moment, or see paddlecloud status",
    )
