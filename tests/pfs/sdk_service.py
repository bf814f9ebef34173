"""A real file service process with a scripted cloud server beside it, and clients of both.

The cloud server says who calls and where the data port is; what a test wants between the two (a
fault proxy) is put there by changing what the status says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from paddlecloud.sdk import Client, Profile
from paddlecloud.testing.ports import free_port
from tests.patience import PATIENCE_S
from tests.scripted_server import Answer, Request, ScriptedServer

HOME = "/pfs/local/home/alice"
TOKEN = "a-token"
START_S = PATIENCE_S


class Service:
    """`stop` and `start` again as often as a test likes; the files stay."""

    def __init__(self, folder: Path, *, syncs: bool = False) -> None:
        self.root = folder / "root"
        self.root.mkdir(exist_ok=True)
        self.cloud = ScriptedServer()
        self.cloud.routes["GET /api/v2/whoami"] = self._whoami
        self.cloud.routes["GET /api/v2/status"] = lambda request: Answer(
            {"pfs": {"port": self.told_port or self.port, "url": ""}}
        )
        self.storage: dict[str, int | None] = {"bytes": None, "files": None}
        self.told_port = 0  # instead of the true one
        self.port = free_port()  # the same after a restart
        self._run_file = folder / "run.json"
        self._syncs = syncs
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder / "service.log"
        self.clients: list[Client] = []
        self.start()

    def _whoami(self, request: Request) -> Answer:
        if request.headers.get("authorization") != f"Token {TOKEN}":
            body = {"code": "not_logged_in", "message": "no", "hint": "", "field": ""}
            return Answer(body, 401)
        return Answer(
            {
                "name": "alice",
                "admin": False,
                "id": 7,
                "uid": None,
                "clusters": ["local"],
                "storage": self.storage,
                "job_id": None,
            }
        )

    def start(self) -> None:
        self._run_file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "paddlecloud.pfs.serving", "--root", str(self.root)]
        command += ["--server", self.cloud.url, "--run-file", str(self._run_file)]
        command += ["--port", str(self.port), "--parent", str(os.getpid())]
        command += [] if self._syncs else ["--no-sync"]
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + START_S
        while not self._run_file.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the file service did not start:\n{self._log.read_text()}")
            time.sleep(0.02)
        self.port = int(json.loads(self._run_file.read_text())["port"])

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self, *, hard: bool = False) -> None:
        if self._process is not None:
            if hard:
                self._process.kill()
            else:
                self._process.terminate()
            self._process.wait(PATIENCE_S)
            self._process = None

    def client(self) -> Client:
        client = Client(profile=Profile("local", self.cloud.url, token=TOKEN))
        self.clients.append(client)
        return client

    def stored(self, name: str = "") -> Path:
        """Where the service keeps a file of alice's."""
        return self.root / "home" / "alice" / name

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.stop()
        self.cloud.close()
