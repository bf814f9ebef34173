"""Following logs on the event loop: one reader per followed log, however many follow it.

A follower first catches up by itself, in reads on the pool of logs. Once it is at the end it
shares a `Pump`: one wait and one read per log, whose encoded pieces every follower of that log
sends on. So a thousand followers of one job cost one reader, and a slow one only reads for itself.
Nothing here runs while nobody follows.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from paddlecloud.core.observed import ReplicaKey
from paddlecloud.engines.protocols import Engine, LogSlice
from paddlecloud.server.exchange import encode
from paddlecloud.server.notifying import Listener
from paddlecloud.server.pools import Pool

log = logging.getLogger(__name__)

READ_BYTES = 64 * 1024
_KEPT_PIECES = 16
# Lines that come within this are sent together; longer the more have to be sent to, so that a
# crowd costs the server a bounded part of a core.
_GATHER_S = 0.02
_GATHER_PER_FOLLOWER_S = 0.0003
_MAX_WAIT_S = 5.0  # a wait nobody needs any more holds its thread this long
_AFTER_ERROR_S = 1.0


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a log as it is sent: lines of JSON, and where the next part begins."""

    lines: bytes
    next: int
    is_end: bool


def make_piece(key: ReplicaKey, part: LogSlice) -> Piece:
    """A character cut in two at the end is left for the next piece."""
    data = part.data
    held = 0 if part.ended and part.next >= part.size else _cut_tail(data)
    if held:
        data = data[:-held]
    head = {"replica": key.short, "attempt": key.attempt}
    lines = b""
    if part.dropped_bytes:
        lines += encode({**head, "dropped_bytes": part.dropped_bytes}) + b"\n"
    if data:
        text = data.decode("utf-8", "replace")
        lines += encode({**head, "cursor": part.next - held, "data": text}) + b"\n"
    return Piece(lines, part.next - held, part.ended and part.next >= part.size)


def _cut_tail(data: bytes) -> int:
    """How many bytes at the end begin a UTF-8 character that is not complete yet."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:  # the middle of a character: look further left
            continue
        wanted = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return back if wanted > back else 0
    return 0


class Pump:
    """Reads one log as it grows, for all who have caught up with it."""

    def __init__(self, pumps: Pumps, engine: Engine, key: ReplicaKey) -> None:
        self._pumps = pumps
        self._engine = engine
        self.key = key
        self.listeners: list[Listener] = []
        self.position: int | None = None  # None: nobody has caught up yet
        self.is_end = False
        self._pieces: OrderedDict[int, Piece] = OrderedDict()
        self._task: asyncio.Task[None] | None = None

    async def read(self, start: int) -> Piece:
        part = await self._pumps.reads.run(self._engine.log, self.key, start, READ_BYTES)
        return make_piece(self.key, part)

    def piece_at(self, cursor: int) -> Piece | None:
        return self._pieces.get(cursor)

    def join(self, cursor: int) -> None:
        """A follower is at the end: begin to wait for more, if nobody does yet."""
        if self.position is None:
            self.position = cursor
        if self._task is None and not self.is_end:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while not self.is_end:
            try:
                await self._advance()
                await asyncio.sleep(_GATHER_S + _GATHER_PER_FOLLOWER_S * len(self.listeners))
            except Exception:
                log.exception("reading the log of %s failed; again in a second", self.key)
                await asyncio.sleep(_AFTER_ERROR_S)

    async def _advance(self) -> None:
        start = self.position or 0
        wait_s = self._pumps.wait_s()
        await self._pumps.waits.run(self._engine.log_wait, self.key, start, wait_s)
        piece = await self.read(start)
        if piece.next == start and not piece.is_end:
            return
        self._pieces[start] = piece
        while len(self._pieces) > _KEPT_PIECES:
            self._pieces.popitem(last=False)
        self.position, self.is_end = piece.next, piece.is_end
        for listener in self.listeners:
            listener.set()

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()


class Pumps:
    """The pumps of this server, made when followed and gone when not."""

    def __init__(self, reads: Pool, waits: Pool, wait_threads: int) -> None:
        self.reads = reads
        self.waits = waits
        self._wait_threads = wait_threads
        self._by_key: dict[ReplicaKey, Pump] = {}

    def wait_s(self) -> float:
        """With more logs than threads they take turns, so each turn must be short."""
        crowd = len(self._by_key) / self._wait_threads
        return _MAX_WAIT_S if crowd <= 1 else max(0.05, 0.5 / crowd)

    @contextmanager
    def following(self, engine: Engine, key: ReplicaKey, listener: Listener) -> Iterator[Pump]:
        pump = self._by_key.get(key)
        if pump is None:
            pump = self._by_key[key] = Pump(self, engine, key)
        pump.listeners.append(listener)
        try:
            yield pump
        finally:
            pump.listeners.remove(listener)
            if not pump.listeners:
                pump.stop()
                self._by_key.pop(key, None)
