"""A file service in a process of its own, and a cloud server that knows nothing but tokens."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S

TOKENS = {
    "Token alice": {"name": "alice", "id": 1, "admin": False},
    "Token bob": {"name": "bob", "id": 2, "admin": False},
    "Token small": {
        "name": "small",
        "id": 3,
        "admin": False,
        "storage": {"bytes": 100_000, "files": 10},
    },
}


class FakeCloud:
    """Answers whoami from a table that a test may change."""

    def __init__(self) -> None:
        self.tokens: dict[str, dict[str, Any]] = dict(TOKENS)
        self.asked = 0
        self.is_old = False
        cloud = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                cloud.asked += 1
                facts = cloud.tokens.get(self.headers.get("Authorization", ""))
                status, body = 200, facts
                if cloud.is_old and self.path != "/api/v1/token2user/":
                    status, body = 404, {}
                elif facts is None:
                    status, body = 401, {}
                elif cloud.is_old:
                    body = {"user": facts["name"]}
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Running:
    """One process. `start` again on the same root continues where it was."""

    root: Path
    cloud_url: str
    extra: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    port: int = 0
    facts: dict[str, Any] = field(default_factory=dict)

    def start(self) -> Running:
        run_file = self.root.parent / f"{self.root.name}.run"
        run_file.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "paddlecloud.pfs.serving"),
                *("--root", str(self.root), "--server", self.cloud_url, "--port", "0"),
                *("--run-file", str(run_file), "--datacenter", "local", *self.extra),
            ],
            stderr=(self.root.parent / "log").open("ab"),
        )
        deadline = time.monotonic() + PATIENCE_S
        while not run_file.exists():
            assert self.process.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            time.sleep(0.005)
        self.facts = json.loads(run_file.read_text())
        self.port = self.facts["port"]
        return self

    @property
    def log(self) -> str:
        return (self.root.parent / "log").read_text()

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def stop(self, number: int = signal.SIGTERM) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def memory_bytes(self) -> int:
        for line in Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no Pss")

    def home(self, user: str = "alice") -> Path:
        return self.root / "home" / user

    def as_user(self, user: str = "alice") -> Caller:
        return Caller(self, {"Authorization": f"Token {user}"})


@dataclass
class Caller:
    server: Running
    headers: dict[str, str]

    def call(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        if isinstance(body, dict | list):
            body = json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, body, {**self.headers, **(headers or {})})
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.call("GET", path, None, {k.replace("_", "-"): v for k, v in headers.items()})

    def post(self, path: str, body: Any = None) -> Answer:
        return self.call("POST", path, body)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE_S)

    def raw(self, data: bytes) -> bytes:
        """Send bytes as they are; everything that comes back until the end."""
        with self.connect() as sock:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            return read_all(sock)


def read_all(sock: socket.socket) -> bytes:
    answer = b""
    while data := sock.recv(1 << 16):
        answer += data
    return answer
