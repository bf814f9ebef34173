"""The front door: one ASGI application over the route table, with Django's pages behind it.

Rows are read and written on a small pool of threads; waits and streams live on the event loop and
hold no thread; bytes of files are passed on to the file server. Whoever is slow only holds its own
pool. Every refusal is JSON with a true status, and no traceback ever leaves.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, MutableMapping
from typing import Any

from paddlecloud.core.errors import (
    InternalError,
    NotAllowed,
    NotFound,
    PaddleCloudError,
    TooLarge,
    Unavailable,
)
from paddlecloud.pfs.serving.connection_counts import network_of
from paddlecloud.server import bridge, scopes
from paddlecloud.server.authentication import authenticate, check_signed_body, recall
from paddlecloud.server.database import forget_broken_connection, named, writing
from paddlecloud.server.exchange import Answer, Request, error_answer, json_answer
from paddlecloud.server.notifying import access_subject
from paddlecloud.server.pools import Pool, Shares
from paddlecloud.server.process import Process
from paddlecloud.server.relaying import Relay, Relays
from paddlecloud.server.routing import Access, Change, Route, Table, Work
from paddlecloud.server.services import idempotency
from paddlecloud.server.streams import Stream, send_answer
from paddlecloud.wire.routes import IDEMPOTENCY_REPLAYED, JOB_SERVICE

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_API = ("/api/", "/api-token-auth", JOB_SERVICE)
REPLAYED = (IDEMPOTENCY_REPLAYED.lower().encode(), b"true")


class Front:
    def __init__(self, process: Process, table: Table) -> None:
        self._process = process
        self._table = table
        self._limits = process.configuration.limits
        self._strangers = process.configuration.connections
        threads = process.configuration.threads
        self._requests = Pool("request", threads.requests, threads.requests_each)
        self.followers = Pool("follower", 2)
        self._held = 0
        self._shares = Shares(
            self._limits.requests_per_account, self._limits.body_bytes_per_account
        )
        self._links = Shares(self._limits.fetches_per_link, 0)
        self._relays = Relays(process.files, self._limits.followers)
        self._pages = bridge.Bridge(self._strangers.stranger_body_bytes, self._requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"nobody serves {scope['type']} here")
        path, method = scope["path"], scope["method"]
        route, segments, methods = self._table.find(method, path)
        if route is None and not path.startswith(_API) and not methods:
            await self._pages(scope, receive, send)
            return
        if route is None:
            route = _NOWHERE
        request = _request(scope, route, segments)
        dialect = _dialect(path, route)
        try:
            answer = await self._answer(request, scope, receive, send, methods)
        except PaddleCloudError as error:
            answer = error_answer(error, dialect)
        except Exception as error:
            answer = error_answer(_unexpected(request, error), dialect)
        if answer is not None:
            await send_answer(send, answer, method == "HEAD")

    async def _answer(
        self, request: Request, scope: Scope, receive: Receive, send: Send, methods: list[str]
    ) -> Answer | None:
        """Who calls is found out before anything the caller sent is looked at or waited for."""
        route = request.route
        request.most_fields = self._strangers.query_fields
        if route.work is Work.INLINE:
            answer: Answer = route.handler(request)
            return answer
        caller = _caller(request)
        with self._shares.request(caller):
            if route is _NOWHERE:
                await self._requests.run(_identify, request, turn=caller)  # 401 before 404
                return _no_such_route(request, methods)
            if route.work is Work.THREAD:
                return await self._answer_on_thread(request, caller, receive)
            if route.work is Work.LOGS:
                reads = self._process.pumps.reads
                return await self._within(reads.run(execute, request, turn=caller))
            if route.work is Work.LOOP:
                await self._requests.run(_prepare, request, turn=caller)
                if request.method != route.method:  # the head of something that has no end
                    return _no_such_route(request, [route.method])
                return await self._hold(request, receive, send)
            errand: Any = await self._requests.run(execute, request, turn=caller)
        if request.body_sha256:
            receive = checked(receive, request.body_sha256)
        await self._pass_on(request, Relay(scope, receive, send, errand))
        return None

    async def _answer_on_thread(
        self, request: Request, caller: Hashable, receive: Receive
    ) -> Answer:
        if not request.has_body:
            request.is_read = request.method not in ("GET", "HEAD")
            return await self._requests.run(execute, request, turn=caller)
        if request.route.access is not Access.OPEN and request.principal is None:
            await self._requests.run(_identify, request, turn=caller)
            caller = request.caller.account_id
        try:
            request.body = await self._read_body(request, caller, receive)
            request.is_read = True
            return await self._requests.run(execute, request, turn=caller)
        finally:
            self._shares.give_body_back(caller, request.kept_bytes)

    async def _pass_on(self, request: Request, relay: Relay) -> None:
        """To the file server. Links are everybody's: their readers count for the link."""
        sharer: Hashable = relay.errand.link or request.caller.account_id
        with self._links.request(sharer) if relay.errand.link else self._shares.request(sharer):
            await self._relays.run(relay)

    async def _within(self, work: Awaitable[Answer]) -> Answer:
        within_s = self._process.configuration.engines.answer_within_s
        try:
            async with asyncio.timeout(within_s):
                return await work
        except TimeoutError:
            raise Unavailable(
                f"the engine did not answer within {within_s:g} s", hint="try again in a moment"
            ) from None

    async def _hold(self, request: Request, receive: Receive, send: Send) -> Answer | None:
        """A request that may wait: counted, and told when its client is gone."""
        if self._held >= self._limits.followers:
            raise Unavailable(
                f"{self._held} requests are already waiting on this server",
                hint="try again in a moment",
            )
        self._held += 1
        stream = Stream(receive, send)
        doubt = _Doubt(self._requests, request, stream)
        subject = access_subject(request.caller.account_id)
        try:
            with self._process.hub.listening(doubt, subject):
                answer: Answer | None = await request.route.handler(request, stream, self.followers)
            if doubt.refusal is not None and not stream.has_started:
                raise doubt.refusal
            return answer
        except Exception as error:
            if not stream.has_started:
                raise
            # The head is out: all that is left is to end the stream where it is.
            log.warning("a stream of %s ended early: %r", request.path, error)
            await stream.finish()
            return None
        finally:
            self._held -= 1
            stream.close()

    async def _read_body(self, request: Request, caller: Hashable, receive: Receive) -> bytes:
        limit_bytes = request.route.body_limit_bytes or self._limits.body_bytes
        if request.route.access is Access.OPEN:
            limit_bytes = min(limit_bytes, self._strangers.stranger_body_bytes)
        announced = request.headers.get("content-length", "0")
        if announced.isdigit() and int(announced[:19]) > limit_bytes:
            raise _too_large(limit_bytes)
        pieces, size_bytes = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Unavailable("the client went away in the middle of its request")
            piece = message.get("body", b"")
            size_bytes += len(piece)
            if size_bytes > limit_bytes:
                raise _too_large(limit_bytes)
            self._shares.take_body(caller, len(piece))
            request.kept_bytes = size_bytes
            pieces.append(piece)
            if not message.get("more_body", False):
                return b"".join(pieces)


