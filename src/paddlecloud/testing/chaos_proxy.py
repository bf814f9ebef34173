"""A TCP proxy that breaks things at a chosen byte: for tests of what goes on after a break.

    with ChaosProxy(port) as proxy:
        proxy.plan(Fault("cut", "up", at_byte=5_000_000))
        ... connect to proxy.port instead ...
        assert proxy.sent["up"] < 9_000_000

Bytes are counted per direction (`up`: from the client to the server) over all connections, from
the moment a fault was planned. Each fault happens once. It knows nothing of what passes through.

    cut     both sides see an orderly end of the connection
    reset   both sides see a reset
    stall   the connection stays open and nothing more passes, until `release`
    flip    one bit of that byte is changed
"""

from __future__ import annotations

import socket
import struct
import threading
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal

Direction = Literal["up", "down"]
_PIECE_BYTES = 65536
_JOIN_S = 5.0


@dataclass
class Fault:
    kind: Literal["cut", "reset", "stall", "flip"]
    direction: Direction
    at_byte: int  # this one is no longer passed on (or is changed)
    happened: threading.Event = field(default_factory=threading.Event)


class ChaosProxy:
    """Listens on `port` of 127.0.0.1 and passes everything on to the target's port there."""

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.sent: dict[Direction, int] = {"up": 0, "down": 0}  # passed on, ever
        self.connections = 0
        self._lock = threading.Lock()
        self._pending: list[tuple[Fault, int]] = []  # with the count when it was planned
        self._released = threading.Event()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._start(self._accept)

    def plan(self, *faults: Fault) -> None:
        with self._lock:
            self._pending += [(fault, self.sent[fault.direction]) for fault in faults]

    def release(self) -> None:
        """End all stalls, those to come too."""
        self._released.set()

    def close(self) -> None:
        self._released.set()
        _shut(self._listening)
        with self._lock:
            sockets = list(self._open)
        for each in sockets:
            _shut(each)
        for thread in self._threads:
            thread.join(_JOIN_S)

    def __enter__(self) -> ChaosProxy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- passing on ------------------------------------------------------------------------

    def _start(self, work: object, *args: object) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                self._listening.close()
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target_port), 5.0)
            except OSError:
                _reset(client)
                continue
            server.settimeout(None)
            with self._lock:
                self.connections += 1
                self._open |= {client, server}
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._start(self._pass_on, client, server, "up")
            self._start(self._pass_on, server, client, "down")

    def _pass_on(self, source: socket.socket, target: socket.socket, way: Direction) -> None:
        try:
            while data := source.recv(_PIECE_BYTES):
                if not self._forward(bytearray(data), source, target, way):
                    break
            else:
                target.shutdown(socket.SHUT_WR)
                return
        except OSError:
            pass
        _shut(target)  # before the sender learns of it
        _shut(source)
        with self._lock:
            self._open -= {source, target}

    def _forward(
        self, data: bytearray, source: socket.socket, target: socket.socket, way: Direction
    ) -> bool:
        """Pass one piece on, with what is planned for it; False ends the connection."""
        while data:
            with self._lock:
                found = self._due(way, len(data))
                length = len(data) if found is None else found[1]
                self.sent[way] += length
            if found is None:
                target.sendall(data)
                return True
            fault = found[0]
            if fault.kind == "flip":
                data[length] ^= 0x10
                with self._lock:
                    self.sent[way] += 1
                target.sendall(data[: length + 1])
                del data[: length + 1]
                fault.happened.set()
                continue
            target.sendall(data[:length])
            del data[:length]
            fault.happened.set()
            if fault.kind == "stall":
                self._released.wait()
                continue
            if fault.kind == "reset":
                _reset(source)
                _reset(target)
            return False
        return True

    def _due(self, way: Direction, length: int) -> tuple[Fault, int] | None:
        """The first fault within the next `length` bytes, and how many pass before it."""
        best: tuple[Fault, int] | None = None
        chosen = -1
        for number, (fault, start) in enumerate(self._pending):
            before = start + fault.at_byte - self.sent[way]
            if fault.direction == way and 0 <= before < length and (not best or before < best[1]):
                best, chosen = (fault, before), number
        if best is not None:
            del self._pending[chosen]
        return best


def _shut(each: socket.socket) -> None:
    try:
        each.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    each.close()


def _reset(each: socket.socket) -> None:
    try:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # Another thread may be in recv on it: a shutdown wakes it, the close then resets.
        each.shutdown(socket.SHUT_RD)
    except OSError:
        pass
    each.close()
