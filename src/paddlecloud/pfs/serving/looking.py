"""The calls that only look: entries, entry, usage, compare, and the bytes of one file."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from paddlecloud.core.errors import PaddleCloudError
from paddlecloud.pfs.serving import table
from paddlecloud.pfs.serving.exchanges import Exchange, Waiting
from paddlecloud.wire import pfs_shapes
from paddlecloud.wire.pfspath import PfsPath
from paddlecloud.wire.routes import PFS_DIGEST, PFS_EXECUTABLE, PFS_MTIME

if TYPE_CHECKING:
    from paddlecloud.pfs.serving.service import Service
    from paddlecloud.pfs.shapes import Content

_DAYS = "Mon Tue Wed Thu Fri Sat Sun".split()
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


class ConditionFailed(PaddleCloudError):
    code = "conflict"
    http_status = 412
    exit_code = 5


class RangeNotThere(PaddleCloudError):
    code = "invalid_input"
    http_status = 416
    exit_code = 2


def entries(service: Service, exchange: Exchange) -> Waiting:
    params = exchange.params
    path = PfsPath.parse(params["path"])
    yield service.slow
    page = service.store.entries(
        exchange.owner,
        path,
        recursive=params["recursive"],
        digests=params["digests"],
        after=params["after"],
        limit=params["limit"],
    )
    yield from exchange.answer_json(page.to_json())


def entry(service: Service, exchange: Exchange) -> Waiting:
    params = exchange.params
    path = PfsPath.parse(params["path"])
    yield service.slow
    found = service.store.entry(
        exchange.owner,
        path,
        digest=params["digest"],
        leaves=params["leaves"],
        verify=params["verify"],
    )
    yield from exchange.answer_json(found.to_json())


def usage(service: Service, exchange: Exchange) -> Waiting:
    path = PfsPath.parse(exchange.params["path"])
    yield service.slow
    yield from exchange.answer_json(service.store.usage(exchange.owner, path).to_json())


def compare(service: Service, exchange: Exchange) -> Waiting:
    body = yield from exchange.read_json(pfs_shapes.PfsCompareBody, table.MANY_BODY_BYTES)
    path = PfsPath.parse(body["path"])
    yield service.slow
    compared = service.store.compare(exchange.owner, path, body["files"], body.get("folders", []))
    yield from exchange.answer_json(compared.to_json())


# --- bytes ----------------------------------------------------------------------------------


def content(service: Service, exchange: Exchange) -> Waiting:
    path = PfsPath.parse(exchange.params["path"])
    with service.store.open_content(exchange.owner, path) as found:
        headers = _facts(found)
        conditions = exchange.head.headers
        if not _is_matched(conditions, found.etag):
            raise ConditionFailed("the file has changed", field="If-Match")
        if _is_known(conditions, found.etag):
            yield from exchange.answer(b"", status=304, headers=headers)
            return
        headers.append(("Content-Type", table.BYTES))
        offset, length, status = 0, found.size_bytes, 200
        wanted = _range(conditions, found) if exchange.head.method == "GET" else None
        if wanted is not None:
            offset, length = wanted
            status = 206
            if length <= 0:
                yield from _no_such_range(exchange, found)
                return
            last = offset + length - 1
            headers.append(("Content-Range", f"bytes {offset}-{last}/{found.size_bytes}"))
        yield from exchange.begin(status, headers, length)
        if exchange.head.method != "HEAD":
            passing = service.readings.begin(found.fd, offset, length)
            yield from exchange.send_file(found.fd, offset, length, passing)


def _facts(found: Content) -> list[tuple[str, str]]:
    headers = [
        ("ETag", found.etag),
        ("Accept-Ranges", "bytes"),
        ("Last-Modified", http_date(found.mtime_ns // 10**9)),
        (PFS_MTIME, str(found.mtime_ns)),
        (PFS_EXECUTABLE, "1" if found.executable else "0"),
        ("Cache-Control", "private, no-cache"),
    ]
    if found.digest is not None:
        headers.append((PFS_DIGEST, found.digest.hex()))
    return headers


def http_date(at_s: int) -> str:
    """As HTTP writes it, whatever the locale."""
    try:
        at = time.gmtime(at_s)
    except (OverflowError, OSError, ValueError):  # a year nobody can write
        at = time.gmtime(0)
    day, month = _DAYS[at.tm_wday], _MONTHS[at.tm_mon - 1]
    clock = f"{at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02}"
    return f"{day}, {at.tm_mday:02} {month} {at.tm_year:04} {clock} GMT"


def _no_such_range(exchange: Exchange, found: Content) -> Waiting:
    error = RangeNotThere(f"the file has {found.size_bytes} bytes", field="Range")
    headers = [("Content-Range", f"bytes */{found.size_bytes}")]
    yield from exchange.answer_json(error.to_json(), error.http_status, headers)


def _tags(text: str) -> list[str]:
    return [tag.strip() for tag in text.split(",")]


def _is_matched(headers: dict[str, str], etag: str) -> bool:
    wanted = headers.get("if-match")
    return wanted is None or wanted == "*" or etag in _tags(wanted)


def _is_known(headers: dict[str, str], etag: str) -> bool:
    known = headers.get("if-none-match")
    if known is None:
        return False
    return known == "*" or etag in [tag.removeprefix("W/") for tag in _tags(known)]


def _range(headers: dict[str, str], found: Content) -> tuple[int, int] | None:
    """(offset, length) of a single range; None: the whole file. Length 0: there is no such part.

    What is not understood is ignored, as HTTP asks; so are several ranges in one.
    """
    unit, equals, span = headers.get("range", "").partition("=")
    if unit.strip().lower() != "bytes" or not equals or "," in span:
        return None
    if headers.get("if-range", found.etag) != found.etag:
        return None
    first, dash, last = (part.strip() for part in span.partition("-"))
    if not dash or not _is_number(first or last) or (last and not _is_number(last)):
        return None
    size = found.size_bytes
    if not first:
        length = min(int(last), size)
        return size - length, length
    begin = int(first)
    end = min(int(last), size - 1) if last else size - 1
    if last and int(last) < begin:
        return None
    return begin, max(0, end - begin + 1)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18
