"""A link over TLS: the same promises; what to wait for is what TLS says, not what was called."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import TypeVar

from paddlecloud.pfs.serving.links import READ, WRITE, Cut, Link

Result = TypeVar("Result")
_SENT_AT_ONCE = 64 << 10


class TlsLink(Link):
    __slots__ = ("tls",)
    hides_bytes = True

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        super().__init__(sock)
        self.tls = context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        self.sock = self.tls
        self.is_agreed = False

    def _try(self, operation: Callable[[], Result]) -> Result | None:
        try:
            return operation()
        except ssl.SSLWantReadError:
            self.wants = READ
            return None
        except ssl.SSLWantWriteError:
            self.wants = WRITE
            return None
        except OSError as error:
            raise Cut(str(error)) from None

    def handshake(self) -> bool | None:
        self._try(self._shake)
        return True if self.is_agreed else None

    def _shake(self) -> None:
        if not self.is_agreed:
            self.tls.do_handshake()
            self.is_agreed = True

    def recv(self, max_bytes: int) -> bytes | None:
        return self._try(lambda: self.tls.recv(max_bytes))

    def recv_into(self, view: memoryview) -> int | None:
        count = self._try(lambda: self.tls.recv_into(view))
        self.moved_bytes += count or 0
        return count

    def send(self, view: memoryview | bytes) -> int | None:
        # After "not ready" TLS wants the same bytes again, and as many: so never more than what
        # every caller offers again, whichever way it goes on.
        part = view if len(view) <= _SENT_AT_ONCE else memoryview(view)[:_SENT_AT_ONCE]
        count = self._try(lambda: self.tls.send(part))
        self.moved_bytes += count or 0
        return count

    def send_file(self, fd: int, offset: int, count: int, buffer: memoryview) -> int | None:
        return self.send_read(fd, offset, count, buffer)
