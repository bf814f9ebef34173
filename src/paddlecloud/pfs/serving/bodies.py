"""Reading the body of a request without ever holding it.

`pump` moves the bytes through the worker's buffer into a sink, a function that takes a memoryview
and must be done with it when it returns. Knows both ways a body can be measured, by length and in
chunks; a body that ends early raises `Cut`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from paddlecloud.pfs.serving.heads import bad
from paddlecloud.pfs.serving.links import Cut
from paddlecloud.pfs.serving.workers import AGAIN, Pool, Task

Sink = Callable[[memoryview], object]
Pumping = Generator["int | Pool", None, None]
_MAX_LINE_BYTES = 256
_MAX_TRAILER_BYTES = 8 << 10


class Body:
    def __init__(self, task: Task, length: int | None, announce: bytes) -> None:
        self._task = task
        self._announce = announce  # `100 Continue`, once, if the client waits for it
        self.left_bytes = length if length is not None else 0
        self._chunks = _Chunks() if length is None else None

    @property
    def is_over(self) -> bool:
        return self._chunks.is_over if self._chunks is not None else self.left_bytes == 0

    def pump(self, sink: Sink) -> Pumping:
        yield from self._say_go_on()
        link, task = self._task.link, self._task
        if link.pending:
            self._use_pending(sink)
        while not self.is_over:
            view = task.buffer
            filled = self._fill(view)
            if filled:
                self._take(view[:filled], sink)
            else:
                yield link.wants
            if task.has_had_its_share:
                yield AGAIN

    def _say_go_on(self) -> Pumping:
        rest, self._announce = memoryview(self._announce), b""
        while rest and not self._task.link.pending:
            sent = self._task.link.send(rest)
            if sent is None:
                yield self._task.link.wants
            else:
                rest = rest[sent:]

    def _fill(self, view: memoryview) -> int:
        """As much as is there, up to the whole buffer: fewer, larger writes and hashes."""
        link = self._task.link
        room = len(view) if self._chunks is not None else min(len(view), self.left_bytes)
        filled = 0
        while filled < room:
            count = link.recv_into(view[filled:room])
            if count is None:
                break
            if count == 0:
                if filled:
                    break  # use it; the next look finds the end again
                raise Cut("the body ends in the middle")
            filled += count
        return filled

    def _use_pending(self, sink: Sink) -> None:
        link = self._task.link
        pending, link.pending = link.pending, bytearray()
        with memoryview(pending) as view:
            if self._chunks is None:
                used = min(len(pending), self.left_bytes)
                if used < len(pending):
                    link.pending += view[used:]
                with view[:used] as part:
                    self._take(part, sink)
            else:
                self._take(view, sink)

    def _take(self, view: memoryview, sink: Sink) -> None:
        if self._chunks is None:
            self.left_bytes -= len(view)
            sink(view)
            return
        used = self._chunks.feed(view, sink)
        if used < len(view):  # the next request, sent without waiting
            self._task.link.pending += view[used:]


class _Chunks:
    """The chunked transfer coding, strictly."""

    def __init__(self) -> None:
        self.is_over = False
        self._left = 0  # of the chunk
        self._line = bytearray()
        self._state = self._size
        self._trailer_bytes = 0

    def feed(self, view: memoryview, sink: Sink) -> int:
        """How much of `view` belongs to the body."""
        at = 0
        while at < len(view) and not self.is_over:
            if self._state == self._data:
                used = min(self._left, len(view) - at)
                sink(view[at : at + used])
                self._left -= used
                at += used
                if not self._left:
                    self._state = self._data_end
                continue
            byte = view[at]
            at += 1
            self._line.append(byte)
            if byte == 0x0A:
                line, self._line = bytes(self._line), bytearray()
                if not line.endswith(b"\r\n"):
                    raise bad("a line of the chunked body does not end with CRLF")
                self._state(line[:-2])
            elif len(self._line) > _MAX_LINE_BYTES:
                raise bad("a line of the chunked body is too long")
        return at

    def _size(self, line: bytes) -> None:
        digits = line.split(b";", 1)[0].rstrip(b" \t")
        if not 0 < len(digits) <= 15 or digits.strip(b"0123456789abcdefABCDEF"):
            raise bad("a chunk of the body has no size")
        self._left = int(digits, 16)
        self._state = self._data if self._left else self._trailer

    def _data(self, line: bytes) -> None:
        raise AssertionError("data is not read by lines")

    def _data_end(self, line: bytes) -> None:
        if line:
            raise bad("a chunk of the body is longer than it says")
        self._state = self._size

    def _trailer(self, line: bytes) -> None:
        self._trailer_bytes += len(line)
        if self._trailer_bytes > _MAX_TRAILER_BYTES:
            raise bad("the trailer of the body is too long")
        if not line:
            self.is_over = True
