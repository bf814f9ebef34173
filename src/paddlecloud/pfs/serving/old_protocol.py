"""The first file server's protocol over the same store: `/api/v1/pfs/...`.

Envelopes `{"err", "results"}` and its own words; the sequence of its client (stat, touch, then per
chunk the MD5 and, where it differs, the bytes) is served by `LegacyFiles`, which publishes a file
once its chunks are all there. Its known faults are not copied: bodies may have 1 MiB, the MD5 of
public data may be asked for, links are never followed, and what was removed is listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode

from paddlecloud.core.errors import InvalidInput, NotAllowed, NotFound
from paddlecloud.pfs.serving import globbing
from paddlecloud.pfs.serving.exchanges import Exchange, Waiting, encode_json
from paddlecloud.pfs.serving.whole_bodies import decode_any_json
from paddlecloud.wire.pfspath import PUBLIC, BadPath, PfsPath

if TYPE_CHECKING:
    from paddlecloud.pfs.serving.service import Service
    from paddlecloud.pfs.shapes import Entry

BOUNDARY = "8d7b0e5709d756e21e971ff4d9ac3b20"
_LEAST_CHUNK_BYTES, _MOST_CHUNK_BYTES = 4 << 10, 32 << 20
_MOST_FILE_BYTES = 1 << 40
_MOST_PATHS = 1000
_MOST_ROWS = 200_000  # the old answer is one text, made in memory
_AT_END = "this file reaches end"


def _bad(message: str) -> InvalidInput:
    return InvalidInput(message)


def parse_path(text: Any) -> PfsPath:
    """A path in the words of the first server."""
    if not isinstance(text, str) or not text:
        raise _bad("not enough arguments")
    if text != "/pfs" and not text.startswith("/pfs/"):
        raise _bad(f"should be pfs path:{text}")
    try:
        return PfsPath.parse(text)
    except BadPath as error:
        if error.message.startswith("path must like"):
            raise _bad("the path should be in format eg:/pf/datacentername/") from None
        raise


def _writable(text: Any) -> PfsPath:
    path = parse_path(text)
    if path.area == PUBLIC:
        raise NotAllowed("public data supports only ls or stat command")
    return path


def _answer(exchange: Exchange, results: Any) -> Waiting:
    yield from exchange.answer_json({"err": "", "results": results})


def _row(path: str, entry: Entry) -> dict[str, Any]:
    return {
        "Path": path,
        "ModTime": entry.mtime_ns,
        "Size": entry.size_bytes,
        "IsDir": entry.type == "directory",
    }


# --- looking --------------------------------------------------------------------------------


def look(service: Service, exchange: Exchange) -> Waiting:
    method = exchange.params["method"]
    if method == "stat":
        path = parse_path(exchange.params["path"])
        entry = service.store.entry(exchange.owner, path)
        yield from _answer(exchange, _row(_shown(path), entry))
    elif method == "ls":
        yield service.slow
        rows = _ls(service, exchange)
        yield from _answer(exchange, rows)
    elif method == "md5sum":
        yield from exchange.answer(b"")  # never written, and answered so
    else:
        raise _bad("invalid arguments")


def _ls(service: Service, exchange: Exchange) -> list[dict[str, Any]]:
    recursive = exchange.params["r"]
    patterns = exchange.head.query.get("arg", [])
    if recursive not in ("true", "false") or not patterns:
        raise _bad("not enough arguments")
    if len(patterns) > _MOST_PATHS:
        raise _bad("invalid arguments")
    rows: list[dict[str, Any]] = []
    for pattern in patterns:
        matched = globbing.expand(service.store, exchange.owner, parse_path(pattern))
        for path in matched:
            base = _shown(path)
            is_file = service.store.entry(exchange.owner, path).type == "file"
            for entry in globbing.walk(
                service.store, exchange.owner, path, recursive=recursive == "true"
            ):
                rows.append(_row(base if is_file else f"{base}/{entry.name}", entry))
                if len(rows) > _MOST_ROWS:
                    raise _bad(f"more than {_MOST_ROWS} files: list one folder at a time")
        if not matched:
            raise NotFound("no such file or directory")
    return rows


def _shown(path: PfsPath) -> str:
    return str(path).rstrip("/")


# --- changing -------------------------------------------------------------------------------


def change(service: Service, exchange: Exchange) -> Waiting:
    """The method in the body decides, not the verb: so it always was."""
    data = yield from exchange.read_whole()
    try:
        body = decode_any_json(data)
    except InvalidInput:
        raise _bad("parse json error") from None
    method = body.get("method") if isinstance(body, dict) else None
    if method not in ("mkdir", "touch", "rm"):
        raise _bad("invalid arguments" if isinstance(body, dict) else "parse json error")
    yield service.slow
    if method == "touch":
        yield from _answer(exchange, _touch(service, exchange, body))
        return
    texts = body.get("path")
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not 0 < len(texts) <= _MOST_PATHS:
        raise _bad("not enough arguments")
    if method == "mkdir":
        paths = [_writable(text) for text in texts]
        service.store.make_directories(exchange.owner, paths)
        yield from _answer(exchange, [{"path": text} for text in texts])
        return
    yield from _answer(exchange, _remove(service, exchange, texts, body.get("r") is True))


def _remove(
    service: Service, exchange: Exchange, texts: list[Any], recursive: bool
) -> list[dict[str, str]]:
    paths: list[PfsPath] = []
    for text in texts:
        paths += globbing.expand(service.store, exchange.owner, _writable(text))
    if not paths:
        return []  # nothing matched, and that is what was wanted
    removed = service.store.remove(exchange.owner, paths, recursive=recursive, missing_ok=True)
    return [{"path": row.path} for row in removed]


def _touch(service: Service, exchange: Exchange, body: dict[str, Any]) -> dict[str, str]:
    path, size_bytes = _writable(body.get("path")), body.get("filesize")
    if type(size_bytes) is not int or not 0 <= size_bytes <= _MOST_FILE_BYTES:
        raise _bad("bad file size")
    service.legacy.touch(exchange.owner, path, size_bytes)
    return {"path": _shown(path)}


# --- chunks ---------------------------------------------------------------------------------


def _chunk(values: dict[str, Any]) -> tuple[PfsPath, int, int]:
    path = parse_path(values.get("path"))
    offset, length = (_number(values.get(name)) for name in ("offset", "chunksize"))
    if not _LEAST_CHUNK_BYTES <= length <= _MOST_CHUNK_BYTES:
        raise _bad("chunksize error")
    return path, offset, length


def _number(text: Any) -> int:
    if not isinstance(text, str) or not (text.isascii() and text.isdigit() and len(text) < 19):
        raise _bad("invalid arguments")
    return int(text)


def chunk_meta(service: Service, exchange: Exchange) -> Waiting:
    if exchange.params["method"] != "GetChunkMeta":
        raise _bad("invalid arguments")
    path, offset, length = _chunk(exchange.params)
    yield service.slow
    meta = service.legacy.chunk_meta(exchange.owner, path, offset, length)
    yield from _answer(
        exchange, {"offset": offset, "checksum": meta.checksum, "len": meta.size_bytes}
    )


def get_chunk(service: Service, exchange: Exchange) -> Waiting:
    """A multipart body without saying so, and an envelope behind its end."""
    path, offset, length = _chunk(exchange.params)
    with service.legacy.open_chunk(exchange.owner, path) as found:
        count = max(0, min(length, found.size_bytes - offset))
        head, tail = _around(_shown(path), offset, length, "" if count == length else _AT_END)
        headers = [("Content-Type", "text/plain; charset=utf-8")]
        yield from exchange.begin(200, headers, len(head) + count + len(tail))
        if exchange.head.method == "HEAD":
            return
        yield from exchange.send(head)
        yield from exchange.send_file(found.fd, offset, count)
        yield from exchange.send(tail)


def _around(path: str, offset: int, length: int, error: str) -> tuple[bytes, bytes]:
    name = urlencode((("chunksize", length), ("offset", offset), ("path", path)))
    head = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="chunk"; filename="{name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    envelope = encode_json({"err": error, "results": None})
    return head.encode(), f"\r\n--{BOUNDARY}--\r\n".encode() + envelope


def post_chunk(service: Service, exchange: Exchange) -> Waiting:
    from paddlecloud.pfs.serving.multipart import FilePart, boundary_of

    content_type = exchange.head.headers.get("content-type", "")
    is_said = content_type.startswith("multipart/")
    boundary = boundary_of(content_type, "chunk") if is_said else BOUNDARY.encode()
    part = FilePart(boundary, "chunk")
    receiver = _ChunkReceiver(service, exchange, part)
    try:
        yield from exchange.receive(receiver.feed)
        part.finish()
        yield service.slow
        receiver.finish()
    except BaseException:
        receiver.cut()
        raise
    yield from _answer(exchange, None)


class _ChunkReceiver:
    """The bytes of one chunk on their way; where they go stands in the name of their part."""

    def __init__(self, service: Service, exchange: Exchange, part: Any) -> None:
        self._service = service
        self._exchange = exchange
        self._part = part
        self._chunk: Any = None
        self._room_bytes = 0

    def feed(self, view: memoryview) -> None:
        data = self._part.feed(view)
        if self._chunk is None and self._part.was_found:
            self._begin()
        if data:
            self._room_bytes -= len(data)
            if self._room_bytes < 0:
                raise _bad("chunksize error")
            self._chunk.write(data)

    def _begin(self) -> None:
        fields = parse_qs(self._part.file_name, keep_blank_values=True)
        path, offset, length = _chunk({name: values[0] for name, values in fields.items()})
        if path.area == PUBLIC:
            raise NotAllowed("public data supports only ls or stat command")
        self._room_bytes = length
        self._chunk = self._service.legacy.receive_chunk(self._exchange.owner, path, offset)

    def finish(self) -> None:
        self._chunk.finish()

    def cut(self) -> None:
        if self._chunk is not None:
            self._chunk.cut()
