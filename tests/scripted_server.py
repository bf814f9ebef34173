"""A server that does exactly what a test says, over real sockets.

`ScriptedServer` speaks HTTP and answers from a table of routes; every request it got is kept for
the test to look at. `RawServer` writes the bytes a test gives it and cuts where it is told to.
`Proxy` passes on to another server until it is told to cut. None knows anything about PaddleCloud.
"""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.patience import PATIENCE_S


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Answer:
    body: Any = None  # JSON, or bytes sent as they are
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


Handler = Callable[[Request], Answer] | Answer


class ScriptedServer:
    """Routes are "METHOD /path"; a list of answers is used up one by one, the last one stays."""

    def __init__(self) -> None:
        self.routes: dict[str, Handler | list[Handler]] = {}
        self.requests: list[Request] = []
        server = self

        class _Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _serve(self) -> None:
                parts = urlsplit(self.path)
                size = int(self.headers.get("Content-Length") or 0)
                request = Request(
                    self.command,
                    parts.path,
                    dict(parse_qsl(parts.query)),
                    {name.lower(): value for name, value in self.headers.items()},
                    self.rfile.read(size),
                )
                server.requests.append(request)
                answer = server.answer(request)
                body = answer.body
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                if body is None:
                    data = b""
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _serve  # noqa: N815

            def log_message(self, *args: object) -> None:
                pass

        class _Listening(ThreadingHTTPServer):
            def handle_error(self, request: object, client_address: object) -> None:
                if not isinstance(sys.exc_info()[1], ConnectionError):  # a client may leave
                    super().handle_error(request, client_address)  # type: ignore[arg-type]

        self._http = _Listening(("127.0.0.1", 0), _Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.002}, daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def answer(self, request: Request) -> Answer:
        found = self.routes.get(f"{request.method} {request.path}")
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        if found is None:
            message = f"no job named {request.path.rsplit('/', 1)[-1]}"
            return Answer({"code": "not_found", "message": message, "hint": "", "field": ""}, 404)
        return found if isinstance(found, Answer) else found(request)

    def asked(self, method: str, path: str) -> list[Request]:
        return [r for r in self.requests if (r.method, r.path) == (method, path)]

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


class RawServer:
    """Each connection gets the next script: bytes to write after the request's head, then a cut."""

    def __init__(self, *scripts: bytes) -> None:
        self.heads: list[bytes] = []
        self._scripts = list(scripts)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for script in self._scripts:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                self.heads.append(_read_request(connection))
                connection.sendall(script)
        self._socket.close()

    def close(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a waiting accept
        except OSError:
            pass
        self._socket.close()
        self._thread.join(PATIENCE_S)


def _read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return data
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            while len(body) < int(value):
                body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


class Proxy:
    """Passes connections on to a port of this machine; `cut` ends all that stand now."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._standing: list[socket.socket] = []
        self.passed = threading.Event()  # something came from the server since the last cut
        self.mends = threading.Event()  # connections made while it is clear wait for it
        self.mends.set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self.mends.wait(PATIENCE_S)
            far = socket.create_connection(("127.0.0.1", self._target))
            self._standing += [near, far]
            for source, sink, passed in ((near, far, None), (far, near, self.passed)):
                thread = threading.Thread(target=_pass, args=(source, sink, passed), daemon=True)
                thread.start()

    def cut(self) -> None:
        self.passed.clear()
        while self._standing:
            end = self._standing.pop()
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        self._listener.close()
        self.cut()


def _pass(source: socket.socket, sink: socket.socket, passed: threading.Event | None) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
            if passed is not None:
                passed.set()
