"""Sending answers over ASGI: whole ones, and streams that notice a vanished client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from paddlecloud.server.exchange import Answer
from paddlecloud.server.notifying import Listener

Message = MutableMapping[str, Any]
_NOT_KEPT = (b"cache-control", b"no-store")


async def send_answer(
    send: Callable[[Message], Awaitable[None]], answer: Answer, is_head: bool
) -> None:
    headers = list(answer.headers)
    # Tokens, keys, names and logs: nobody between us and the caller keeps what we answer.
    if not any(name == b"cache-control" for name, _ in headers):
        headers.append(_NOT_KEPT)
    if answer.status != 204:
        headers.append((b"content-length", b"%d" % len(answer.body)))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if is_head else answer.body})


class Stream:
    """An answer whose end is not known yet; `is_gone` when the client has left."""

    def __init__(
        self,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        self._receive = receive
        self._send = send
        self._listener: Listener | None = None
        self._task: asyncio.Task[None] | None = None
        self.has_started = False
        self.is_gone = False  # the client has left, or must be sent away
        self.is_cut = False  # who it was is no login any more

    def cut(self) -> None:
        """End it soon, as if the client had left; the end is sent all the same."""
        self.is_gone = self.is_cut = True
        if self._listener is not None:
            self._listener.set()

    def tell(self, listener: Listener) -> None:
        """Set `listener` when the client leaves."""
        self._listener = listener
        self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self.is_gone = True
                if self._listener is not None:
                    self._listener.set()
                return

    async def start(self, headers: list[tuple[bytes, bytes]]) -> None:
        self.has_started = True
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def write(self, data: bytes) -> None:
        """Returns when the client has taken most of it: a slow reader slows only itself."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def finish(self) -> None:
        if self.is_cut or not self.is_gone:
            await self._send({"type": "http.response.body", "body": b""})

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
