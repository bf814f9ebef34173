"""FastAPI + SQLAlchemy, to compare with: its environment, its data, its process.

`_environments.py` makes the environment.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import _environments
from _children import end, free_port, wait_for_port
from _report import CannotMeasure

_APP = Path(__file__).parent / "peers"
_PACKAGES = ("fastapi", "httptools", "sqlalchemy", "uvicorn", "uvloop")
_START_TIMEOUT_S = 30
_UVICORN = "-m uvicorn --host 127.0.0.1 --no-access-log --log-level warning".split()


def python() -> Path:
    """The peer's interpreter; installs the peer first if it is not there as pinned."""
    return _environments.python("fastapi", _PACKAGES)


def seed(home: Path, token: str, jobs: Sequence[Mapping[str, object]]) -> Path:
    """A database with these jobs (the columns of the peer's table as keys) and this token."""
    database = home / "peer.db"
    make = "import fastapi_jobs; fastapi_jobs.make_tables()"
    subprocess.run([str(python()), "-c", make], env=_env(database), check=True)
    with sqlite3.connect(database) as rows:
        rows.execute("INSERT INTO account VALUES (1, 'bench', 1)")
        rows.execute(
            "INSERT INTO token VALUES (?, 1)", (hashlib.sha256(token.encode()).hexdigest(),)
        )
        columns = list(jobs[0])
        rows.executemany(
            f"INSERT INTO job ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
            [tuple(job[column] for column in columns) for job in jobs],
        )
        rows.execute("ANALYZE")
    rows.close()
    return database


def _env(database: Path) -> dict[str, str]:
    return {**os.environ, "PEER_DATABASE": str(database), "PYTHONPATH": str(_APP)}


@contextmanager
def running(app: str, database: Path) -> Iterator[tuple[int, int]]:
    """A module of bench/peers as a server on this database; gives its port and pid."""
    log_path = database.with_name(f"{app}.log")
    port = free_port()
    log = log_path.open("wb")
    peer = subprocess.Popen(
        [str(python()), *_UVICORN, "--port", str(port), f"{app}:app"],
        env=_env(database),
        stdout=log,
        stderr=log,
    )
    try:
        if not wait_for_port(port, timeout_s=_START_TIMEOUT_S):
            raise CannotMeasure(f"the peer did not start: {log_path.read_text()[-400:]}")
        yield port, peer.pid
    finally:
        end(peer.pid)
        peer.wait()
        log.close()
