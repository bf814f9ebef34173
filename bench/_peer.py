"""FastAPI + SQLAlchemy, to compare with: its environment, its data, its process.

The environment is made once, in the user's cache, at the versions of constraints-peers.txt; the
index is whatever the machine's pip is configured to use.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from _children import end, free_port, wait_for_port
from _report import CannotMeasure

_HERE = Path(__file__).parent
_PINS = _HERE / "constraints-peers.txt"
_APP = _HERE / "peers"
_START_TIMEOUT_S = 30
_PIP_INSTALL = "-m pip -q --disable-pip-version-check install".split()
_UVICORN = "-m uvicorn --host 127.0.0.1 --no-access-log --log-level warning".split()


def _venv() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(cache) / "paddlecloud" / "bench" / "fastapi-venv"


def python() -> Path:
    """The peer's interpreter; installs the peer first if it is not there as pinned."""
    venv = _venv()
    program = venv / "bin" / "python"
    stamp = venv / "installed-as-pinned"
    wanted = hashlib.sha256(_PINS.read_bytes() + sys.version.encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted and program.exists():
        return program
    print("bench: installing FastAPI + SQLAlchemy to compare with", file=sys.stderr)
    names = [
        line.partition("==")[0]
        for line in _PINS.read_text().splitlines()
        if line and not line.startswith("#")
    ]
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(venv)],
        [str(program), *_PIP_INSTALL, "-c", str(_PINS), *names],
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise CannotMeasure(f"the peer could not be installed: {done.stderr.strip()[-400:]}")
    stamp.write_text(wanted)
    return program


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
