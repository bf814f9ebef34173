"""Logs in our own interface: a part by byte cursor, or a stream that follows the job to its end."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any

from paddlecloud.core.errors import Unavailable
from paddlecloud.core.observed import ReplicaKey
from paddlecloud.core.phases import TERMINAL
from paddlecloud.server.exchange import Answer, Request, encode
from paddlecloud.server.following import Pump
from paddlecloud.server.notifying import job_subject
from paddlecloud.server.pools import Pool
from paddlecloud.server.process import Process, here
from paddlecloud.server.services import job_rows, logs
from paddlecloud.server.streams import Stream
from paddlecloud.wire import routes

_ENDS = frozenset(phase.value for phase in TERMINAL)
_KEEP_ALIVE_S = 15.0
_NDJSON = [
    (b"content-type", b"application/x-ndjson"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


async def _within(process: Process, awaitable: Any) -> Any:
    within_s = process.configuration.engines.answer_within_s
    try:
        async with asyncio.timeout(within_s):
            return await awaitable
    except TimeoutError:
        raise Unavailable(
            f"the engine did not answer within {within_s:g} s", hint="try again in a moment"
        ) from None


async def read_logs(request: Request, stream: Stream, pool: Pool) -> Answer | None:
    asked, ref = request.params, request.segments["ref"]
    if not asked["follow"]:
        job_id = await pool.run(job_rows.visible_id, request.caller, ref)
        return await _read_part(job_id, asked)
    followed = await pool.run(
        logs.find_followed, request.caller, ref, asked["run"], asked["replica"]
    )
    await Follower(followed, asked, stream, pool).run()
    return None


async def _read_part(job_id: str, asked: Any) -> Answer:
    process = here()
    limit_bytes = min(asked["limit_bytes"], process.configuration.limits.log_read_bytes)
    part = await _within(
        process,
        process.pumps.reads.run(
            logs.read_part,
            job_id,
            asked["run"],
            asked["replica"],
            asked["attempt"],
            asked["cursor"],
            asked["tail"],
            limit_bytes,
        ),
    )
    headers = {
        routes.LOG_NEXT: part.next,
        routes.LOG_SIZE: part.size,
        routes.LOG_DROPPED: part.dropped_bytes,
        routes.LOG_ENDED: int(part.ended and part.next >= part.size),
    }
    return Answer(
        200,
        part.data,
        [
            (b"content-type", b"text/plain; charset=utf-8"),
            *((name.lower().encode(), b"%d" % value) for name, value in headers.items()),
        ],
    )


class _Notice:
    """Set by pumps when a log grew and by the hub when the job's rows changed."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.rows_changed = True

    def set(self) -> None:  # the hub
        self.rows_changed = True
        self.event.set()


class Follower:
    """One client following one run of one job."""

    def __init__(self, followed: logs.Followed, asked: Any, stream: Stream, pool: Pool) -> None:
        self._process = here()
        self._followed = followed
        self._asked = asked
        self._stream = stream
        self._pool = pool
        self._notice = _Notice()
        self._cursors: dict[ReplicaKey, int] = {}
        self._given = logs.parse_cursors(asked["cursors"] or "")
        self._pumps: dict[ReplicaKey, Pump] = {}
        self._opening: list[bytes] = []  # where each log is entered, still to be sent
        self._phase = ""

    async def run(self) -> None:
        self._stream.tell(self._notice)
        subject = job_subject(self._followed.job_id)
        with ExitStack() as self._stack, self._process.hub.listening(self._notice, subject):
            await self._refresh()
            await self._stream.start(_NDJSON)
            if self._asked["tail"] is not None:
                # Something at once: a reader that is cut off after it knows where it was.
                await self._stream.write(self._take_opening() or b"\n")
            await self._follow()
            await self._stream.finish()

    async def _follow(self) -> None:
        while not self._stream.is_gone and not self._process.is_stopping:
            self._notice.event.clear()
            if self._notice.rows_changed:
                await self._refresh()
                if opening := self._take_opening():
                    await self._stream.write(opening)
            moved = [await self._step(key) for key in tuple(self._cursors)]
            if any(moved) or self._notice.rows_changed:
                continue
            if self._phase in _ENDS:
                await self._stream.write(encode({"end": True, "phase": self._phase}) + b"\n")
                return
            try:
                async with asyncio.timeout(_KEEP_ALIVE_S):
                    await self._notice.event.wait()
            except TimeoutError:
                await self._stream.write(b"\n")

    async def _refresh(self) -> None:
        """Read the rows; begin with attempts that are new."""
        self._notice.rows_changed = False
        followed = self._followed
        view = await self._pool.run(logs.read_run, followed.job_id, followed.run)
        first = not self._phase
        self._phase = view.phase
        keys = logs.choose(view, followed.replica)
        latest = {(key.role, key.index): key for key in keys}
        for key in keys:
            if key in self._pumps:
                continue
            start = self._given.get((key.short, key.attempt))
            if start is None and first and self._asked["tail"] is not None:
                # Of attempts before the latest, nothing: they are entered at their end.
                is_latest = latest[key.role, key.index] == key
                start = await self._tail_start(key, self._asked["tail"] if is_latest else 0)
            self._open(key, start or 0)
            following = self._process.pumps.following(followed.engine, key, self._notice.event)
            self._pumps[key] = self._stack.enter_context(following)
            self._cursors[key] = start or 0

    async def _tail_start(self, key: ReplicaKey, lines: int) -> int:
        start: int = await _within(
            self._process,
            self._process.pumps.reads.run(
                logs.tail_start,
                self._followed.engine,
                key,
                lines,
                self._process.configuration.limits.log_read_bytes,
            ),
        )
        return start

    def _open(self, key: ReplicaKey, start: int) -> None:
        """A record without data: a reader that is cut off before the first byte goes on here,
        and not at the beginning or, after a while, at another end."""
        if self._asked["tail"] is not None:
            record = {"replica": key.short, "attempt": key.attempt, "cursor": start, "data": ""}
            self._opening.append(encode(record) + b"\n")

    def _take_opening(self) -> bytes:
        opening, self._opening = b"".join(self._opening), []
        return opening

    async def _step(self, key: ReplicaKey) -> bool:
        """Send what there is of one log; False when there is nothing now."""
        cursor, pump = self._cursors[key], self._pumps[key]
        piece = pump.piece_at(cursor)
        if piece is None:
            is_shared = pump.position is not None and cursor >= pump.position
            if is_shared and self._phase not in _ENDS:
                return False  # the pump says when there is more
            piece = await pump.read(cursor)
        if piece.lines:
            await self._stream.write(piece.lines)
        moved = piece.next != cursor
        self._cursors[key] = piece.next
        if not moved and not piece.is_end:
            pump.join(cursor)
        return moved
