"""The file server as a child of this process: started with it, started again, ended with it.

Its listening socket is made here (`listeners`) and inherited, so the port is known before the child
is ready and stays the same when the child is started again; whoever connects in between waits a
moment. A file server that runs elsewhere (PADDLECLOUD_PFS_URL) is only pointed at. Started by
`__main__`, asked by `status` and by the relay.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

from paddlecloud.core.errors import Conflict
from paddlecloud.server import certificates, listeners
from paddlecloud.server.configuration import Configuration
from paddlecloud.server.relaying import Header, Target, not_there
from paddlecloud.server.secretfiles import secret_text, secrets_dir
from paddlecloud.wire.shapes import FileServiceShape

log = logging.getLogger(__name__)

SECRET = "pfs-relay"
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 10.0
_LIVED_WELL_S = 30.0  # a child that lived so long is started again at once
_STOP_WITHIN_S = 3.0
_PORT_PATIENCE_S = 5.0


class FileServer:
    """What clients and the relay are told; `start` makes it true."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.url = configuration.files.url
        self.port = 0
        self.state = "outside" if self.url else "off"
        self.secret = ""
        if configuration.files.knows_secret:
            self.secret = secret_text(configuration.storage.state_dir, SECRET)

    def start(self, server_url: str, tls: certificates.ServerFiles | None) -> None:
        """Begin; returns at once."""

    def stop(self) -> None:
        """End what was started."""

    def describe(self) -> FileServiceShape:
        return {"port": self.port, "url": self.url, "state": self.state, "promises": ""}

    def target(self) -> Target:
        """Where the relay finds it."""
        if not self.url:
            raise not_there()
        place = urlsplit(self.url)
        is_tls = place.scheme == "https"
        return Target(
            host=place.hostname or "",
            port=place.port or (443 if is_tls else 80),
            tls=ssl.create_default_context() if is_tls else None,
            prefix=place.path.rstrip("/"),
        )

    def proof(self, authorization: str, facts: bytes) -> list[Header]:
        """What tells it who calls: our word, if it can know it for ours, else the own token."""
        if self.secret:
            return [
                (b"pfs-relay", self.secret.encode()),
                (b"pfs-caller", base64.b64encode(facts)),
            ]
        return [(b"authorization", authorization.encode("latin-1"))] if authorization else []


class ChildFileServer(FileServer):
    def __init__(self, configuration: Configuration) -> None:
        super().__init__(configuration)
        self.secret = secret_text(configuration.storage.state_dir, SECRET)
        self._run_file = configuration.storage.state_dir / "run" / "pfsserver.json"
        self._is_stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._tls: ssl.SSLContext | None = None
        self._socket = self._listen()
        self.port = self._socket.getsockname()[1]

    def _listen(self) -> socket.socket:
        host, port = self.configuration.listening.host, self.configuration.files.port
        try:
            # The child of a server that was killed has it until it is done with its requests.
            return listeners.listen("files", host, port, patience_s=_PORT_PATIENCE_S)
        except OSError as error:
            raise Conflict(
                f"the file server cannot listen on {host}:{port}: {error.strerror}",
                field="PADDLECLOUD_PFS_PORT",
                hint="another program has it; choose another, or 0 for any free one",
            ) from None

    # --- the child -------------------------------------------------------------------------

    def start(self, server_url: str, tls: certificates.ServerFiles | None) -> None:
        if tls is not None:
            self._tls = ssl.create_default_context(cafile=str(tls.ca))
        command = self._command(server_url, tls)
        # The thread lives as long as the process: the kernel ends the child when it does not.
        self._thread = threading.Thread(
            target=self._keep, args=(command,), name="file-server", daemon=True
        )
        self._thread.start()

    def _command(self, server_url: str, tls: certificates.ServerFiles | None) -> list[str]:
        state_dir = self.configuration.storage.state_dir
        words = [sys.executable, "-m", "paddlecloud.pfs.serving"]
        words += ["--root", str(state_dir / "pfs"), "--server", server_url]
        words += ["--listen-fd", str(self._socket.fileno()), "--parent", str(os.getpid())]
        words += ["--run-file", str(self._run_file)]
        words += ["--relay-secret", str(secrets_dir(state_dir) / SECRET)]
        words += ["--datacenter", self.configuration.engines.cluster]
        if tls is not None:
            words += ["--tls-cert", str(tls.cert), "--tls-key", str(tls.key)]
            words += ["--server-ca", str(tls.ca)]
        return words

    def _keep(self, command: list[str]) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._is_stopping.is_set():
            began_s = time.monotonic()
            try:
                ended = self._run_once(command)
            except OSError as error:
                ended = str(error)
            if self._is_stopping.is_set():
                return
            self.state = "restarting"
            if time.monotonic() - began_s >= _LIVED_WELL_S:
                pause_s = _FIRST_PAUSE_S
            log.error("the file server ended (%s); started again in %g s", ended, pause_s)
            self._is_stopping.wait(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _run_once(self, command: list[str]) -> str:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=(self._socket.fileno(),)
        )
        self._process = process
        self.state = "running"
        if self._is_stopping.is_set():
            process.terminate()
        code = process.wait()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def stop(self) -> None:
        self._is_stopping.set()
        self.state = "stopping"
        process, thread = self._process, self._thread
        if process is not None and thread is not None:
            process.terminate()
            thread.join(_STOP_WITHIN_S)
            if thread.is_alive():
                process.kill()
                thread.join(_STOP_WITHIN_S)
        self._socket.close()

    def describe(self) -> FileServiceShape:
        """With what it wrote down about itself, if the one that runs did."""
        facts = super().describe()
        written = self._written()
        if written is not None:
            facts["promises"] = str(written.get("promises", ""))
        elif facts["state"] == "running":
            facts["state"] = "starting"
        return facts

    def _written(self) -> dict[str, object] | None:
        try:
            facts: dict[str, object] = json.loads(self._run_file.read_bytes())
        except (OSError, ValueError):
            return None
        return facts if self._process and facts.get("pid") == self._process.pid else None

    # --- the relay -------------------------------------------------------------------------

    def target(self) -> Target:
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(
            self.configuration.listening.host, self.configuration.listening.host
        )
        return Target(host=host, port=self.port, tls=self._tls)


def make(configuration: Configuration) -> FileServer:
    return FileServer(configuration) if configuration.files.url else ChildFileServer(configuration)
