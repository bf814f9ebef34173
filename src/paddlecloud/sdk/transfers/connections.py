"""The way to the file service: its own port where that can be reached, else the main endpoint.

It promises: requests go out with the user's login, renewed once when refused; an error the server
answered is the class it raised; a connection that broke, or a server that is not ready, is an
`OSError`, so that whoever knows how to go on can; `Patience` says how long to try. A token never
goes from an https endpoint to an unencrypted one. Called by `sdk.pfs` and the transfers. It never
knows what a request means.
"""

from __future__ import annotations

import json
import time
from _thread import allocate_lock  # `threading` would cost every listing a millisecond
from collections.abc import Callable, Iterable, Iterator, Mapping

from paddlecloud.sdk.http import Connection, Cut, Endpoint, Response
from paddlecloud.sdk.transport import Transport
from paddlecloud.wire import routes
from paddlecloud.wire.buffers import buffer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from paddlecloud.core.errors import PaddleCloudError

    T = TypeVar("T")

BUFFER_BYTES = 1 << 19  # what a core's own cache holds between reading, hashing and sending
PROBE_TIMEOUT_S = 4.0  # for the data port, behind which a firewall may swallow everything
CONNECT_TIMEOUT_S = 10.0
STALL_TIMEOUT_S = 60.0  # not one byte moved
SLOW_ANSWER_TIMEOUT_S = 600.0  # hashing, syncing, removing: the server works before it answers
GIVE_UP_S = 30.0  # without any progress: a server that restarts is back by then
DELAYS_S = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.0)
_NOT_READY = (408, 429, 502, 503, 504)
_ANSWERED_BY_A_PROXY = (502, 504)  # what is behind it may have done its work
_RELAYED = "the data port {url} cannot be reached ({why}): going through {main}, which is slower"


class NotReady(Cut):
    """The server answered that it cannot serve now; `error` is what it said."""

    def __init__(self, error: PaddleCloudError, status: int) -> None:
        super().__init__(error.message)
        self.error = error
        self.status = status


class Interrupted(Exception):
    """Another thread has ended the transfer; nobody outside the transfers sees it."""


class Plane:
    """Connections to the file service of one server. Safe to use from several threads."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.stall_timeout_s = STALL_TIMEOUT_S
        self.give_up_s = GIVE_UP_S
        self._endpoint: Endpoint | None = None
        self._was_found = False  # in the course of this session
        self._proved_url = ""  # of a data port that could be reached
        self.is_here = False  # the service is on this machine, as far as is known
        self._notes: list[str] = []
        self._idle: list[Connection] = []
        self._lock = allocate_lock()

    # --- where ---------------------------------------------------------------------------------

    @property
    def endpoint(self) -> Endpoint:
        """Where the file routes are asked; found out at the first use."""
        with self._lock:
            if self._endpoint is None:
                self._endpoint = self._choose_patiently() if self._was_found else self._choose()
                self._was_found = True
            return self._endpoint

    def take_notes(self) -> list[str]:
        """What is worth telling the user, once."""
        notes, self._notes = self._notes, []
        return notes

    def _choose(self) -> Endpoint:
        main = self.transport.endpoint
        if not self.transport.authorize({}):
            return main  # it checks signatures and certificates; the data port knows tokens only
        offered = data_endpoint(main, self.transport.call("GET", routes.STATUS))
        if offered is None:
            return main
        try:
            connection = self.transport.connect_to(offered, PROBE_TIMEOUT_S)
        except OSError as error:
            if offered.url == self._proved_url:
                raise  # it is being started again, not behind a firewall
            why = error.strerror or str(error) or "no answer in time"
            self._notes.append(_RELAYED.format(url=offered.url, why=why.lower(), main=main.url))
            return main
        self._idle.append(self._prepared(connection))
        self._proved_url = offered.url
        return offered

    def _choose_patiently(self) -> Endpoint:
        """Once a server was there, its absence is a cut like any other: it may be starting."""
        from paddlecloud.core.errors import ServerUnreachable, Unavailable

        try:
            return self._choose()
        except (ServerUnreachable, Unavailable) as error:
            raise ConnectionRefusedError(error.message) from error

    def connect(self) -> Connection:
        endpoint = self.endpoint
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            return self._prepared(self.transport.connect_to(endpoint, CONNECT_TIMEOUT_S))
        except OSError:
            self._look_again(endpoint)
            raise

    def _prepared(self, connection: Connection) -> Connection:
        connection.keep_little_on_the_way()
        connection.on_idle = self._idle
        self.is_here = connection.is_here
        return connection

    def _look_again(self, gone: Endpoint) -> None:
        """A server that was started again may have its data port elsewhere."""
        with self._lock:
            if self._endpoint is gone and gone is not self.transport.endpoint:
                self._endpoint = None

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def unreachable(self, cut: OSError) -> PaddleCloudError:
        """The broken connection in the user's terms."""
        if isinstance(cut, NotReady):
            return cut.error
        return self.transport.unreachable(cut)


def data_endpoint(main: Endpoint, status: Mapping[str, Any]) -> Endpoint | None:
    """The file service's own address as the server's status gives it; None: only the main one."""
    told = status.get("pfs")
    if not isinstance(told, Mapping):
        return None
    url, port = told.get("url"), told.get("port")
    if not url and port:
        host = f"[{main.host}]" if ":" in main.host else main.host
        url = f"{'https' if main.tls else 'http'}://{host}:{port}"
    try:
        offered = Endpoint(str(url)) if url else None
    except ValueError:
        return None
    if offered is None or (main.tls and not offered.tls) or offered.url == main.url:
        return None
    return offered


