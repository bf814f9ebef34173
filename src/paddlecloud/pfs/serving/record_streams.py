"""Batches: many small files in one body.

`RecordReader` takes the bytes of a stream as they come and tells a batch of the store what is in
them; content goes through without being held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlecloud.pfs.serving.exchanges import Exchange, Waiting
from paddlecloud.wire import records
from paddlecloud.wire.digests import DIGEST_BYTES
from paddlecloud.wire.pfspath import PfsPath

if TYPE_CHECKING:
    from paddlecloud.pfs.batches import Batch
    from paddlecloud.pfs.serving.service import Service


def batch(service: Service, exchange: Exchange) -> Waiting:
    params = exchange.params
    path = PfsPath.parse(params["path"])
    yield service.slow  # the first of an account counts its files
    made = service.store.begin_batch(exchange.owner, path, params["files"], params["bytes"])
    yield from _receive(service, exchange, made)


def blobs(service: Service, exchange: Exchange) -> Waiting:
    params = exchange.params
    yield service.slow
    made = service.store.begin_blobs(exchange.owner, params["files"], params["bytes"])
    yield from _receive(service, exchange, made)


def _receive(service: Service, exchange: Exchange, made: Batch) -> Waiting:
    try:
        yield service.moving
        reader = RecordReader(made)
        yield from exchange.receive(reader.feed)
        reader.finish()
        yield service.slow
        result = made.commit()
    except BaseException:
        made.abandon()
        raise
    yield from exchange.answer_json(result.to_json())


class RecordReader:
    def __init__(self, target: Batch) -> None:
        self._target = target
        self._kept = bytearray()  # of a head or a digest that came in two pieces
        self._needed = len(records.MAGIC)
        self._state = self._magic
        self._head: records.Head
        self._content_left = 0
        self._has_ended = False

    def feed(self, view: memoryview) -> None:
        at, end = 0, len(view)
        while at < end:
            if self._has_ended:
                raise records.bad("bytes behind its end")
            if self._content_left:
                taken = min(self._content_left, end - at)
                self._target.write(view[at : at + taken])
                self._content_left -= taken
                at += taken
                continue
            if not self._kept and end - at >= self._needed:  # the usual case: all in one piece
                field = view[at : at + self._needed]
                at += self._needed
                self._state(field)
                continue
            taken = min(self._needed - len(self._kept), end - at)
            self._kept += view[at : at + taken]
            at += taken
            if len(self._kept) == self._needed:
                field, self._kept = memoryview(self._kept), bytearray()
                self._state(field)

    def finish(self) -> None:
        if not self._has_ended:
            raise records.bad("no end: it was cut")

    def _magic(self, field: memoryview) -> None:
        if field != records.MAGIC:
            raise records.bad("no magic at its beginning")
        self._expect_record()

    def _expect_record(self) -> None:
        self._needed, self._state = 1, self._kind

    def _kind(self, field: memoryview) -> None:
        if field == records.END:
            self._has_ended = True
            return
        # One byte tells the end from a record, whose head is then collected with it.
        self._kept += field
        self._needed, self._state = records.HEAD_BYTES, self._record

    def _record(self, field: memoryview) -> None:
        self._head = records.decode_head(field)
        if self._head.kind is records.Kind.FAILED:
            raise records.bad("an error, which only a server may send")
        self._needed, self._state = self._head.name_bytes, self._name

    def _name(self, field: memoryview) -> None:
        name = records.decode_name(field)
        head = self._head
        if head.kind is records.Kind.DIRECTORY:
            self._target.directory(name)
            self._expect_record()
            return
        self._target.begin_file(head, name)
        self._content_left = head.size_bytes
        self._needed, self._state = DIGEST_BYTES, self._digest

    def _digest(self, field: memoryview) -> None:
        self._target.end_file(bytes(field))
        self._expect_record()