class _Doubt:
    """Asks a held request again who it is, when something its account logs in with has ended."""

    def __init__(self, pool: Pool, request: Request, stream: Stream) -> None:
        self._pool = pool
        self._request = request
        self._stream = stream
        self._task: asyncio.Task[None] | None = None
        self.refusal: PaddleCloudError | None = None

    def set(self) -> None:  # the hub
        self._task = asyncio.create_task(self._look())

    async def _look(self) -> None:
        try:
            turn = self._request.caller.account_id
            await self._pool.run(_identify, self._request, turn=turn)
        except PaddleCloudError as error:
            self.refusal = error
            self._stream.cut()


def checked(receive: Receive, sha256: str) -> Receive:
    """A body that was signed: its end is passed on only if it is the body of that digest, so that
    whoever takes it sees it cut otherwise."""
    found = hashlib.sha256()

    async def receive_checked() -> MutableMapping[str, Any]:
        message = await receive()
        if message["type"] == "http.request":
            found.update(message.get("body", b""))
            if not message.get("more_body", False) and found.hexdigest() != sha256:
                log.warning("a body was not the one that was signed; it is not passed on")
                return {"type": "http.disconnect"}
        return message

    return receive_checked


def _dialect(path: str, route: Route) -> str:
    """How refusals are worded; of unknown paths by where they would be."""
    if path.startswith("/api/v1"):
        return "v1"
    return "job_v1" if route is _NOWHERE and path.startswith(JOB_SERVICE) else route.dialect


