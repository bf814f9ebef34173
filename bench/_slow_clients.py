"""Many connections that each ask for something long and take it slowly, or not at all."""

from __future__ import annotations

import resource
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence

from _report import CannotMeasure


def allow_files(count: int) -> None:
    """As many open files as that, or CannotMeasure."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        raise CannotMeasure(f"this user may open {hard} files, {count} are needed")
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def calls_ms(calls: Sequence[Callable[[], object]], seconds: float) -> list[float]:
    """How long each of somebody else's calls took, made one after another for that long."""
    took_ms: list[float] = []
    ends_at_s = time.monotonic() + seconds
    while time.monotonic() < ends_at_s:
        for call in calls:
            began_s = time.perf_counter()
            call()
            took_ms.append((time.perf_counter() - began_s) * 1e3)
        time.sleep(0.02)
    return took_ms


class SlowClients:
    """Connections with one request each; every second one is read, the others are left full.

    `piece_bytes` are taken from each that has some, then there is a pause.
    """

    def __init__(
        self,
        port: int,
        path: str,
        token: str,
        count: int,
        *,
        piece_bytes: int = 65_536,
        pause_s: float = 0.0,
    ) -> None:
        self._count = count
        self._piece_bytes = piece_bytes
        self._pause_s = pause_s
        self._request = (
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Token {token}\r\n\r\n"
        ).encode()
        self._port = port
        self._selector = selectors.DefaultSelector()
        self._sockets: list[socket.socket] = []
        self._stopping = False
        self.bytes_read = 0
        self._reader = threading.Thread(target=self._read, daemon=True)

    def open(self) -> None:
        for number in range(self._count):
            link = socket.socket()
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            link.settimeout(30)
            link.connect(("127.0.0.1", self._port))
            link.sendall(self._request)
            head = link.recv(64)
            if b" 200 " not in head:
                raise CannotMeasure(f"connection {number} was answered {head!r}")
            self._sockets.append(link)
            if number % 2:
                self._selector.register(link, selectors.EVENT_READ)
        self._reader.start()

    def _read(self) -> None:
        while not self._stopping:
            for key, _ in self._selector.select(timeout=0.2):
                piece = key.fileobj.recv(self._piece_bytes)
                self.bytes_read += len(piece)
                if not piece:
                    self._selector.unregister(key.fileobj)
            time.sleep(self._pause_s)

    def open_count(self) -> int:
        return len(self._selector.get_map())

    def close(self) -> None:
        self._stopping = True
        if self._reader.is_alive():
            self._reader.join()
        for link in self._sockets:
            link.close()
