"""`/healthz`, `/readyz` and `/metrics` of the operator, on a port of its own.

Healthy is a process that answers; ready is one that leads and has its copies whole. Only GET is
answered, and nothing of a job is shown.
"""

from __future__ import annotations

import logging
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PREFIX = "paddlecloud_operator_"

_log = logging.getLogger("paddlecloud.controller")


def metrics_text(figures: Mapping[str, float]) -> str:
    """In the text form Prometheus reads."""
    lines = []
    for name, value in figures.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# TYPE {PREFIX}{name} {kind}", f"{PREFIX}{name} {value:g}"]
    return "\n".join(lines) + "\n"


class _Server(ThreadingHTTPServer):
    """What goes wrong is a row of the log; the standard library would print a traceback."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        error = sys.exception()
        if not isinstance(error, OSError):  # a prober that hangs up, or that came over TLS
            _log.error("a request to the port for probes failed", exc_info=error)


class _BothFamilies(_Server):
    """Every address of this machine, of IPv4 and of IPv6."""

    address_family = socket.AF_INET6

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


class _OnlyIPv6(_Server):
    address_family = socket.AF_INET6


def _server(host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> _Server:
    if host:
        kind = _OnlyIPv6 if ":" in host else _Server
        return kind((host, port), handler)
    if socket.has_dualstack_ipv6():
        return _BothFamilies(("::", port), handler)
    return _Server(("0.0.0.0", port), handler)


class Listener:
    def __init__(
        self,
        host: str,
        port: int,
        is_ready: Callable[[], bool],
        figures: Callable[[], Mapping[str, float]],
    ) -> None:
        """Without a `host` on every address: the kubelet asks by the pod's, of either family."""

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 10

            def do_GET(self) -> None:
                if self.path == "/healthz":
                    self._answer(200, "ok\n")
                elif self.path == "/readyz":
                    ready = is_ready()
                    self._answer(200 if ready else 503, "ok\n" if ready else "not yet\n")
                elif self.path == "/metrics":
                    self._answer(200, metrics_text(figures()))
                else:
                    self._answer(404, "there are /healthz, /readyz and /metrics\n")

            def _answer(self, status: int, text: str) -> None:
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """A probe every few seconds is not news."""

        self._server = _server(host, port, Handler)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="listener", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