def _request(scope: Scope, route: Route, segments: dict[str, str]) -> Request:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    repeated: frozenset[str] = frozenset()
    if len(headers) != len(scope["headers"]):
        counts = Counter(name.decode("latin-1") for name, _ in scope["headers"])
        repeated = frozenset(name for name, count in counts.items() if count > 1)
    client = scope.get("client")
    return Request(
        scope["method"],
        scope["path"],
        headers,
        client[0] if client else "",
        route,
        segments,
        scheme=scope["scheme"],
        reached=tuple(scope.get("server") or ("", 0)),
        peer=scope.get("state", {}).get("peer", ""),
        query=scope["query_string"],
        repeated=repeated,
    )


def _too_large(limit_bytes: int) -> TooLarge:
    return TooLarge(f"the body is larger than {limit_bytes} bytes", field="body")


def _unexpected(request: Request, error: Exception) -> PaddleCloudError:
    """Logged in full under a number; the caller gets the number."""
    known = named(error)
    if known is not None:
        log.error("%s %s: %s", request.method, request.path, error)
        return known
    number = secrets.token_hex(4)
    log.exception("%s %s failed (%s)", request.method, request.path, number)
    return InternalError(
        f"the server made a mistake (number {number})",
        hint="the administrator finds it under that number in the server's log",
    )


def _no_such_route(request: Request, methods: list[str]) -> Answer:
    if methods:
        error = NotAllowed(f"{request.method} is not possible here; {', '.join(methods)} is")
        answer = error_answer(error, _dialect(request.path, request.route), 405)
        answer.headers.append((b"allow", ", ".join(methods).encode()))
        return answer
    raise NotFound(f"there is nothing at {request.path[:200]}", hint="GET /api/v2/openapi.json")


def _caller(request: Request) -> Hashable:
    """Whose turn a request takes: its account where that is known without asking the database,
    else everybody's at that address."""
    if request.route.access is not Access.OPEN:
        request.principal = recall(request)
    if request.principal is not None:
        return request.principal.account_id
    return "@" + network_of(request.address)


# --- on a thread -----------------------------------------------------------------------------


def _identify(request: Request) -> None:
    """Who calls, and whether they may call this at all."""
    access = request.route.access
    if access is Access.OPEN:
        return
    caller = authenticate(request)
    request.principal = caller
    if access is Access.ADMIN and not caller.is_admin:
        raise NotAllowed("only an administrator may do this")
    if caller.job_id and access is not Access.JOB:
        raise NotAllowed("a job's own token may only read that job")
    if caller.scope != scopes.ALL:
        scopes.check(caller.scope, request.route)


def _prepare(request: Request) -> None:
    """Who calls, then what they sent: a stranger learns nothing from its faults."""
    _identify(request)
    if request.is_read:
        check_signed_body(request)
    if request.route.work is not Work.RELAY:
        request.params = request.route.parse_query(request.query, request.most_fields)


def execute(request: Request) -> Answer:
    """One request from identity to answer; changes are kept together with their key."""
    try:
        _prepare(request)
        route = request.route
        answer = _changed(request)
        if route.shown is not None and answer.status < 300:
            shown = json_answer(route.shown(request), answer.status)
            return Answer(answer.status, shown.body, [*shown.headers, *answer.headers])
        return answer
    except PaddleCloudError:
        raise
    except Exception:
        forget_broken_connection()
        raise


def _changed(request: Request) -> Answer:
    change = request.route.change
    if change not in (Change.ATOMIC, Change.EACH) or not idempotency.key_of(request):
        answer: Answer = request.route.handler(request)
        return answer
    if change is Change.ATOMIC:
        with writing():
            return _answered_then(request) or _carry_out(request)
    return _answered_then(request) or _carry_out(request)


def _answered_then(request: Request) -> Answer | None:
    """What this request was answered when it was made before."""
    seen = idempotency.find(request)
    if seen is None or request.route.secret_answer:
        return None
    headers = [(b"content-type", b"application/json")] if seen.response else []
    return Answer(seen.status, seen.response, [*headers, REPLAYED])


def _carry_out(request: Request) -> Answer:
    answer: Answer = request.route.handler(request)
    with writing():
        if idempotency.find(request) is not None:
            answer.headers.append(REPLAYED)
        else:
            kept = b"" if request.route.secret_answer else answer.body
            idempotency.keep(request, answer.status, kept)
    return answer


async def _nobody(request: Request) -> Answer:
    raise asyncio.InvalidStateError("the route of unknown paths has no handler")


_NOWHERE = Route("GET", "", _nobody, "", access=Access.USER)
