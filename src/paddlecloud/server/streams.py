"""Sending answers over ASGI: whole ones, files, and streams that notice a vanished client."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from paddlecloud.server.exchange import Answer
from paddlecloud.server.notifying import Listener
from paddlecloud.server.pools import Pool

Message = MutableMapping[str, Any]
_FILE_BYTES = 256 * 1024


async def send_answer(
    send: Callable[[Message], Awaitable[None]], answer: Answer, is_head: bool, files: Pool
) -> None:
    length = answer.file_bytes if answer.file is not None else len(answer.body)
    headers = answer.headers
    if answer.status != 204:
        headers = [*headers, (b"content-length", b"%d" % length)]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if answer.file is None:
        await send({"type": "http.response.body", "body": b"" if is_head else answer.body})
        return
    try:
        left = 0 if is_head else length
        while left > 0:
            data = await files.run(os.read, answer.file, min(left, _FILE_BYTES))
            if not data:
                raise ConnectionError("the file became shorter while it was sent")
            left -= len(data)
            await send({"type": "http.response.body", "body": data, "more_body": left > 0})
        if length == 0 or is_head:
            await send({"type": "http.response.body", "body": b""})
    finally:
        os.close(answer.file)


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
