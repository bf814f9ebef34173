"""A real server process for tests, and a small client that hides nothing.

`Running` starts `python -m paddlecloud.server` on a state directory and any free port; it can be
stopped, killed and started again. `Caller` sends requests as somebody and keeps whole answers.
"""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddlecloud.wire import records, snapshots
from paddlecloud.wire.digests import leaf_hash
from tests.patience import PATIENCE_S

START_TIMEOUT_S = PATIENCE_S


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Caller:
    """Requests to one server under one identity; a new connection for each."""

    def __init__(self, port: int, authorization: str = "") -> None:
        self.port = port
        self._authorization = authorization

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def headers(self, more: dict[str, str] | None = None) -> dict[str, str]:
        own = {"Authorization": self._authorization} if self._authorization else {}
        return own | (more or {})

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = self.connect()
        try:
            connection.request(method, path, data, self.headers(named))
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.call("POST", path, body, **headers)

    def lines(self, path: str) -> Iterator[Any]:
        """The JSON lines of a stream as they come; None for a blank one."""
        connection = self.connect()
        try:
            connection.request("GET", path, headers=self.headers())
            response = connection.getresponse()
            assert response.status == 200, response.read()
            while line := response.readline():
                yield json.loads(line) if line.strip() else None
        finally:
            connection.close()

    def upload(self, files: dict[str, bytes]) -> str:
        """A package of these files, pinned; its digest."""
        rows = [
            snapshots.File(path, len(data), False, digest_of(data)) for path, data in files.items()
        ]
        wish = snapshots.whole(snapshots.make(rows))
        answer = self.post("/api/v2/pfs/snapshots", wish.to_json())
        assert answer.status == 200, answer.body
        missing = [data for data in files.values() if digest_of(data) in answer.json["missing"]]
        if missing:
            size_bytes = sum(map(len, missing))
            path = f"/api/v2/pfs/blobs?files={len(missing)}&bytes={size_bytes}"
            sent = self.post(path, _records(missing))
            assert (sent.status, sent.json["refused"]) == (200, []), sent.body
            answer = self.post("/api/v2/pfs/snapshots", wish.to_json())
        assert (answer.status, answer.json["missing"]) == (200, []), answer.body
        return wish.digest

    def submit(self, name: str, entry: str = "fake", **more: Any) -> dict[str, Any]:
        """A job of one trainer from a small package."""
        body = {
            "name": name,
            "entry": entry,
            "mode": "single",
            "package_digest": self.upload({"train.py": b"print('hello')\n"}),
        }
        answer = self.post("/api/v2/jobs", body | more)
        assert answer.status == 201, answer.body
        job: dict[str, Any] = answer.json
        return job

    def wait(self, ref: str, goal: str = "end", timeout_s: float = 20) -> dict[str, Any]:
        answer = self.get(f"/api/v2/jobs/{ref}/wait?for={goal}&timeout_s={timeout_s}")
        assert answer.status == 200, answer.body
        job: dict[str, Any] = answer.json
        return job


def digest_of(data: bytes) -> str:
    whole = leaf_hash()
    whole.update(data)
    return whole.hexdigest()


def _records(contents: list[bytes]) -> bytes:
    """A stream of blobs, as docs/guides/pfs-protocol.md has it."""
    stream = records.MAGIC
    for data in contents:
        digest = digest_of(data)
        stream += records.encode_head(records.Kind.FILE, digest, len(data))
        stream += data + bytes.fromhex(digest)
    return stream + records.END


class Running:
    """One state directory and the server on it."""

    def __init__(self, state: Path, engine: str = "fake", **env: str) -> None:
        self.state = state
        self.engine = engine
        self.env = env
        self.program = ("-m", "paddlecloud.server")
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def log(self) -> Path:
        return self.state.with_suffix(".log")

    def launch(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [
                *(sys.executable, *self.program),
                *("--state", str(self.state), "--port", str(self.port)),
                *("--engine", self.engine, "--bootstrap-account", "root"),
                *arguments,
            ],
            env=os.environ | self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.log.open("ab"),
        )

    def start(self) -> Running:
        (self.state / "run" / "server.json").unlink(missing_ok=True)
        self.process = self.launch()
        deadline = time.monotonic() + START_TIMEOUT_S
        run_file = self.state / "run" / "server.json"
        while not run_file.exists():
            ended = self.process.poll()
            assert ended is None, f"the server ended {ended}: {self.log.read_text()}"
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.01)  # a file that appears has no event to wait for here
        self.port = int(json.loads(run_file.read_text())["endpoint"].rsplit(":", 1)[1])
        return self

    def stop(self) -> int:
        """SIGTERM; how it ended."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def kill_9(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(PATIENCE_S)

    @property
    def admin_token(self) -> str:
        return (self.state / "secrets" / "bootstrap-token").read_text()

    def caller(self, token: str) -> Caller:
        return Caller(self.port, f"Token {token}")

    @property
    def admin(self) -> Caller:
        return self.caller(self.admin_token)

    @property
    def anonymous(self) -> Caller:
        return Caller(self.port)

    def account(self, name: str, **body: Any) -> Caller:
        """A new account and somebody who uses it."""
        answer = self.admin.post("/api/v2/accounts", {"name": name, **body})
        assert answer.status == 201, answer.body
        token = self.admin.post(f"/api/v2/accounts/{name}/token").json["token"]
        return self.caller(token)


def is_readable(sock: Any, within_s: float) -> bool:
    return bool(select.select([sock], [], [], within_s)[0])
