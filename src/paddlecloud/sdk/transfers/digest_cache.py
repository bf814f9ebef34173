"""The digests of local files, remembered: an unchanged file is not read again.

It promises: a digest counts only while inode, size, mtime and ctime are those it was taken under,
and is kept only of files that had settled when they were read, so that no later write can carry the
same times; what a server told about a file it was sent counts with that server only. `settling`
says what that is worth: on Linux it is never wrong, as long as nobody sets the clock back; on
Windows and macOS it misses a write through a mapping that the system has not noted yet.
`replace="always"` (`-f`) does not ask it. May be deleted at any time; a damaged one is thrown away;
a home that cannot be written to means hashing again, nothing else. The transfers and snapshots call
it.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from paddlecloud.sdk.transfers.local_files import hash_file
from paddlecloud.sdk.transfers.walking import Found
from paddlecloud.wire.digests import DIGEST_BYTES, combine, leaf_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

# What is known of a file is one value, the state it was read in and then its leaves: tens of
# thousands of rows are read before the first file is compared. Paths are the bytes the system has
# for them, which need not be text. What earlier versions believed too easily is dropped.
_FILES = "digests_3"
# The digest of the files directly in a folder, after the state all of them were in.
_FOLDERS = "folders_2"
_SCHEMA = (
    *(
        f"CREATE TABLE IF NOT EXISTS {table} (path BLOB PRIMARY KEY, known BLOB) WITHOUT ROWID"
        for table in (_FILES, _FOLDERS)
    ),
    *(f"DROP TABLE IF EXISTS {table}" for table in ("digests_2", "folders_1")),
)
_STATE = struct.Struct("<QQqq")
# Behind the leaves, if they were told by a server: which one. Behind a folder's digest always, as
# there may be such files in it.
_TELLER_BYTES = 8
_ALL_BITS = (1 << 64) - 1  # Windows has file numbers of 128

Row = tuple[bytes, bytes]


def cache_directory(environ: Mapping[str, str] | None = None) -> str:
    """Where a user's programs keep what may be deleted."""
    environ = os.environ if environ is None else environ
    if environ.get("XDG_CACHE_HOME"):
        return os.path.join(environ["XDG_CACHE_HOME"], "paddlecloud")
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Caches", "paddlecloud")
    if os.name == "nt":
        return os.path.join(environ.get("LOCALAPPDATA", home), "paddlecloud", "cache")
    return os.path.join(home, ".cache", "paddlecloud")


def digest_of(leaves: bytes) -> bytes:
    """The file's digest from its leaves' digests in a row."""
    if len(leaves) == DIGEST_BYTES:
        return leaves
    return combine(split_leaves(leaves))


def split_leaves(leaves: bytes) -> list[bytes]:
    return [leaves[at : at + DIGEST_BYTES] for at in range(0, len(leaves), DIGEST_BYTES)]


class DigestCache:
    """One SQLite file. Learning is safe from several threads; look up and flush from one."""

    def __init__(self, path: str = "", server: str = "") -> None:
        """`server` is the one that files are compared with; without it none's word counts."""
        self._path = path or os.path.join(cache_directory(), "digests.db")
        self._teller = _teller(server)
        self._database: sqlite3.Connection | None = None
        self._is_unusable = False
        self._learnt: list[Row] = []
        self._learnt_folders: list[Row] = []
        self._lock = threading.Lock()
        self._keys = _Keys()

    def look_up(self, files: Sequence[Found], roots: Iterable[str]) -> list[bytes | None]:
        """The leaves of each file, where known. `roots`: the folders or files they are in."""
        known = self.below(roots)
        return [known.leaves_of(file) for file in files]

    def below(self, roots: Iterable[str]) -> Known:
        """All that is known about what is in these folders, in one question each."""
        real = [os.path.realpath(root) for root in roots]
        return Known(lambda table: self._below(table, real), self._keys, self._teller)

    def _below(self, table: str, roots: Iterable[str]) -> dict[bytes, bytes]:
        rows: dict[bytes, bytes] = {}
        for root in roots:
            start = root.rstrip(os.sep)
            between = (root, start + os.sep, start + chr(ord(os.sep) + 1))
            rows.update(
                self._ask(
                    f"SELECT path, known FROM {table} WHERE path = ? UNION ALL "
                    f"SELECT path, known FROM {table} WHERE path > ? AND path < ?",
                    tuple(os.fsencode(path) for path in between),
                )
            )
        return rows

    def hash(self, file: Found, view: memoryview) -> bytes:
        """The leaves of a file from its bytes; remembered, if that is safe."""
        hashed = hash_file(file, view)
        if hashed.is_settled:
            self.learn(file, hashed.leaves)
        return hashed.leaves

    def learn(self, file: Found, leaves: bytes, *, told: bool = False) -> None:
        """Remember what was read of a file that had settled before; `told`: by the server."""
        known = _state(file) + leaves + (self._teller if told else b"")
        with self._lock:
            self._learnt.append((self._keys.of(file.path), known))

    def learn_folder(self, path: str, state: bytes, digest: bytes) -> None:
        """Of files that are all known here: what is known together is as true as one by one."""
        with self._lock:
            self._learnt_folders.append((_folder_key(path), state + digest + self._teller))

    def flush(self) -> None:
        with self._lock:
            learnt, self._learnt = self._learnt, []
            folders, self._learnt_folders = self._learnt_folders, []
        if not learnt and not folders:
            return
        database = self._open()
        if database is None:
            return
        import sqlite3

        try:
            with database:
                for table, rows in ((_FILES, learnt), (_FOLDERS, folders)):
                    database.executemany(
                        f"INSERT OR REPLACE INTO {table} (path, known) VALUES (?, ?)", rows
                    )
        except sqlite3.Error as error:
            self._give_up(error)

    def close(self) -> None:
        self.flush()
        if self._database is not None:
            self._database.close()
            self._database = None

    # --- the database ----------------------------------------------------------------------

    def _ask(self, statement: str, values: tuple[bytes, ...]) -> list[Row]:
        database = self._open()
        if database is None:
            return []
        import sqlite3

        try:
            return database.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            self._give_up(error)
            return []

    def _open(self) -> sqlite3.Connection | None:
        if self._database is not None or self._is_unusable:
            return self._database
        import sqlite3

        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            database = sqlite3.connect(self._path, timeout=5.0, check_same_thread=False)
            self._database = database
            # Never damaged by a crash of the machine; losing the newest rows costs only time.
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            for statement in _SCHEMA:
                database.execute(statement)
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)
        return self._database

    def _give_up(self, error: Exception) -> None:
        """Go on without; a file that is no database is removed, so that the next run has one."""
        import sqlite3

        self._is_unusable = True
        if self._database is not None:
            self._database.close()
            self._database = None
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(
            error, sqlite3.OperationalError
        ):
            for end in ("", "-wal", "-shm"):
                try:
                    os.unlink(self._path + end)
                except OSError:
                    pass


