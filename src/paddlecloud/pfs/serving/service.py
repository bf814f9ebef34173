"""From a complete head to an answer: find the row, ask who calls, run the handler, name errors.

The one place where an exception becomes an answer, in the dialect of the call. What nobody
foresaw is logged and answered as an internal error without a word of its inside.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from paddlecloud.core.errors import Fault, InternalError, InvalidInput, NotFound, PaddleCloudError
from paddlecloud.pfs import legacy_notes
from paddlecloud.pfs.page_cache import Readings
from paddlecloud.pfs.serving import table
from paddlecloud.pfs.serving.callers import Callers, InHand
from paddlecloud.pfs.serving.exchanges import Exchange, Waiting
from paddlecloud.pfs.serving.handovers import Desk
from paddlecloud.pfs.serving.heads import Head, HeadTooLarge, decode_segment, parse_head
from paddlecloud.pfs.serving.links import Cut
from paddlecloud.pfs.serving.polling import Poller
from paddlecloud.pfs.serving.workers import Pool, Steps, Task
from paddlecloud.wire import routes

if TYPE_CHECKING:
    from paddlecloud.pfs.legacy_files import LegacyFiles
    from paddlecloud.pfs.store import Store

_log = logging.getLogger("paddlecloud.pfs")
_NO_HEAD = Head("GET", "/", {}, {}, 0, keeps_alive=False, expects_continue=False)
_TRUE, _FALSE = ("", "1", "true", "yes"), ("0", "false", "no")

Handler = Callable[["Service", Exchange], Waiting]


class MethodNotAllowed(PaddleCloudError):
    code = "invalid_input"
    http_status = 405
    exit_code = 2

    def __init__(self, methods: list[str]) -> None:
        super().__init__(f"this path knows {', '.join(methods)}")
        self.methods = methods


class Service:
    def __init__(
        self,
        store: Store,
        callers: Callers,
        handlers: Mapping[str, Handler],
        desk: Desk,
        *,
        max_requests_per_account: int,
        max_file_bytes: int,
    ) -> None:
        self.store = store
        self._legacy_lock = threading.Lock()
        # What an old client had sent when the last server ended counts against its quota.
        has_drafts = legacy_notes.are_there(store.places.hidden / "parts")
        self._legacy = self._make_legacy() if has_drafts else None
        self.max_file_bytes = max_file_bytes
        self.readings = Readings()
        self.desk = desk
        self._spill_folder = str(store.places.hidden)
        self._callers = callers
        self._in_hand = InHand(max_requests_per_account)
        self._find = Finder(table.ROWS, handlers)
        # Set by the process that starts the threads.
        self.poller: Poller
        self.moving: Pool  # moves bytes; never waits long for anything but a disk's cache
        self.slow: Pool  # syncs, digests of what is on disk, trees
        self.asking: Pool  # waits for the cloud server

    @property
    def legacy(self) -> LegacyFiles:
        """Made when the first old client comes."""
        with self._legacy_lock:
            if self._legacy is None:
                self._legacy = self._make_legacy()
            return self._legacy

    def _make_legacy(self) -> LegacyFiles:
        from paddlecloud.pfs.legacy_files import LegacyFiles

        return LegacyFiles(self.store)

    def tick(self) -> None:
        """About once a second."""
        if self._legacy is not None:
            self._legacy.tick()
        self.store.tick()

    def flush(self) -> None:
        if self._legacy is not None:
            self._legacy.flush()

    def begin(self, task: Task, raw_head: bytes) -> Steps:
        dialect = "v2"
        task.account_id = 0
        exchange = Exchange(task, _NO_HEAD)
        try:
            if not raw_head:
                raise HeadTooLarge("the head of a request may have 64 KiB")
            exchange = Exchange(task, parse_head(raw_head), self._spill_folder)
            dialect = _dialect_of(exchange.head.raw_path)
            if self.poller.is_stopping:
                exchange.keeps_alive = False
            yield from self._serve(exchange)
        except (Cut, GeneratorExit):
            raise
        except Exception as error:
            if exchange.has_begun:
                if not isinstance(error, PaddleCloudError):
                    _log.exception("the answer of %s was cut", exchange.head.raw_path[:200])
                raise Cut("an error in the middle of an answer") from None
            yield from answer_error(exchange, _known(error, exchange.head), dialect)
        if exchange.head is _NO_HEAD or not exchange.body.is_over:
            yield from exchange.linger()
            return False
        return exchange.keeps_alive

    def _serve(self, exchange: Exchange) -> Waiting:
        head = exchange.head
        if head.raw_path.rstrip("/") == routes.HEALTH and head.method in ("GET", "HEAD"):
            yield from exchange.answer(b"OK", "text/plain")
            return
        owner = self._callers.recall(head.headers)
        if owner is None:
            yield self.asking
            owner = self._callers.ask(head.headers)
            yield self.moving
        exchange.owner = owner
        exchange.task.account_id = owner.account_id
        row, handler = self._find(head)
        exchange.params = parse_params(row, head.query)
        self._in_hand.enter(owner)
        try:
            yield from handler(self, exchange)
        finally:
            self._in_hand.leave(owner)


class Finder:
    """Rows by path and method."""

    def __init__(self, rows: tuple[table.Row, ...], handlers: Mapping[str, Handler]) -> None:
        self._exact: dict[str, dict[str, tuple[table.Row, Handler]]] = {}
        self._open: dict[tuple[str, ...], dict[str, tuple[table.Row, Handler]]] = {}
        # How many parts the paths with a segment have, and where it is: few, however long a path.
        self._places: set[tuple[int, int]] = set()
        for row in rows:
            parts = tuple(row.path.split("/"))
            found = (row, handlers[row.name])
            if "{" in row.path:
                key = tuple("{}" if part.startswith("{") else part for part in parts)
                self._open.setdefault(key, {})[row.method] = found
                self._places.add((len(parts), key.index("{}")))
            else:
                self._exact.setdefault(row.path, {})[row.method] = found

    def __call__(self, head: Head) -> tuple[table.Row, Handler]:
        methods = self._exact.get(head.raw_path)
        parts = head.raw_path.split("/")
        if methods is None:
            for length, at in self._places:
                if length == len(parts):
                    methods = self._open.get((*parts[:at], "{}", *parts[at + 1 :]))
                    if methods is not None:
                        break
        if methods is None:
            raise NotFound(f"no call {head.raw_path[:200]}", hint="docs/guides/pfs-protocol.md")
        found = methods.get(head.method)
        if found is None and head.method == "HEAD":
            found = methods.get("GET")
        if found is None:
            raise MethodNotAllowed(sorted(methods))
        for name, part in zip(found[0].path.split("/"), parts, strict=True):
            if name.startswith("{"):
                head.segments[name.strip("{}")] = decode_segment(part)
        return found


def parse_params(row: table.Row, query: Mapping[str, list[str]]) -> dict[str, Any]:
    """Typed values of all parameters; every fault of our own dialect at once."""
    values = {param.name: param.default for param in row.params}
    known = {param.name: param for param in row.params}
    faults = []
    for name, texts in query.items():
        param = known.get(name)
        if param is None:
            if row.dialect == "v2":
                faults.append(Fault(name[:100], "is no parameter of this call"))
        elif row.dialect == "v2" and len(texts) > 1:
            faults.append(Fault(name, "is there twice"))
        else:
            try:
                values[name] = _value(param, texts[0])
            except ValueError as error:
                faults.append(Fault(name, str(error), texts[0][:100]))
    faults += [
        Fault(p.name, "is needed") for p in row.params if p.is_needed and p.name not in query
    ]
    if faults:
        raise InvalidInput(faults=faults)
    return values


def _value(param: table.Param, text: str) -> Any:
    if param.kind is bool:
        if text.lower() not in _TRUE + _FALSE:
            raise ValueError("must be 1 or 0")
        return text.lower() in _TRUE
    if param.kind is not int:
        return text
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 19 else -1
    low = param.low or 0
    if number < low or (param.high is not None and number > param.high):
        high = f" to {param.high}" if param.high is not None else " on"
        raise ValueError(f"must be a whole number from {low}{high}")
    return number


# --- errors ---------------------------------------------------------------------------------


def _dialect_of(raw_path: str) -> str:
    if raw_path.startswith(routes.V1_PFS):
        return "old"
    return "simple" if raw_path.startswith("/api/v1/") else "v2"


def _known(error: Exception, head: Head) -> PaddleCloudError:
    if isinstance(error, PaddleCloudError):
        return error
    _log.exception("%s %s failed", head.method, head.raw_path[:200])
    return InternalError("the file service failed", hint="its log says why")


def answer_error(exchange: Exchange, error: PaddleCloudError, dialect: str) -> Waiting:
    status = error.http_status
    body = error.to_json()
    headers = []
    if status == 401:
        headers.append(("WWW-Authenticate", 'Token realm="paddlecloud"'))
    if status in (429, 503):
        headers.append(("Retry-After", "1"))
    if isinstance(error, MethodNotAllowed):
        headers.append(("Allow", ", ".join(error.methods)))
    if dialect == "old":
        # Its clients read `err` and only of a 200; what they could not read then is true now.
        is_old_word = status in (400, 403, 404, 409, 413, 507) and exchange.head is not _NO_HEAD
        text = "" if status == 405 else old_words(error)
        body, status = {"err": text, "results": None}, 200 if is_old_word else status
    elif dialect == "simple":
        body = {**body, "error": body["code"], "code": status, "msg": error.message}
    yield from exchange.answer_json(body, status, headers)


def old_words(error: PaddleCloudError) -> str:
    """The first server's own sentences where it had one."""
    if error.http_status == 404:
        return "no such file or directory"
    if error.message.startswith("not a valid user"):
        return "what you request is unauthorized"
    return error.message
