"""The first cloud server's way to files: `/api/v1/file` and `/api/v1/filelist`.

One file per call, whole, in the words of the first server; errors have a true status and `msg`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from paddlecloud.core.errors import InvalidInput, NotFound
from paddlecloud.pfs.serving import table
from paddlecloud.pfs.serving.exchanges import Exchange, Waiting
from paddlecloud.wire.pfspath import PfsPath

if TYPE_CHECKING:
    from paddlecloud.pfs.serving.service import Service

_PAGE = 10_000


def _path(exchange: Exchange) -> PfsPath:
    text = exchange.params["path"]
    if not text:
        raise InvalidInput("path is needed", field="path")
    return PfsPath.parse(text)


def put(service: Service, exchange: Exchange) -> Waiting:
    from paddlecloud.pfs.serving.multipart import FilePart, boundary_of

    path = _path(exchange)
    if path.is_root or path.is_directory:
        raise InvalidInput("must name a file, not a directory", field="path")
    service.store.check(exchange.owner, path, to_write=True)
    part = FilePart(boundary_of(exchange.head.headers.get("content-type", "")))
    yield service.slow
    made = service.store.begin_stream(exchange.owner, path, service.max_file_bytes)
    try:
        yield service.moving

        def keep(view: memoryview) -> None:
            if content := part.feed(view):
                made.write(content)

        yield from exchange.receive(keep)
        part.finish()
        yield service.slow
        made.commit()
    except BaseException:
        made.abandon()
        raise
    yield from exchange.answer_json({"code": 200, "msg": ""})


def get(service: Service, exchange: Exchange) -> Waiting:
    path = _path(exchange)
    if path.is_root:
        raise InvalidInput(f"{str(path).rstrip('/')} is a directory", field="path")
    try:
        found = service.store.open_content(exchange.owner, path)
    except NotFound as error:
        raise NotFound("file not exist", field="path", hint=error.hint) from None
    with found:
        headers = [
            ("Content-Type", table.DOWNLOAD),
            ("Content-Disposition", f"attachment; filename*=UTF-8''{quote(path.name, safe='')}"),
        ]
        yield from exchange.begin(200, headers, found.size_bytes)
        if exchange.head.method != "HEAD":
            yield from exchange.send_file(found.fd, 0, found.size_bytes)


def names(service: Service, exchange: Exchange) -> Waiting:
    """Sorted; directories look like files, as they always did."""
    path = _path(exchange)
    wanted = exchange.params["dc"]
    if wanted and wanted != path.datacenter:
        raise InvalidInput(f"no datacenter {wanted}", field="dc")
    yield service.slow
    items: list[str] = []
    after: str | None = ""
    while after is not None:
        try:
            entry = service.store.entry(exchange.owner, path)
            if entry.type != "directory":
                raise NotFound("dir not exist", field="path", hint="it is a file")
            page = service.store.entries(exchange.owner, path, after=after, limit=_PAGE)
        except NotFound as error:
            raise NotFound("dir not exist", field="path", hint=error.hint) from None
        items += [row.name for row in page.entries]
        after = page.next
    yield from exchange.answer_json({"code": 200, "msg": "", "items": items})