class Lane:
    """One request at a time to the file service, with one reused buffer; for one thread."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self._connection: Connection | None = None
        self._view: memoryview | None = None
        self._scratch: memoryview | None = None
        self._is_ended = False

    @property
    def view(self) -> memoryview:
        """The buffer that file bytes go through."""
        if self._view is None:
            self._view = buffer(BUFFER_BYTES)
        return self._view

    def scratch(self, size_bytes: int) -> memoryview:
        """A buffer for one request's whole body, reused: fresh memory costs more than a copy."""
        if self._scratch is None or len(self._scratch) < size_bytes:
            self._scratch = buffer(size_bytes)
        return self._scratch[:size_bytes]

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        timeout_s: float = SLOW_ANSWER_TIMEOUT_S,
        accept: tuple[int, ...] = (),
    ) -> Any:
        """JSON out, JSON in. An error whose status is in `accept` is returned, not raised."""
        data = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        headers = {"Content-Type": "application/json"} if data else {}
        response = self.open(
            method, path, data, headers=headers, timeout_s=timeout_s, accept=accept
        )
        text = response.read()
        return self._decode(text, response) if text else None

    def send(
        self,
        method: str,
        path: str,
        pieces: Callable[[], Iterable[Any]],
        length: int,
        *,
        whole: bytes | bytearray | memoryview | None = None,
    ) -> Any:
        """A stream of bytes-like pieces out, JSON in. `pieces` is asked anew for each attempt.

        `whole` is all of them, where they are at hand: a signature covers it. Without it what is
        sent must be called by its digest in another request.
        """
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Length": str(length),
        }
        response = self.open(method, path, pieces, headers=headers, whole=whole)
        return self._decode(response.read(), response)

    def _decode(self, text: bytes, response: Response) -> Any:
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise self.plane.transport.not_ours(response)
        return answer

    def open(
        self,
        method: str,
        path: str,
        body: bytes | Callable[[], Iterable[Any]] = b"",
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = SLOW_ANSWER_TIMEOUT_S,
        accept: tuple[int, ...] = (),
        whole: bytes | bytearray | memoryview | None = None,
    ) -> Response:
        """Send a request; the answer's head has been read and is no error."""
        transport = self.plane.transport
        sent = {"User-Agent": transport.user_agent, **(headers or {})}
        used = transport.authorize(sent)
        response = self._attempt(method, path, sent, body, timeout_s, whole)
        if response.status == 401 and transport.renew(used):
            response.close()
            transport.authorize(sent)
            response = self._attempt(method, path, sent, body, timeout_s, whole)
        if response.status < 300 or response.status in accept:
            return response
        error = transport.error_from(response.read(), response)
        if response.status in _NOT_READY:
            raise NotReady(error, response.status)
        raise error

    def _attempt(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | Callable[[], Iterable[Any]],
        timeout_s: float,
        whole: bytes | bytearray | memoryview | None = None,
    ) -> Response:
        if self._is_ended:
            raise Interrupted
        connection = self._connection = self.plane.connect()
        if self._is_ended:  # `end` came between: it has not seen this connection
            connection.close()
            raise Interrupted
        try:
            payload: Any = body
            covered: Any = body
            if not isinstance(body, bytes):
                covered = None if whole is None else lambda: (whole,)
            headers = self.plane.transport.signed(
                connection.endpoint, method, path, headers, covered
            )
            if not isinstance(payload, bytes):
                payload = _until_answered(connection, payload(), self.plane.stall_timeout_s)
            response = connection.request(method, path, headers, payload, timeout_s=timeout_s)
            connection.stall_after(self.plane.stall_timeout_s)
            return response
        except BaseException:
            connection.close()
            if self._is_ended:
                raise Interrupted from None
            raise

    def end(self) -> None:
        """Cut what is going on, from another thread, and let nothing new begin."""
        self._is_ended = True
        if self._connection is not None:
            self._connection.abort()


def _until_answered(
    connection: Connection, pieces: Iterable[Any], stall_timeout_s: float
) -> Iterator[Any]:
    """The pieces, but no more once the server has spoken: it refuses, and will not read them."""
    connection.stall_after(stall_timeout_s)
    is_begun = False
    for piece in pieces:
        # There is more to send, so an answer now can only be a refusal.
        if is_begun and connection.has_answer():
            raise BrokenPipeError("the server answered before it had everything")
        yield piece
        is_begun = True
    connection.stall_after(SLOW_ANSWER_TIMEOUT_S)


def may_be_done(cut: OSError) -> bool:
    """Whether the server may have carried out the request whose answer did not come."""
    if isinstance(cut, NotReady):
        return cut.status in _ANSWERED_BY_A_PROXY
    return not isinstance(cut, ConnectionRefusedError)


class Patience:
    """How often and how long to try again, counted from the last progress."""

    def __init__(
        self,
        give_up_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._give_up_s = give_up_s
        self._clock = clock
        self._sleep = sleep
        self._tries = 0
        self._since: float | None = None

    def progressed(self) -> None:
        self._tries, self._since = 0, None

    def wait(self, cut: OSError) -> None:
        """Sleep before the next try; raises the error when there should be none."""
        now = self._clock()
        if self._since is None:
            self._since = now
        if now - self._since >= self._give_up_s or _is_hopeless(cut):
            raise cut
        self._sleep(DELAYS_S[min(self._tries, len(DELAYS_S) - 1)])
        self._tries += 1


def _is_hopeless(cut: OSError) -> bool:
    return type(cut).__name__ == "SSLCertVerificationError"


def persist(patience: Patience, attempt: Callable[[], T]) -> T:
    """Run it until it comes through; what it does must be safe to repeat."""
    while True:
        try:
            return attempt()
        except OSError as cut:
            patience.wait(cut)
