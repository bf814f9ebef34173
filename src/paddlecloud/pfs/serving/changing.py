"""The calls that change the tree: directories, remove, move, copy; and snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlecloud.core.errors import InvalidInput
from paddlecloud.pfs.serving import table
from paddlecloud.pfs.serving.exchanges import Exchange, Waiting
from paddlecloud.pfs.serving.whole_bodies import decode_any_json
from paddlecloud.wire import pfs_shapes, snapshots
from paddlecloud.wire.digests import is_digest
from paddlecloud.wire.pfspath import BadPath, PfsPath

if TYPE_CHECKING:
    from paddlecloud.pfs.serving.service import Service

_MOST_PATHS = 10_000


def _paths(texts: list[str]) -> list[PfsPath]:
    if not texts:
        raise InvalidInput("name at least one path", field="paths")
    if len(texts) > _MOST_PATHS:
        raise InvalidInput(f"at most {_MOST_PATHS} paths in one call", field="paths")
    return [_path(text, f"paths[{number}]") for number, text in enumerate(texts)]


def _path(text: str, field: str) -> PfsPath:
    try:
        return PfsPath.parse(text)
    except BadPath as error:
        raise InvalidInput(error.message, field=field, hint=error.hint) from None


def make_directories(service: Service, exchange: Exchange) -> Waiting:
    body = yield from exchange.read_json(pfs_shapes.PfsDirectoriesBody)
    paths = _paths(body["paths"])
    yield service.slow
    made = service.store.make_directories(exchange.owner, paths)
    yield from exchange.answer_json({"made": made})


def remove(service: Service, exchange: Exchange) -> Waiting:
    body = yield from exchange.read_json(pfs_shapes.PfsRemoveBody)
    paths = _paths(body["paths"])
    yield service.slow
    removed = service.store.remove(
        exchange.owner,
        paths,
        recursive=body.get("recursive", False),
        missing_ok=body.get("missing_ok", False),
    )
    yield from exchange.answer_json({"removed": [row.to_json() for row in removed]})


def move(service: Service, exchange: Exchange) -> Waiting:
    body = yield from exchange.read_json(pfs_shapes.PfsMoveBody)
    source, target = _path(body["from"], "from"), _path(body["to"], "to")
    yield service.slow
    entry = service.store.move(exchange.owner, source, target, replace=body.get("replace", False))
    yield from exchange.answer_json(entry.to_json())


def copy(service: Service, exchange: Exchange) -> Waiting:
    body = yield from exchange.read_json(pfs_shapes.PfsCopyBody)
    source, target = _path(body["from"], "from"), _path(body["to"], "to")
    yield service.slow
    copied = service.store.copy(
        exchange.owner,
        source,
        target,
        recursive=body.get("recursive", False),
        replace=body.get("replace", False),
    )
    yield from exchange.answer_json(copied.to_json())


def put_snapshot(service: Service, exchange: Exchange) -> Waiting:
    data = yield from exchange.read_whole(table.MANY_BODY_BYTES)
    yield service.slow
    wish = snapshots.parse_wish(decode_any_json(data))
    answer = service.store.put_snapshot(exchange.owner, wish)
    yield from exchange.answer_json(answer.to_json())


def snapshot(service: Service, exchange: Exchange) -> Waiting:
    digest = exchange.head.segments["digest"]
    if not is_digest(digest):
        raise InvalidInput("must be 64 hex digits", field="digest")
    yield service.slow
    found = service.store.snapshot(exchange.owner.account_id, digest)
    yield from exchange.answer_json(
        {"digest": digest, "files": len(found.files), "bytes": found.total_bytes}
    )
