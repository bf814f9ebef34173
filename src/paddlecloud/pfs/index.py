"""The digests of files whose bytes were read once: a cache, never the truth.

A row is believed only while inode, size, mtime and ctime are what they were when the bytes were
read, and it is only written when the times of this storage can tell a later change (`Times`, the
problem git calls racy). What times tell was tried on the device where the index lies, so it knows
nothing of files on another one. Each row has a checksum of its own, so a damaged database answers
nothing rather than something wrong; a broken or deleted one is begun again without a word. Thread
safe.
New rows wait in memory and are written many at a time.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import threading
import time
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from paddlecloud.wire.digests import DIGEST_BYTES, combine

_LAYOUT = 2
_FLUSH_ROWS = 1024
_FLUSH_S = 2.0
_ASK_AT_ONCE = 400
_MOST_BYTES = 2 << 30  # then it is begun again: most of it are files long gone
_CREATE = (
    "CREATE TABLE IF NOT EXISTS digests (inode INTEGER PRIMARY KEY, facts BLOB, checksum INTEGER,"
    " digest BLOB, leaves BLOB)"
)
_PUT = "INSERT OR REPLACE INTO digests VALUES (?,?,?,?,?)"
_CREATE_FOLDERS = (
    "CREATE TABLE IF NOT EXISTS folders (inode INTEGER PRIMARY KEY, known BLOB, checksum INTEGER)"
)
_PUT_FOLDER = "INSERT OR REPLACE INTO folders VALUES (?,?,?)"
_FACTS = struct.Struct("<QQQqq")
_Row = tuple[int, bytes, int, bytes, bytes | None]
FolderRow = tuple[int, bytes, bytes]  # inode, what tells the state of its files, their digest


class Known(NamedTuple):
    digest: bytes
    leaves: tuple[bytes, ...]


class Index:
    def __init__(self, path: Path) -> None:
        self._path = path
        self.device = os.stat(path.parent).st_dev
        self._lock = threading.Lock()
        self._waiting: dict[int, _Row] = {}
        self._flushed_at_s = time.monotonic()
        self._db = self._open()

    # --- asking ---

    def get(self, facts: os.stat_result) -> Known | None:
        if facts.st_dev != self.device:
            return None
        inode = _signed(facts.st_ino)
        with self._lock:
            row = self._waiting.get(inode) or self._one(inode)
        if row is None or not _describes(row, facts):
            return None
        _, _, _, digest, leaves = row
        if leaves is None:
            return Known(digest, (digest,))
        steps = range(0, len(leaves), DIGEST_BYTES)
        return Known(digest, tuple(leaves[at : at + DIGEST_BYTES] for at in steps))

    def digests(self, many: Sequence[os.stat_result]) -> list[bytes | None]:
        """The digest of each, where it is known."""
        inodes = [_signed(facts.st_ino) for facts in many]
        with self._lock:
            rows = self._many(inodes)
        return [
            row[3]
            if (row := rows.get(inode)) is not None
            and facts.st_dev == self.device
            and _describes(row, facts)
            else None
            for inode, facts in zip(inodes, many, strict=True)
        ]

    def folder(self, inode: int, state: bytes) -> bytes | None:
        """The digest of a folder's files while they are in this state; see `folder_digests`."""
        with self._lock:
            try:
                row = self._db.execute(
                    "SELECT known, checksum FROM folders WHERE inode=?", (_signed(inode),)
                ).fetchone()
            except sqlite3.Error:
                self._begin_again()
                return None
        if row is None:
            return None
        known, checksum = row
        is_good = isinstance(known, bytes) and len(known) == len(state) + DIGEST_BYTES
        if not is_good or not known.startswith(state) or zlib.crc32(known) != checksum:
            return None
        return known[len(state) :]

    # --- learning ---

    def learn(self, facts: os.stat_result, leaves: Sequence[bytes]) -> None:
        """The caller has made sure that a later change will show in the times."""
        self.learn_many(((facts, leaves),))

    def learn_many(self, many: Iterable[tuple[os.stat_result, Sequence[bytes]]]) -> None:
        rows = [_row(facts, leaves) for facts, leaves in many if facts.st_dev == self.device]
        with self._lock:
            self._waiting.update((row[0], row) for row in rows)
            late = time.monotonic() - self._flushed_at_s > _FLUSH_S
            if late or len(self._waiting) >= _FLUSH_ROWS:
                self._flush()

    def learn_folders(self, rows: Sequence[FolderRow]) -> None:
        if not rows:
            return
        written = [
            (_signed(inode), state + digest, zlib.crc32(state + digest))
            for inode, state, digest in rows
        ]
        with self._lock:
            self._write(_PUT_FOLDER, written)

    def forget(self, facts: os.stat_result) -> None:
        inode = _signed(facts.st_ino)
        with self._lock:
            self._waiting.pop(inode, None)
            try:
                self._db.execute("DELETE FROM digests WHERE inode=?", (inode,))
                self._db.execute("DELETE FROM folders")  # one of them stood on it
            except sqlite3.Error:
                self._begin_again()

    def flush(self) -> None:
        with self._lock:
            self._flush()

    def close(self) -> None:
        with self._lock:
            self._flush()
            self._db.close()

    # --- the database; the lock is held ---

    def _open(self) -> sqlite3.Connection:
        try:
            if self._path.stat().st_size > _MOST_BYTES:
                self._delete()
        except FileNotFoundError:
            pass
        try:
            return self._connect(str(self._path))
        except (sqlite3.Error, OSError):
            self._delete()
        try:
            return self._connect(str(self._path))
        except (sqlite3.Error, OSError):  # a full disk: remember in memory until the next start
            return self._connect(":memory:")

    def _connect(self, where: str) -> sqlite3.Connection:
        db = sqlite3.connect(where, isolation_level=None, check_same_thread=False, timeout=1)
        try:
            # It may be lost, so it need not be synced; a torn page is found by the checksums.
            for line in ("journal_mode=WAL", "synchronous=OFF", "cache_size=-4096"):
                db.execute(f"PRAGMA {line}")
            (layout,) = db.execute("PRAGMA user_version").fetchone()
            if layout not in (0, _LAYOUT):
                raise sqlite3.DatabaseError("another layout")
            db.execute(_CREATE)
            db.execute(_CREATE_FOLDERS)
            db.execute(f"PRAGMA user_version={_LAYOUT}")
            db.execute("SELECT * FROM digests LIMIT 1").fetchone()
        except BaseException:
            db.close()
            raise
        return db

    def _delete(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)

    def _begin_again(self) -> None:
        self._db.close()
        self._delete()
        self._db = self._open()

    def _one(self, inode: int) -> _Row | None:
        return self._select("inode=?", (inode,)).get(inode)

    def _many(self, inodes: Sequence[int]) -> dict[int, _Row]:
        found: dict[int, _Row] = {}
        for at in range(0, len(inodes), _ASK_AT_ONCE):
            some = inodes[at : at + _ASK_AT_ONCE]
            found.update(self._select(f"inode IN ({','.join('?' * len(some))})", some))
        if self._waiting:
            found.update((n, self._waiting[n]) for n in inodes if n in self._waiting)
        return found

    def _select(self, where: str, inodes: Sequence[int]) -> dict[int, _Row]:
        try:
            rows = self._db.execute(f"SELECT * FROM digests WHERE {where}", inodes)
            return {row[0]: row for row in rows}
        except sqlite3.Error:
            self._begin_again()
            return {}

    def _flush(self) -> None:
        self._flushed_at_s = time.monotonic()
        if self._waiting:
            self._write(_PUT, self._waiting.values())
            self._waiting.clear()

    def _write(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        try:
            if not self._path.exists():  # deleted under us: write where it will be found again
                self._begin_again()
            self._db.execute("BEGIN")
            self._db.executemany(statement, rows)
            self._db.execute("COMMIT")
        except sqlite3.OperationalError:  # a full disk: these are forgotten, the others are good
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error:
            self._begin_again()


def _signed(number: int) -> int:
    """SQLite has 63 bits and a sign; some filesystems use all 64."""
    return number - (1 << 64) if number >= 1 << 63 else number


def _checksum(facts: bytes, digest: bytes, leaves: bytes | None) -> int:
    value = zlib.crc32(digest, zlib.crc32(facts))
    return value if leaves is None else zlib.crc32(leaves, value)


def _packed(facts: os.stat_result) -> bytes:
    return _FACTS.pack(
        facts.st_ino, facts.st_dev, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
    )


def _row(facts: os.stat_result, leaves: Sequence[bytes]) -> _Row:
    packed, digest = _packed(facts), combine(leaves)
    more = None if len(leaves) == 1 else b"".join(leaves)
    return _signed(facts.st_ino), packed, _checksum(packed, digest, more), digest, more


def _describes(row: _Row, facts: os.stat_result) -> bool:
    """Whether a row is of the file as it is now, and undamaged."""
    _, packed, checksum, digest, leaves = row
    if packed != _packed(facts):
        return False
    try:
        return checksum == _checksum(packed, digest, leaves)
    except TypeError:  # a damaged row may hold anything
        return False