class Known:
    """What a cache says about some folders; read from it when it is first asked for."""

    def __init__(
        self, read: Callable[[str], dict[bytes, bytes]], keys: _Keys, teller: bytes
    ) -> None:
        self._read = read
        self._keys = keys
        self._teller = teller
        self._files: dict[bytes, bytes] | None = None
        self._folders: dict[bytes, bytes] | None = None

    def folder_digest(self, path: str, state: bytes) -> bytes | None:
        """Of the files directly in a folder, if they are in the state they were in then."""
        if self._folders is None:
            self._folders = self._read(_FOLDERS)
        known = self._folders.get(_folder_key(path)) if self._folders else None
        if known is None or not known.startswith(state):
            return None
        digest = known[len(state) : len(state) + DIGEST_BYTES]
        return digest if known[len(state) :] == digest + self._teller else None

    def leaves_of(self, file: Found) -> bytes | None:
        if self._files is None:
            self._files = self._read(_FILES)
        if not self._files:
            return None
        known = self._files.get(self._keys.of(file.path))
        if known is None or not known.startswith(_state(file)):
            return None
        leaves = known[_STATE.size :]
        if len(leaves) % DIGEST_BYTES == _TELLER_BYTES:
            if not leaves.endswith(self._teller):
                return None
            leaves = leaves[:-_TELLER_BYTES]
        return leaves if leaves and len(leaves) % DIGEST_BYTES == 0 else None


class _Keys:
    """Real paths of many files; each folder is resolved once."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}
        self._folder = self._start = ""  # the last one: files come folder by folder

    def of(self, path: str) -> bytes:
        return os.fsencode(self._real(path))

    def _real(self, path: str) -> str:
        folder = self._folder
        n_chars = len(folder)
        # In the same folder as the file before: nothing to look up.
        if n_chars and path.startswith(folder) and path.find(os.sep, n_chars) < 0:
            return self._start + path[n_chars:]
        above, name = os.path.split(path) if os.name == "nt" else _split(path)
        start = self._folders.get(above)
        if start is None:
            start = self._folders[above] = os.path.join(os.path.realpath(above), "")
        self._folder, self._start = path[: len(path) - len(name)], start
        return start + name


def _teller(server: str) -> bytes:
    whole = leaf_hash()
    whole.update(server.encode())
    return bytes(whole.digest())[:_TELLER_BYTES]


def _folder_key(path: str) -> bytes:
    return os.fsencode(os.path.realpath(path))


def _split(path: str) -> tuple[str, str]:
    folder, slash, name = path.rpartition("/")
    return folder or slash or ".", name


def _state(file: Found) -> bytes:
    _, _, size_bytes, mtime_ns, ctime_ns, inode, _ = file
    return _STATE.pack(inode & _ALL_BITS, size_bytes, mtime_ns, ctime_ns)


def folder_state(files: Sequence[Found], folder: str) -> bytes:
    """Another one as soon as a name or a fact of one of the folder's files is another."""
    pack = _STATE.pack
    skipped = len(folder) + 1 if folder else 0
    facts, names = [], []
    for name, _, size_bytes, mtime_ns, ctime_ns, inode, executable in files:
        facts.append(pack(inode & _ALL_BITS, size_bytes, mtime_ns, ctime_ns))
        names.append(name[skipped:] + "\0x" if executable else name[skipped:])
    whole = leaf_hash()
    whole.update(b"".join(facts))
    whole.update("\0\0".join(names).encode())
    return bytes(whole.digest())
