"""Uploads of single files: begin, send leaves, reuse, commit, list, forget."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from paddlecloud.core.errors import Conflict, InvalidInput
from paddlecloud.pfs.serving.exchanges import Exchange, Waiting
from paddlecloud.pfs.serving.heads import LengthRequired
from paddlecloud.pfs.shapes import UploadWish
from paddlecloud.wire import pfs_shapes
from paddlecloud.wire.digests import is_digest
from paddlecloud.wire.pfspath import PfsPath

if TYPE_CHECKING:
    from paddlecloud.pfs.receiving import Receiver
    from paddlecloud.pfs.serving.service import Service

_MAX_SOURCE_BYTES = 4096


def begin_upload(service: Service, exchange: Exchange) -> Waiting:
    body = yield from exchange.read_json(pfs_shapes.PfsUploadBody)
    path, blob = body.get("path"), body.get("blob")
    if (path is None) == (blob is None):
        raise InvalidInput("give either path or blob", field="path")
    if blob is not None and not is_digest(blob):
        raise InvalidInput("must be 64 hex digits", field="blob")
    if not 0 <= body["size"] < 1 << 63:
        raise InvalidInput("must be a number of bytes", field="size")
    if body["size"] > service.max_file_bytes:
        raise InvalidInput(f"a file may have {service.max_file_bytes} bytes", field="size")
    source = body.get("source", "")
    if len(source) > _MAX_SOURCE_BYTES:
        raise InvalidInput(f"may have {_MAX_SOURCE_BYTES} characters", field="source")
    wish = UploadWish(
        path=None if path is None else PfsPath.parse(path),
        size_bytes=body["size"],
        mtime_ns=body.get("mtime_ns"),
        executable=body.get("executable", False),
        source=source,
        blob=blob,
    )
    yield service.slow  # the first of an account counts its files
    upload = service.store.begin_upload(exchange.owner, wish)
    offer = service.desk.offer(upload.id, upload.size_bytes) if exchange.link.is_here else None
    yield from exchange.answer_json({**upload.to_json(), "handover": offer})


def put_leaves(service: Service, exchange: Exchange) -> Waiting:
    length = exchange.head.length
    if length is None:
        raise LengthRequired("say the length of the body with Content-Length")
    yield service.slow  # a commit of the same upload may be syncing
    upload = service.store.upload(exchange.owner, exchange.head.segments["id"])
    receiver = upload.receive(exchange.params["offset"], length, checks=exchange.params["checks"])
    leaves = yield from _fill(service, receiver, exchange.receive(receiver.write))
    answer = {"leaves": [leaf.hex() for leaf in leaves]}
    if exchange.params["checks"]:
        answer["checks"] = [check.hex() for check in receiver.checks]
    yield from exchange.answer_json(answer)


def _fill(service: Service, receiver: Receiver, moving: Waiting) -> Waiting:
    """The leaves of what `moving` brings; what came before it failed is kept."""
    try:
        yield service.moving
        yield from moving
        return receiver.finish()
    except BaseException:
        receiver.cut()
        raise


def take_leaves(service: Service, exchange: Exchange) -> Waiting:
    offset, length = exchange.params["offset"], exchange.params["length"]
    yield service.slow
    upload = service.store.upload(exchange.owner, exchange.head.segments["id"])
    fd = service.desk.open(upload.id)
    if fd is None:
        raise Conflict("no file was handed over for this upload", hint="send its bytes")
    try:
        passing = service.readings.begin(fd, offset, length)
        receiver = upload.receive(offset, length)
        reading = exchange.read_file(fd, offset, length, receiver.write, passing)
        leaves = yield from _fill(service, receiver, reading)
    finally:
        os.close(fd)
    yield from exchange.answer_json({"leaves": [leaf.hex() for leaf in leaves]})


def reuse_leaves(service: Service, exchange: Exchange) -> Waiting:
    body = yield from exchange.read_json(pfs_shapes.PfsReuseBody)
    if len(set(body["leaves"])) < len(body["leaves"]):
        raise InvalidInput("a leaf is there twice", field="leaves")
    yield service.slow
    upload = service.store.upload(exchange.owner, exchange.head.segments["id"])
    reused = upload.reuse(body["leaves"])
    yield from exchange.answer_json({"leaves": [[index, leaf.hex()] for index, leaf in reused]})


def commit_upload(service: Service, exchange: Exchange) -> Waiting:
    body = yield from exchange.read_json(pfs_shapes.PfsCommitBody)
    if not is_digest(body["digest"]):
        raise InvalidInput("must be 64 hex digits", field="digest")
    yield service.slow
    upload = service.store.upload(exchange.owner, exchange.head.segments["id"])
    entry = upload.commit(bytes.fromhex(body["digest"]))
    yield from exchange.answer_json(entry.to_json())


def uploads(service: Service, exchange: Exchange) -> Waiting:
    yield service.slow
    rows = service.store.uploads(exchange.owner)
    yield from exchange.answer_json({"uploads": [row.to_json() for row in rows]})


def abandon_upload(service: Service, exchange: Exchange) -> Waiting:
    yield service.slow
    service.store.upload(exchange.owner, exchange.head.segments["id"]).abandon()
    yield from exchange.answer(b"", status=204)
