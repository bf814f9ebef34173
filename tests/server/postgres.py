"""A PostgreSQL cluster of the tests' own: in a temporary folder, on a Unix socket, ended with them.

`Cluster` is started once per run by the fixture in conftest.py; every server of a test gets a
database of its own in it. It never touches a cluster the machine already has. PostgreSQL refuses
to run as root, so for root it runs as `nobody`.
"""

from __future__ import annotations

import itertools
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.patience import PATIENCE_S
from tests.possible import postgres_programs

_USER = "paddle"
_QUICK = ("fsync=off", "full_page_writes=off", "shared_buffers=16MB", "max_connections=200")


class Cluster:
    """`start`, `new_database` as often as needed, `stop`."""

    def __init__(self) -> None:
        # Not below pytest's own folders: those are closed to other users.
        self.folder = Path(tempfile.mkdtemp(prefix="paddlecloud-pg-"))
        self.password = secrets.token_hex(12)
        self._data = self.folder / "data"
        self._numbers = itertools.count(1)
        self._as_user: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._as_user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)

    def _run(self, program: str, *arguments: str) -> None:
        path = postgres_programs()[program]
        log = self.folder / f"{program}.log"
        with log.open("ab") as output:
            done = subprocess.run(
                [path, *arguments],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=PATIENCE_S,
                **self._as_user,
            )
        assert done.returncode == 0, log.read_text()

    def start(self) -> Cluster:
        if not self._data.exists():
            secret = self.folder / "password"
            secret.write_text(self.password)
            secret.chmod(0o644)  # the folder itself is closed
            self._run(
                *("initdb", "-D", str(self._data), "-U", _USER, "-A", "scram-sha-256"),
                *("--pwfile", str(secret), "-E", "UTF8", "--locale=C", "--no-sync"),
            )
        settings = (f"-c {setting}" for setting in _QUICK)
        options = f"-c listen_addresses= -k {self.folder} {' '.join(settings)}"
        log = str(self.folder / "postgres.log")
        self._run("pg_ctl", "start", "-w", "-D", str(self._data), "-l", log, "-o", options)
        return self

    @property
    def pid(self) -> int:
        return int((self._data / "postmaster.pid").read_text().splitlines()[0])

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "stop", "-w", "-D", str(self._data), "-m", mode)

    def remove(self) -> None:
        try:
            self.stop()
        finally:
            if (self._data / "postmaster.pid").exists():
                os.kill(self.pid, signal.SIGQUIT)
            shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, *, password: str = "") -> str:
        """As an administrator would write it; the socket's folder is its host."""
        return (
            f"postgres://{_USER}:{password or self.password}@/{database}"
            f"?host={quote(str(self.folder), safe='')}"
        )

    def new_database(self) -> str:
        """The address of a new, empty database."""
        name = f"paddle{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def execute(self, statement: str, database: str = "postgres") -> None:
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement)
