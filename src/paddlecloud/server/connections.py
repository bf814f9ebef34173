"""Connections to the API server: how many, from where, and how long each may take for what.

Everything here happens before anybody has logged in, so it is what a stranger can cost. A socket
is counted from `accept` until it is closed, TLS handshake included. Where there is no room, the
address with the most connections loses the one that has waited longest for a request; who has a
request under way keeps its place. `LimitedProtocol` bounds the head of a request; `sweep`, called
once a second, cuts whoever is late with a head, with a body, or with taking its answer.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import time
from dataclasses import replace
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from paddlecloud.pfs.serving.connection_counts import ConnectionCounts, network_of
from paddlecloud.server import certificates
from paddlecloud.server.configuration import ConnectionLimits

_NEVER = float("inf")
_MOST_PIPELINED = 16  # requests sent ahead; each costs some kilobytes before it is looked at
# Kept free of clients: the engine has some for every replica, rows and logs are files.
_SPARE_DESCRIPTORS = 8192
_DESCRIPTORS_EACH = 2  # a client's socket, and the one its transfer is passed on by
_FEWEST_CONNECTIONS = 64
_MOST_REFUSED_AT_ONCE = 64
_REASONS = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}
_CODES = {503: "unavailable"}


def within_descriptors(limits: ConnectionLimits) -> ConnectionLimits:
    """Raises the soft limit of descriptors as far as needed; fewer connections where the hard
    limit does not reach, so that clients never take those the engine starts jobs with."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS_EACH * limits.most + _SPARE_DESCRIPTORS
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return limits
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    spare = min(_SPARE_DESCRIPTORS, soft // 2)
    possible = max(_FEWEST_CONNECTIONS, (soft - spare) // _DESCRIPTORS_EACH)
    return replace(limits, most=min(limits.most, possible))


class Connection(socket.socket):
    """An accepted socket, counted until it is closed."""

    def __init__(self, fileno: int, network: str, connections: Connections) -> None:
        super().__init__(fileno=fileno)
        self.network = network
        self.protocol: LimitedProtocol | None = None  # None until TLS is agreed
        self.deadline_s = _NEVER
        self.unsent_bytes = 0
        self.unsent_since_s = _NEVER
        self._connections = connections
        self._descriptor = fileno

    def close(self) -> None:
        super().close()
        self._connections.forget(self._descriptor, self)

    def cut(self, status: int = 0, message: str = "") -> None:
        """End it now; with a status, say why as far as that needs no waiting."""
        self.deadline_s = _NEVER
        if self.protocol is not None:
            if status:
                self.protocol.refuse(status, message)
            self.protocol.transport.abort()
            return
        try:
            self.shutdown(socket.SHUT_RDWR)  # whoever shakes hands sees the end
        except OSError:
            pass


class Connections:
    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._counts = ConnectionCounts(limits.most, limits.per_address)
        self._open: dict[int, Connection] = {}
        # By network, longest wait first: those that have no request under way.
        self._waiting: dict[str, dict[Connection, None]] = {}

    def admit(self, sock: socket.socket, address: str) -> Connection | None:
        """The socket, counted; None if it was refused. `sock` is not to be used afterwards."""
        network = network_of(address)
        crowded = self._counts.crowded(network)
        if crowded is not None and not self._make_room(crowded):
            _refuse(sock)
            return None
        connection = Connection(sock.detach(), network, self)
        connection.deadline_s = time.monotonic() + self.limits.head_within_s
        self._counts.add(network)
        self._open[connection.fileno()] = connection
        self.waits(connection)
        return connection

    def _make_room(self, network: str) -> bool:
        """Its place is free a moment later, when the loop has closed it."""
        longest = next(iter(self._waiting.get(network, ())), None)
        if longest is None:
            return False
        self.has_request(longest)  # not to be chosen twice
        longest.cut()
        return True

    def find(self, fileno: int) -> Connection | None:
        return self._open.get(fileno)

    def forget(self, fileno: int, connection: Connection) -> None:
        if self._open.get(fileno) is connection:
            del self._open[fileno]
            self.has_request(connection)
            self._counts.remove(connection.network)

    def waits(self, connection: Connection) -> None:
        """It has no request under way."""
        self._waiting.setdefault(connection.network, {})[connection] = None

    def has_request(self, connection: Connection) -> None:
        waiting = self._waiting.get(connection.network)
        if waiting is not None:
            waiting.pop(connection, None)
            if not waiting:
                del self._waiting[connection.network]

    def sweep(self) -> None:
        """Cut who is late. About once a second, on the loop."""
        now_s = time.monotonic()
        for connection in list(self._open.values()):
            if connection.deadline_s <= now_s:
                self._cut_late(connection, now_s)
            elif self._is_stuck(connection, now_s):
                connection.cut()

    def _cut_late(self, connection: Connection, now_s: float) -> None:
        protocol = connection.protocol
        if protocol is None or protocol.is_in_head:
            connection.cut(408, "the head of the request took too long")
        elif protocol.is_held_back:  # the delay is ours: nobody takes what it has sent
            connection.deadline_s = now_s + self.limits.body_silence_s
        else:
            connection.cut(408, "the body of the request took too long")

    def _is_stuck(self, connection: Connection, now_s: float) -> bool:
        """Whether it has taken nothing of its answer for as long as a body may be silent."""
        if connection.protocol is None:
            return False
        unsent_bytes = connection.protocol.transport.get_write_buffer_size()
        if not unsent_bytes or unsent_bytes != connection.unsent_bytes:
            connection.unsent_bytes = unsent_bytes
            connection.unsent_since_s = now_s
            return False
        return now_s - connection.unsent_since_s > self.limits.body_silence_s


class Listener(socket.socket):
    """A listening socket that accepts only whom there is room for."""

    def __init__(self, sock: socket.socket, connections: Connections) -> None:
        super().__init__(sock.family, sock.type, sock.proto, fileno=sock.detach())
        self._connections = connections

    def accept(self) -> tuple[socket.socket, Any]:
        for _ in range(_MOST_REFUSED_AT_ONCE):
            sock, address = super().accept()
            connection = self._connections.admit(sock, address[0])
            if connection is not None:
                return connection, address
        raise BlockingIOError  # the loop has other things to do, and comes back


class HeadRefused(Exception):
    """The head of a request is over a limit; raised inside the parser, which ends there."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 with bounds on the head, and the times `Connections.sweep` looks at.

    It also passes on who a client certificate names, which uvicorn keeps to the socket.
    """

    def __init__(self, connections: Connections, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._connections = connections
        self._limits = connections.limits
        self._connection: Connection | None = None
        self.is_in_head = True
        self._is_in_body = False
        self._heads = 0  # begun so far
        self._head_bytes = 0
        self._parts_bytes = 0  # of the head, as far as the parser has told

    @property
    def is_held_back(self) -> bool:
        return self.flow.read_paused

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._connection = self._connections.find(transport.get_extra_info("socket").fileno())
        if self._connection is not None:
            self._connection.protocol = self
        peer = certificates.peer_of(transport.get_extra_info("peercert"))
        if peer:
            self.app_state = {**self.app_state, "peer": peer}

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_deadline(None)
        if self._connection is not None:
            self._connections.has_request(self._connection)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        if self.is_in_head and self._connection and self._connection.deadline_s == _NEVER:
            self._set_deadline(self._limits.head_within_s)
        heads = self._heads
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # another protocol was offered: the request is answered as HTTP
        except httptools.HttpParserError as error:
            why = error.__context__
            if isinstance(why, HeadRefused):
                self._end_with(why.status, why.message)
            else:
                self._end_with(400, "this is not an HTTP/1.1 request")
            return
        if self.is_in_head and self._heads == heads:
            # Between its parts the parser says nothing: one endless header is counted here.
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.head_bytes:
                self._end_with(431, self._too_long)

    @property
    def _too_long(self) -> str:
        return f"the head of a request may have {self._limits.head_bytes} bytes"

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.is_in_head = True
        self._heads += 1
        self._head_bytes = self._parts_bytes = 0

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 4)
        if not self.is_in_head:
            return  # a trailer: nobody here asks for one, and it must not look like a header
        if len(self.headers) >= self._limits.headers:
            raise HeadRefused(431, f"a request may have {self._limits.headers} headers")
        super().on_header(name, value)

    def _count(self, size_bytes: int) -> None:
        self._parts_bytes += size_bytes
        if self._parts_bytes > self._limits.head_bytes:
            raise HeadRefused(431, self._too_long)

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= _MOST_PIPELINED:
            raise HeadRefused(503, f"{_MOST_PIPELINED} requests may be sent ahead")
        self.is_in_head = False
        self._is_in_body = True
        self._set_deadline(self._limits.body_silence_s)
        if self._connection is not None:
            self._connections.has_request(self._connection)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self.cycle.response_complete:  # what is sent after the answer has one deadline
            self._set_deadline(self._limits.body_silence_s)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_in_body = False
        self._set_deadline(None)
        super().on_message_complete()
        if self.cycle.response_complete:
            self._wait_for_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_in_body:
            self._set_deadline(self._limits.head_within_s)
        elif not self.pipeline and self.cycle.response_complete:
            self._wait_for_head()

    def _wait_for_head(self) -> None:
        self.is_in_head = True
        if self._connection is not None and not self.transport.is_closing():
            self._connections.waits(self._connection)

    def _set_deadline(self, within_s: float | None) -> None:
        if self._connection is not None:
            at_s = _NEVER if within_s is None else time.monotonic() + within_s
            self._connection.deadline_s = at_s

    # --- refusals -----------------------------------------------------------------------------

    def refuse(self, status: int, message: str) -> None:
        """Say it, unless an answer is under way: two must not be mixed."""
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(_refusal(status, message))

    def _end_with(self, status: int, message: str) -> None:
        is_free = self.cycle is None or self.cycle.response_complete
        self.refuse(status, message)
        if is_free:
            self.transport.close()
        else:
            self.transport.abort()


def _refusal(status: int, message: str) -> bytes:
    code = _CODES.get(status, "invalid_input")
    body = b'{"code":"%s","message":"%s","hint":"","field":""}' % (code.encode(), message.encode())
    return (
        b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
        b"X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n%s"
        % (status, _REASONS[status].encode(), len(body), body)
    )


def _refuse(sock: socket.socket) -> None:
    """A few words at best; never waits."""
    try:
        sock.setblocking(False)
        sock.send(_refusal(503, "too many connections"))
    except OSError:
        pass
    sock.close()
