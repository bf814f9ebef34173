"""The listening part of the process: uvicorn over a socket of ours, and a quick, polite stop."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

import paddlecloud
from paddlecloud import clock
from paddlecloud.core.errors import Conflict
from paddlecloud.server import certificates, listeners, starting, supervision
from paddlecloud.server.configuration import Configuration
from paddlecloud.server.connections import (
    Connections,
    LimitedProtocol,
    Listener,
    within_descriptors,
)
from paddlecloud.server.front import Front
from paddlecloud.server.process import Process
from paddlecloud.server.table import TABLE

_STOP_WITHIN_S = 3
_TICKS_PER_SWEEP = 5  # uvicorn ticks every 0.1 s


def listen(configuration: Configuration) -> socket.socket:
    """The socket. A busy port is an answer, not a traceback."""
    where = configuration.listening
    try:
        return listeners.listen("api", where.host, where.port)
    except OSError as error:
        raise Conflict(
            f"cannot listen on {where.host}:{where.port}: {error.strerror}",
            field="--port",
            hint=f"another program has it; try --port {where.port + 1}",
        ) from None


def own_url(configuration: Configuration, sock: socket.socket) -> str:
    """How this machine itself reaches the server."""
    where = configuration.listening
    port = sock.getsockname()[1]
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(where.host, where.host)
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"{'https' if where.tls else 'http'}://{host}:{port}"


def endpoint_of(configuration: Configuration, sock: socket.socket) -> str:
    return configuration.listening.public_url or own_url(configuration, sock)


class _Server(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, process: Process, run_file: Path, connections: Connections
    ) -> None:
        super().__init__(config)
        self._process = process
        self._run_file = run_file
        self._connections = connections

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_PER_SWEEP == 0:
            self._connections.sweep()
        return await super().on_tick(counter)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._process.hub.attach(asyncio.get_running_loop())
        await super().startup(sockets)
        if self.started:
            starting.write_run_file(
                self._run_file,
                {
                    "pid": os.getpid(),
                    "supervisor_pid": supervision.read(self._run_file.parent).pid,
                    "port": self.servers[0].sockets[0].getsockname()[1],
                    "start_time": clock.now(),
                    "endpoint": self._process.endpoint,
                    "version": paddlecloud.__version__,
                    "engine": self._process.engines.default.kind,
                },
            )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn's, but the signal is not raised again: there is more to do after it."""
        handled = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, self.handle_exit) for number in handled}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Held requests end by themselves once they look; then the connections close.
        self._process.is_stopping = True
        self._process.hub.wake_all_soon()
        super().handle_exit(sig, frame)


def tls_files(configuration: Configuration) -> certificates.ServerFiles | None:
    """Certificate and key of this server and of its file server; None without TLS."""
    where = configuration.listening
    if not where.tls:
        return None
    own = {"localhost", "127.0.0.1", "::1", socket.gethostname(), *where.allowed_hosts}
    if where.host not in ("0.0.0.0", "::"):
        own.add(where.host)
    return certificates.server_files(configuration.storage.state_dir, tuple(sorted(own)))


def _tls(configuration: Configuration) -> dict[str, Any]:
    files = tls_files(configuration)
    if files is None:
        return {}
    return {
        "ssl_certfile": str(files.cert),
        "ssl_keyfile": str(files.key),
        "ssl_ca_certs": str(files.ca),
        # Optional: a certificate is one way to log in, tokens are another.
        "ssl_cert_reqs": ssl.CERT_OPTIONAL,
    }


def serve(configuration: Configuration, process: Process, sock: socket.socket) -> None:
    """Answer until SIGTERM or SIGINT."""
    run_file = configuration.storage.state_dir / "run" / "server.json"
    connections = Connections(within_descriptors(configuration.connections))
    config = uvicorn.Config(
        Front(process, TABLE),
        loop="asyncio",
        http=partial(LimitedProtocol, connections),  # type: ignore[arg-type]  # called, no more
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        # On every answer, whoever makes it: nothing is taken for a page because of its bytes.
        headers=[("x-content-type-options", "nosniff")],
        proxy_headers=configuration.listening.behind_tls_proxy,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=_STOP_WITHIN_S,
        backlog=1024,
        **_tls(configuration),
    )
    try:
        _Server(config, process, run_file, connections).run([Listener(sock, connections)])
    finally:
        run_file.unlink(missing_ok=True)
