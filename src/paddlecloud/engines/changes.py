"""What an engine has to tell, kept in its SQLite file: the log that `Engine.watch` reads.

The engine owns the connection and its transactions and writes here inside them; watchers read and
wait. Cursors grow strictly and are never used again, the epoch names this memory, and an equal
event of one run is told once. Used by the embedded engine and the one for Kubernetes.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

from paddlecloud import clock
from paddlecloud.core.actions import Event
from paddlecloud.core.status_json import (
    event_from_json,
    event_to_json,
    replica_from_json,
    status_from_json,
)
from paddlecloud.engines.protocols import Change, History

# How many told changes are kept behind the slowest watcher's cursor.
_KEEP_CHANGES = 20_000
_BUSY_TIMEOUT_S = 10

_SCHEMA = """
create table if not exists changes (
  cursor integer primary key autoincrement, job_id text not null, run integer not null,
  at real not null, status text, replicas text, granted integer not null default 0,
  event text, told text);
create unique index if not exists changes_told on changes (job_id, run, told);
create table if not exists facts (name text primary key, value text not null);
"""


def dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


class ChangeLog:
    """A SQLite file with the two tables of this module and those of its owner.

    Survives kill -9 at any moment (WAL; what is written in one `transaction` is there together).
    """

    def __init__(self, path: Path, schema: str) -> None:
        self.lock = threading.Lock()
        self._told = threading.Condition()
        # It holds the environments of jobs. Ours alone from the first byte, whatever the umask;
        # SQLite's side files take the same mode.
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        os.fchmod(fd, 0o600)
        os.close(fd)
        self.db = sqlite3.connect(
            path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        self.db.execute("pragma journal_mode=wal")
        self.db.execute("pragma synchronous=normal")
        self.db.executescript(_SCHEMA + schema)
        self.db.execute("insert or ignore into facts values ('epoch', ?)", (token_hex(16),))

    def close(self) -> None:
        with self.lock:
            self.db.close()
        self.notify()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        with self.lock:
            self.db.execute("begin immediate")
            try:
                yield self.db
            except BaseException:
                self.db.execute("rollback")
                raise
            self.db.execute("commit")

    # --- telling, inside a transaction -------------------------------------------------------

    def tell_status(
        self, job_id: str, run: int, status_text: str, replicas_text: str, granted: int
    ) -> None:
        self.db.execute(
            "insert into changes (job_id, run, at, status, replicas, granted)"
            " values (?, ?, ?, ?, ?, ?)",
            (job_id, run, clock.now(), status_text, replicas_text, granted),
        )

    def tell_events(self, job_id: str, run: int, events: Sequence[Event]) -> int:
        """How many of them are news."""
        count = 0
        for event in events:
            body = dumps(event_to_json(event))
            count += self.db.execute(
                "insert or ignore into changes (job_id, run, at, event, told)"
                " values (?, ?, ?, ?, ?)",
                (job_id, run, clock.now(), body, body),
            ).rowcount
        return count

    def forget(self, job_id: str) -> None:
        self.db.execute("delete from changes where job_id = ?", (job_id,))

    def notify(self) -> None:
        """After a transaction in which something was told."""
        with self._told:
            self._told.notify_all()

    # --- watching ----------------------------------------------------------------------------

    def changes(self, after: int, timeout_s: float, limit: int = 1000) -> list[Change]:
        """Changes past `after`; waits up to `timeout_s` when there are none."""
        deadline = time.monotonic() + timeout_s
        while True:
            with self._told:
                found = self._read(after, limit)
                left = deadline - time.monotonic()
                if found or left <= 0:
                    return found
                self._told.wait(left)

    def _read(self, after: int, limit: int) -> list[Change]:
        with self.lock:
            try:
                rows = self.db.execute(
                    "select cursor, job_id, run, at, status, replicas, granted, event"
                    " from changes where cursor > ? order by cursor limit ?",
                    (after, limit),
                ).fetchall()
                if after % 1000 == 0 and after > _KEEP_CHANGES:
                    self.db.execute(
                        "delete from changes where cursor <= ?", (after - _KEEP_CHANGES,)
                    )
            except sqlite3.ProgrammingError:  # closed under a waiting watcher
                return []
        return [
            Change(
                cursor=row[0],
                job_id=row[1],
                run=row[2],
                at=row[3],
                status=status_from_json(json.loads(row[4])) if row[4] else None,
                replicas=tuple(replica_from_json(r) for r in json.loads(row[5] or "[]")),
                trainers_granted=row[6],
                event=event_from_json(json.loads(row[7])) if row[7] else None,
            )
            for row in rows
        ]

    def history(self) -> History:
        with self.lock:
            epoch = self.db.execute("select value from facts where name = 'epoch'").fetchone()
            # The last one ever given: old changes are deleted, their cursors never used again.
            last = self.db.execute(
                "select seq from sqlite_sequence where name = 'changes'"
            ).fetchone()
        return History(epoch[0], last[0] if last else 0)
