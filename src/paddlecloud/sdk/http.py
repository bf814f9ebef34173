"""A small HTTP/1.1 client over `socket`: what the SDK needs and nothing more.

It promises: one request at a time per connection, bodies sent and received as streams, chunked
and sized answers told apart from cut ones, a deadline on every read, TLS when the endpoint says
https. The SDK's client calls it. It never retries, follows a redirect, reads a proxy setting or
interprets a status: that is the caller's business. Why it exists (http.client costs a start of
the command line more than the whole request does) is in docs/decisions/0004-sdk-http.md.
"""

from __future__ import annotations

import select
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    import io
    import ssl

MAX_LINE_BYTES = 65536
MAX_HEADERS = 128
READ_BYTES = 65536
_BODILESS = (204, 304)
_UNSENT_BYTES = 1 << 19
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Cut(ConnectionError):
    """The connection ended, or stopped making sense, before the answer was complete."""


def quote(text: str, safe: str = "") -> str:
    """Percent-encode UTF-8 text for a path segment or a query value."""
    keep = _UNRESERVED | frozenset(safe.encode())
    return "".join(chr(b) if b in keep else f"%{b:02X}" for b in text.encode())


def query(values: Mapping[str, object]) -> str:
    """`?a=1&b=2`, or nothing; None and empty text are left out."""
    pairs = [
        f"{quote(name)}={quote(str(value), safe=',:/')}"
        for name, value in values.items()
        if value is not None and value != ""
    ]
    return "?" + "&".join(pairs) if pairs else ""


class Endpoint:
    """Where a server listens: `http://host:8000/prefix`, taken apart once.

    A text that is no such address raises ValueError with a sentence for the user.
    """

    __slots__ = ("host", "port", "prefix", "tls", "url")

    def __init__(self, url: str) -> None:
        scheme, found, rest = url.strip().partition("://")
        if not found:
            scheme, rest = "http", scheme
        rest = rest.rstrip("/\\")
        scheme = scheme.lower()
        if scheme not in ("http", "https"):
            raise ValueError(f"{url!r} must start with http:// or https://")
        self.tls = scheme == "https"
        authority, slash, path = rest.partition("/")
        if "@" in authority:
            raise ValueError("an endpoint holds no user name or password")
        self.prefix = slash + path
        self.host, self.port = _split_authority(authority, 443 if self.tls else 80, url)
        if any(c <= " " or c in "?#" for c in rest):
            raise ValueError(f"{url!r} is not a server address such as http://127.0.0.1:8000")
        self.url = f"{scheme}://{rest}"

    @property
    def authority(self) -> str:
        """The Host header: the port is left out when it is the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


def _split_authority(authority: str, default_port: int, url: str) -> tuple[str, int]:
    if authority.startswith("["):
        host, _, rest = authority[1:].partition("]")
        port_text = rest.removeprefix(":")
    else:
        host, _, port_text = authority.partition(":")
    if not host:
        raise ValueError(f"{url!r} names no host")
    if not port_text:
        return host, default_port
    if not (port_text.isascii() and port_text.isdigit() and 0 < int(port_text) < 65536):
        raise ValueError(f"{url!r} has the port {port_text!r}; it must be 1 to 65535")
    return host, int(port_text)


class Response:
    """Status, lower-case headers, and a body that is read once, whole or as it comes."""

    def __init__(self, connection: Connection, method: str) -> None:
        self._connection = connection
        self._file = connection.file
        self.status, self.reason, version = self._read_status()
        self.headers = self._read_headers()
        while 100 <= self.status < 200:
            self.status, self.reason, version = self._read_status()
            self.headers = self._read_headers()
        self._chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        self._left: int | None = None  # bytes still to come of a sized body or of a chunk
        self._done = False
        self._reusable = version >= "HTTP/1.1" and (
            self.headers.get("connection", "").lower() != "close"
        )
        if method == "HEAD" or self.status in _BODILESS:
            self._finish()
        elif self._chunked:
            self._left = 0
        elif "content-length" in self.headers:
            self._left = self._number(self.headers["content-length"], 10)
            if self._left == 0:
                self._finish()
        else:
            self._reusable = False  # the body ends with the connection

    def _line(self) -> bytes:
        line = self._file.readline(MAX_LINE_BYTES + 1)
        if not line.endswith(b"\n"):
            raise Cut("the server closed the connection" if not line else "the answer is cut off")
        return line.rstrip(b"\r\n")

    def _read_status(self) -> tuple[int, str, str]:
        parts = self._line().decode("latin-1").split(" ", 2)
        if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not parts[1].isdigit():
            raise Cut("what answers there does not speak HTTP")
        return int(parts[1]), parts[2] if len(parts) == 3 else "", parts[0]

    def _read_headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        for _ in range(MAX_HEADERS):
            line = self._line().decode("latin-1")
            if not line:
                return headers
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        raise Cut("the answer has too many headers")

    def _number(self, text: str, base: int) -> int:
        try:
            value = int(text, base)
        except ValueError:
            value = -1
        if value < 0:
            raise Cut("the answer's length is not a number")
        return value

    def _finish(self) -> None:
        if not self._done:
            self._done = True
            self._connection.finished(self._reusable)

    def read_some(self) -> bytes:
        """Whatever has arrived, at least one byte; b"" at the end of the body."""
        if self._done:
            return b""
        if self._chunked and self._left == 0 and not self._next_chunk():
            return b""
        wanted = READ_BYTES if self._left is None else min(READ_BYTES, self._left)
        data = self._file.read1(wanted)
        if not data:
            if self._left is None:
                self._finish()
                return b""
            raise Cut("the server closed the connection in the middle of an answer")
        if self._left is not None:
            self._left -= len(data)
            if self._left == 0:
                self._end_of_part()
        return data

    def read_into(self, view: memoryview) -> int:
        """As `read_some`, into the caller's buffer and, where it is large, without a copy."""
        if self._done:
            return 0
        if self._chunked and self._left == 0 and not self._next_chunk():
            return 0
        wanted = len(view) if self._left is None else min(len(view), self._left)
        n_bytes = self._file.readinto1(view[:wanted])
        if not n_bytes:
            if self._left is None:
                self._finish()
                return 0
            raise Cut("the server closed the connection in the middle of an answer")
        if self._left is not None:
            self._left -= n_bytes
            if self._left == 0:
                self._end_of_part()
        return n_bytes

    def _next_chunk(self) -> bool:
        self._left = self._number(self._line().split(b";")[0].strip().decode("latin-1"), 16)
        if self._left:
            return True
        while self._line():  # trailers
            pass
        self._finish()
        return False

    def _end_of_part(self) -> None:
        if not self._chunked:
            self._finish()
        elif self._line():
            raise Cut("the answer's chunks do not line up")

    def __iter__(self) -> Iterator[bytes]:
        while data := self.read_some():
            yield data

    def read(self) -> bytes:
        return b"".join(self)

    def lines(self) -> Iterator[bytes]:
        """Complete lines without their end, as they come; a cut last line is never given."""
        pending = b""
        for data in self:
            *whole, pending = (pending + data).split(b"\n")
            yield from whole
        if pending:
            yield pending

    def close(self) -> None:
        """Leave: an unread rest makes the connection useless, so it is closed too."""
        if not self._done:
            self._done = True
            self._connection.finished(False)


