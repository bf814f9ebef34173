"""One client's socket that never blocks.

`recv_into`, `send` and `send_file` return None when the socket is not ready; `wants` then says
what to wait for. Bytes that arrived behind a head stay in `pending` until the body is read. A link
belongs to one thread at a time: the poller while it waits, a worker while it is served. With TLS
it is a `tls_links.TlsLink`.
"""

from __future__ import annotations

import errno
import os
import select
import socket
from contextlib import suppress

from paddlecloud.wire import windows

# Some mounts cannot; then the bytes go through this process.
_CANNOT_SENDFILE = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)

READ = select.EPOLLIN
WRITE = select.EPOLLOUT


def _is_here(sock: socket.socket) -> bool:
    return windows.is_here(sock.getsockname()[0], sock.getpeername()[0])


def _keep_little_on_the_way(sock: socket.socket) -> None:
    with suppress(OSError):  # a hint
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, windows.TCP_INFO_BYTES)
        if windows.is_near(info):
            # The first keeps the kernel from growing the second on its own.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, windows.WINDOW_BYTES)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, windows.WINDOW_BYTES)
        if _is_here(sock):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, windows.UNPACED)


class Cut(Exception):
    """The other end went away, or sent nothing for too long. Nobody is left to answer."""


class Link:
    __slots__ = (
        "deadline_s",
        "is_agreed",
        "is_registered",
        "moved_bytes",
        "network",
        "pending",
        "scanned_bytes",
        "sock",
        "task",
        "waits_since_s",
        "wants",
    )
    # Whether bytes may wait in this process where epoll cannot see them.
    hides_bytes = False

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _keep_little_on_the_way(sock)
        self.sock = sock
        self.pending = bytearray()
        self.scanned_bytes = 0  # of `pending`, known not to hold the end of a head
        self.wants = READ
        self.moved_bytes = 0  # since it last had to wait
        self.deadline_s = 0.0
        self.waits_since_s = 0.0  # for a head: since it was accepted, or since the last answer
        self.network = ""  # what it counts for
        self.task: object | None = None  # what goes on when it is ready; None while idle
        self.is_registered = False
        self.is_agreed = True  # False until TLS is

    @property
    def is_here(self) -> bool:
        """Whether the other end is on this machine."""
        try:
            return _is_here(self.sock)
        except OSError:
            return False

    def fileno(self) -> int:
        return self.sock.fileno()

    def handshake(self) -> bool | None:
        """True when the two ends have agreed; None: not ready."""
        return True

    def recv(self, max_bytes: int) -> bytes | None:
        """For heads, whose length nobody knows; bodies are received into a worker's buffer."""
        try:
            return self.sock.recv(max_bytes)
        except BlockingIOError:
            self.wants = READ
            return None
        except OSError as error:
            raise Cut(str(error)) from None

    def recv_into(self, view: memoryview) -> int | None:
        """How many bytes came; 0 is the end. None: not ready."""
        try:
            count = self.sock.recv_into(view)
        except BlockingIOError:
            self.wants = READ
            return None
        except OSError as error:
            raise Cut(str(error)) from None
        self.moved_bytes += count
        return count

    def send(self, view: memoryview | bytes) -> int | None:
        try:
            count = self.sock.send(view)
        except BlockingIOError:
            self.wants = WRITE
            return None
        except OSError as error:
            raise Cut(str(error)) from None
        self.moved_bytes += count
        return count

    def send_file(self, fd: int, offset: int, count: int, buffer: memoryview) -> int | None:
        """Some bytes of a file; 0 means that the file is shorter."""
        try:
            sent = os.sendfile(self.sock.fileno(), fd, offset, count)
        except BlockingIOError:
            self.wants = WRITE
            return None
        except OSError as error:
            if error.errno in _CANNOT_SENDFILE:
                return self.send_read(fd, offset, count, buffer)
            raise Cut(str(error)) from None
        self.moved_bytes += sent
        return sent

    def send_read(self, fd: int, offset: int, count: int, buffer: memoryview) -> int | None:
        """The same by way of the buffer. What does not go out now is read again the next time:
        nothing is kept while waiting."""
        read = os.preadv(fd, [buffer[: min(count, len(buffer))]], offset)
        return self.send(buffer[:read]) if read else 0

    def end_of_sending(self) -> None:
        """Say that nothing more comes, and go on reading."""
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self) -> None:
        try:
            self.sock.close()
        except OSError:
            pass
