"""One request and its answer, as the handlers see them.

Handlers are generators that yield to the worker (see `workers`); everything here that may have to
wait is therefore used with `yield from`. An answer is sent once; `has_begun` says whether it is
too late for another.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from paddlecloud.core.errors import Conflict, TooLarge
from paddlecloud.pfs.serving.bodies import Body, Sink
from paddlecloud.pfs.serving.heads import Head
from paddlecloud.pfs.serving.links import Cut
from paddlecloud.pfs.serving.table import JSON_BODY_BYTES
from paddlecloud.pfs.serving.whole_bodies import (
    KEPT_BYTES,
    Whole,
    decode_json,
    nameless_file,
    write_all,
)
from paddlecloud.pfs.serving.workers import AGAIN, Pool, Task

if TYPE_CHECKING:
    from paddlecloud.pfs.owners import Owner
    from paddlecloud.pfs.page_cache import Passing

Waiting = Generator["int | Pool", None, Any]
Headers = Iterable[tuple[str, str]]

JSON = "application/json"
_JSON_WITHIN_S = 60.0
_SEND_FILE_BYTES = 4 << 20
_LINGER_S = 2.0
_PHRASES = {
    200: "OK",
    201: "Created",
    204: "No Content",
    206: "Partial Content",
    304: "Not Modified",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    411: "Length Required",
    412: "Precondition Failed",
    413: "Content Too Large",
    416: "Range Not Satisfiable",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
    507: "Insufficient Storage",
}
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
encode_json = msgspec.json.Encoder().encode


class Exchange:
    def __init__(self, task: Task, head: Head, spill_folder: str = "") -> None:
        self.task = task
        self.head = head
        self.link = task.link
        self.body = Body(task, head.length, _CONTINUE if head.expects_continue else b"")
        self.owner: Owner  # known once the caller is
        self.params: dict[str, Any] = {}
        self.keeps_alive = head.keeps_alive
        self.has_begun = False
        self._is_chunked = False
        self._spill_folder = spill_folder

    # --- the body ---------------------------------------------------------------------------

    def receive(self, sink: Sink) -> Waiting:
        yield from self.body.pump(sink)

    def read_whole(self, limit_bytes: int = JSON_BODY_BYTES) -> Waiting:
        """The body as bytes, or as mapped bytes; for JSON only."""
        if (self.head.length or 0) > limit_bytes:
            raise TooLarge(f"the body of this call may have {limit_bytes} bytes")
        with Whole(limit_bytes, self._spill_folder) as whole, self.within(_JSON_WITHIN_S):
            yield from self.body.pump(whole.keep)
            return whole.take()

    def read_json(self, shape: Any, limit_bytes: int = JSON_BODY_BYTES) -> Waiting:
        data = yield from self.read_whole(limit_bytes)
        return decode_json(data, shape)

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """What is done inside ends by then, however the bytes trickle."""
        self.task.until_s = time.monotonic() + seconds
        yield
        self.task.until_s = float("inf")

    # --- the answer -------------------------------------------------------------------------

    def answer_json(self, value: Any, status: int = 200, headers: Headers = ()) -> Waiting:
        yield from self.answer(encode_json(value), JSON, status, headers)

    def answer(
        self, body: bytes, content_type: str = "", status: int = 200, headers: Headers = ()
    ) -> Waiting:
        """A whole one. For HEAD the body is measured and not sent."""
        lines = list(headers)
        if content_type:
            lines.append(("Content-Type", content_type))
        if status not in (204, 304):
            lines.append(("Content-Length", str(len(body))))
        head = self._head(status, lines)
        yield from self.send(head if self.head.method == "HEAD" else head + body)

    def begin(self, status: int, headers: Headers, length: int | None) -> Waiting:
        """The head of an answer whose body follows; without a length it is sent in chunks."""
        lines = list(headers)
        if length is not None:
            lines.append(("Content-Length", str(length)))
        elif self.head.is_modern:
            lines.append(("Transfer-Encoding", "chunked"))
            self._is_chunked = True
        else:
            self.keeps_alive = False
        yield from self.send(self._head(status, lines))

    def send_part(self, data: bytes | memoryview) -> Waiting:
        """A piece of an answer begun without a length."""
        if not data:
            return
        if self._is_chunked:
            yield from self.send(b"%x\r\n%b\r\n" % (len(data), bytes(data)))
        else:
            yield from self.send(data)

    def end_parts(self) -> Waiting:
        if self._is_chunked:
            yield from self.send(b"0\r\n\r\n")

    def _head(self, status: int, lines: Iterable[tuple[str, str]]) -> bytes:
        self.has_begun = True
        if not self.body.is_over:
            self.keeps_alive = False
        text = [f"HTTP/1.1 {status} {_PHRASES.get(status, 'Status')}"]
        text += [f"{name}: {value}" for name, value in lines]
        text.append("X-Content-Type-Options: nosniff")
        if not self.keeps_alive:
            text.append("Connection: close")
        return ("\r\n".join(text) + "\r\n\r\n").encode("latin-1")

    def send(self, data: bytes | memoryview) -> Waiting:
        """`data` is kept while waiting, in memory or, if it is long, on the disk."""
        sent = self.link.send(data)
        if sent == len(data):
            return
        rest = memoryview(bytes(data) if isinstance(data, memoryview) else data)[sent or 0 :]
        if len(rest) > KEPT_BYTES and (fd := self._spill(rest)) is not None:
            length, rest, data = len(rest), memoryview(b""), b""
            try:
                yield from self.send_file(fd, 0, length)
            finally:
                os.close(fd)
        while rest:
            sent = self.link.send(rest)
            if sent is None:
                yield self.link.wants
            else:
                rest = rest[sent:]

    def _spill(self, rest: memoryview) -> int | None:
        """A nameless file with what a slow reader has not taken: a thousand of them must not
        hold a thousand long lists in memory. None where there can be no such file."""
        try:
            fd = nameless_file(self._spill_folder)
        except OSError:
            return None
        try:
            write_all(fd, rest)
        except OSError:
            os.close(fd)
            return None
        return fd

    def send_file(
        self, fd: int, offset: int, length: int, passing: Passing | None = None
    ) -> Waiting:
        """By sendfile: nothing is read into this process. What is `passing` does not stay in the
        kernel's memory either."""
        left = length
        while left:
            sent = self.link.send_file(fd, offset, min(left, _SEND_FILE_BYTES), self.task.buffer)
            if sent is None:
                yield self.link.wants
            elif sent == 0:
                raise Cut("the file became shorter while it was sent")
            else:
                offset += sent
                left -= sent
                if passing is not None:
                    passing.reached(offset)
            if self.task.has_had_its_share:
                yield AGAIN

    def read_file(
        self, fd: int, offset: int, length: int, sink: Sink, passing: Passing | None = None
    ) -> Waiting:
        """Some bytes of a client's own file, as if they had been sent."""
        at, end = offset, offset + length
        while at < end:
            view = self.task.buffer
            try:
                n_read = os.preadv(fd, [view[: end - at]], at)
            except OSError as error:
                raise Conflict(f"the file cannot be read: {error.strerror}") from None
            if n_read == 0:
                raise Conflict("the file became shorter while it was read")
            sink(view[:n_read])
            at += n_read
            if passing is not None:
                passing.reached(at)
            if self.task.has_had_its_share:
                yield AGAIN

    def linger(self) -> Waiting:
        """Read what the client still sends, for a moment: closing at once would destroy the
        answer on its way."""
        self.link.end_of_sending()
        with self.within(_LINGER_S):
            until_s = self.task.until_s
            while time.monotonic() < until_s:
                count = self.link.recv_into(self.task.buffer)
                if count is None:
                    yield self.link.wants
                elif count == 0:
                    return
                if self.task.has_had_its_share:
                    yield AGAIN