class Connection:
    """One socket to one endpoint. `finished` is called by the response it made."""

    def __init__(
        self, endpoint: Endpoint, context: ssl.SSLContext | None, connect_timeout_s: float
    ) -> None:
        self.endpoint = endpoint
        self.reusable = False
        self.is_busy = False
        self.on_idle: list[Connection] | None = None
        # A host given as bytes is not run through IDNA, which would be imported for nothing.
        host = endpoint.host.encode() if endpoint.host.isascii() else endpoint.host
        address: tuple[str, int] = (host, endpoint.port)  # type: ignore[assignment]
        sock = socket.create_connection(address, connect_timeout_s)
        try:
            # Requests are written in few pieces; waiting to fill a packet only adds delay.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                sock = context.wrap_socket(sock, server_hostname=endpoint.host)
            self._socket = sock
            self.file: io.BufferedReader = sock.makefile("rb")
        except BaseException:
            sock.close()
            raise

    @property
    def is_here(self) -> bool:
        """Whether the other end is on this machine."""
        from paddlecloud.wire import windows

        try:
            return windows.is_here(self._socket.getsockname()[0], self._socket.getpeername()[0])
        except OSError:
            return False

    def keep_little_on_the_way(self) -> None:
        """For connections that file bytes go through (wire/windows.py). Only hints."""
        from paddlecloud.wire import windows

        sock, size_bytes = self._socket, windows.WINDOW_BYTES
        try:
            if hasattr(socket, "TCP_NOTSENT_LOWAT"):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
            if sys.platform == "linux":
                info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, windows.TCP_INFO_BYTES)
                if windows.is_near(info):
                    # The first keeps the kernel from growing the second on its own.
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size_bytes)
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, size_bytes)
                if self.is_here:
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, windows.UNPACED)
        except OSError:
            pass

    def request(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | Iterable[bytes] = b"",
        *,
        timeout_s: float,
    ) -> Response:
        """Send one request and read the head of its answer.

        An iterable body needs a Content-Length among the headers. A server that answers early
        (too large, not allowed) and stops reading is still heard.
        """
        self.is_busy = True
        self._socket.settimeout(timeout_s)
        head = [f"{method} {self.endpoint.prefix}{target} HTTP/1.1"]
        head.append(f"Host: {self.endpoint.authority}")
        if isinstance(body, bytes) and (body or method in ("POST", "PUT")):
            head.append(f"Content-Length: {len(body)}")
        head += [f"{name}: {_clean(value)}" for name, value in headers.items()]
        start = ("\r\n".join(head) + "\r\n\r\n").encode("latin-1")
        broken: OSError | None = None
        try:
            if isinstance(body, bytes):
                self._socket.sendall(start + body)
            else:
                self._socket.sendall(start)
                for piece in body:
                    self._socket.sendall(piece)
        except (BrokenPipeError, ConnectionResetError) as error:
            broken = error
        try:
            response = Response(self, method)
        except OSError as error:
            raise broken or error from None
        if broken is not None:
            response._reusable = False
        return response

    def stall_after(self, timeout_s: float) -> None:
        """From now on no single read or write may take longer."""
        self._socket.settimeout(timeout_s)

    def has_answer(self) -> bool:
        """Whether the server has begun to answer (or left) while a body is still being sent."""
        if self.endpoint.tls:
            return False  # what can be read may be a session ticket
        if not hasattr(select, "poll"):
            return bool(select.select([self._socket], [], [], 0)[0])
        poll = select.poll()  # select() knows only small descriptors
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def abort(self) -> None:
        """Cut it at once, from any thread: whoever reads or writes there gets an error."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def finished(self, is_reusable: bool) -> None:
        self.is_busy = False
        if is_reusable and self.on_idle is not None:
            self.on_idle.append(self)
        else:
            self.close()

    def close(self) -> None:
        self.file.close()
        self._socket.close()


def _clean(value: str) -> str:
    """A header value cannot start another header."""
    if "\r" in value or "\n" in value:
        raise ValueError("a header value cannot hold a line break")
    return value
