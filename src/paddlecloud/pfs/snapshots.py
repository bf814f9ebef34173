"""Snapshots of packages: lists of files by content, their bytes as blobs, one set per account.

The file server stores them (`put`, blobs by batch or upload), the job service has them written
into a job's folder (`materialise`, from another process: it only reads, but for a blob whose bytes
no longer match its name, which it removes so that the next submit sends it again). Blobs are never
shared between accounts: whether bytes are known tells nothing about anybody else's. A blob no
snapshot names goes after an hour; until then its sender may still be about to name it.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from paddlecloud import clock
from paddlecloud.core.errors import Conflict, InvalidInput, NotFound
from paddlecloud.pfs import publishing, syscalls
from paddlecloud.pfs.copying import copy_bytes
from paddlecloud.pfs.digesting import read_leaves
from paddlecloud.pfs.directories import Directories, Parts
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.faults import named
from paddlecloud.pfs.owners import Owner, Places
from paddlecloud.pfs.shapes import SnapshotAnswer
from paddlecloud.pfs.usage import Usage
from paddlecloud.wire import snapshots as lists
from paddlecloud.wire.digests import LEAF_BYTES, combine, is_digest, leaf_hash

UNNAMED_S = 3600.0
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LIST_BYTES = 256 << 20


class NoLongerWanted(Exception):
    """Whoever wanted the files of a snapshot has changed their mind."""


class Snapshots:
    def __init__(self, places: Places, usage: Usage | None = None, *, sync: bool = True) -> None:
        self._places = places
        self._usage = usage
        self._sync = sync
        self._locks: dict[int, threading.Lock] = {}

    def _lock(self, account_id: int) -> threading.Lock:
        """Naming blobs and sweeping unnamed ones exclude each other, for each account."""
        return self._locks.setdefault(account_id, threading.Lock())

    # --- storing ---

    def put(self, owner: Owner, wish: lists.Wish) -> SnapshotAnswer:
        """Store it if all its blobs are here; else say which are missing, and keep nothing."""
        account_id = owner.account_id
        base = None if wish.base is None else self.get(account_id, wish.base)
        snapshot = lists.fulfil(wish, base)
        with self._lock(account_id), named("the snapshot"):
            missing = self._missing(account_id, snapshot)
            if not missing:
                self._write(owner, wish.digest, lists.encode(snapshot))
        return SnapshotAnswer(wish.digest, len(snapshot.files), snapshot.total_bytes, missing)

    def _missing(self, account_id: int, snapshot: lists.Snapshot) -> list[str]:
        sizes = {file.digest: file.size_bytes for file in snapshot.files}
        missing: list[str] = []
        found: list[str] = []
        fd = os.open(self._places.blobs_of(account_id), _FOLDER)
        try:
            for digest, size_bytes in sizes.items():
                try:
                    facts = os.stat(_blob(digest), dir_fd=fd, follow_symlinks=False)
                except FileNotFoundError:
                    missing.append(digest)
                    continue
                if facts.st_size != size_bytes:
                    raise InvalidInput(
                        f"the bytes of {digest} are {facts.st_size}, not {size_bytes}",
                        field="files",
                    )
                found.append(digest)
            if missing:
                for digest in found:  # its sender is at work: the hour begins anew
                    os.utime(_blob(digest), dir_fd=fd)
        finally:
            os.close(fd)
        return missing

    def _write(self, owner: Owner, digest: str, text: bytes) -> None:
        folder = self._places.snapshots_of(owner.account_id)
        try:
            os.utime(folder / digest)  # as good as new: nobody forgets it before it is used
            return
        except FileNotFoundError:
            pass
        held = self._usage.reserve(owner, len(text), 1) if self._usage else None
        part = f".{secrets.token_hex(8)}"
        fd = os.open(folder, _FOLDER)
        try:
            _write_file(fd, part, text, self._sync)
            if self._usage is None or held is None:
                os.rename(part, digest, src_dir_fd=fd, dst_dir_fd=fd)
            else:
                with self._usage.publishing(owner) as count:
                    publishing.replace(fd, part, fd, digest, len(text), count)
            if self._sync:
                syscalls.sync_directory(fd)
        except BaseException:
            _unlink(part, fd)
            raise
        finally:
            os.close(fd)
            if held is not None:
                held.release()

    # --- reading ---

    def get(self, account_id: int, digest: str) -> lists.Snapshot:
        if not is_digest(digest):
            raise InvalidInput("must be 64 hex digits", field="digest")
        path = self._places.hidden / "snapshots" / str(account_id) / digest
        try:
            fd = os.open(path, _READ)
        except FileNotFoundError:
            raise NotFound(f"no snapshot {digest}", field="digest") from None
        with os.fdopen(fd, "rb") as file, named("the snapshot"):
            text = file.read(_MOST_LIST_BYTES)
        if lists.digest_of(text) != digest:
            path.unlink(missing_ok=True)  # so that the next submit stores it again
            raise NotFound(
                f"no snapshot {digest}", field="digest", hint="its stored bytes have changed"
            )
        return lists.decode(text)

    def materialise(
        self,
        account_id: int,
        digest: str,
        tree: Tree,
        parts: Parts,
        *,
        verify: bool = True,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> lists.Snapshot:
        """Write the files of a snapshot below `parts`. Doing it twice gives the same files.

        `is_wanted` is asked before each; `NoLongerWanted` when it says no.
        """
        snapshot = self.get(account_id, digest)
        blobs = os.open(self._places.hidden / "blobs" / str(account_id), _FOLDER)
        try:
            with named("the snapshot"), Directories(tree) as dirs:
                dirs.open(tuple(parts), create=True)
                for path in snapshot.dirs:
                    dirs.open((*parts, *path.split("/")), create=True)
                for file in snapshot.files:
                    if not is_wanted():
                        raise NoLongerWanted
                    self._materialise(blobs, file, tree, dirs, tuple(parts), verify)
        finally:
            os.close(blobs)
        return snapshot

    def _materialise(
        self,
        blobs: int,
        file: lists.File,
        tree: Tree,
        dirs: Directories,
        base: Parts,
        verify: bool,
    ) -> None:
        *above, name = file.path.split("/")
        try:
            source = os.open(_blob(file.digest), _READ, dir_fd=blobs)
        except FileNotFoundError:
            raise NotFound(
                f"the stored bytes of {file.path} are gone", hint="submit the package again"
            ) from None
        try:
            parent = dirs.open((*base, *above), create=True)
            mode = publishing.EXECUTABLE_MODE if file.executable else publishing.PLAIN_MODE
            target = _create(parent, name, mode)
            try:
                is_right = _copy(source, target, file, verify)
                tree.give(target)
            finally:
                os.close(target)
            if not is_right:
                _unlink(name, parent)
                _unlink(_blob(file.digest), blobs)
                raise Conflict(
                    f"the stored bytes of {file.path} have changed without a write (bit rot)",
                    hint="submit the package again",
                )
        finally:
            os.close(source)

    # --- forgetting ---

    def forget(self, account_id: int, digest: str) -> None:
        """Its blobs go with the next sweep, unless another snapshot names them."""
        if is_digest(digest):
            self._delete(account_id, [self._places.hidden / "snapshots" / str(account_id) / digest])

    def sweep(self, unnamed_s: float = UNNAMED_S) -> int:
        """Remove blobs that no snapshot names; how many."""
        removed = 0
        for folder in _accounts(self._places.hidden / "blobs"):
            try:
                removed += self._sweep(folder, unnamed_s)
            except OSError:
                continue  # what cannot be read now is looked at again the next time
        return removed

    def _sweep(self, folder: Path, unnamed_s: float) -> int:
        account_id = int(folder.name)
        before_s = clock.now() - unnamed_s
        with self._lock(account_id):
            old = [path for path in _blobs(folder) if _is_older(path, before_s)]
            named_blobs = self._named(folder.name) if old else set()
            unnamed = [path for path in old if path.name.encode() not in named_blobs]
            return self._delete(account_id, unnamed)

    def _delete(self, account_id: int, paths: Sequence[Path]) -> int:
        """How many were there; the room they took is free at once."""
        owner = Owner("", account_id)  # the usage is found by the id
        walks = self._usage.walks(owner) if self._usage is not None else 0
        files = size_bytes = 0
        for path in paths:
            try:
                facts = path.lstat()
                path.unlink()
            except FileNotFoundError:
                continue
            files += 1
            size_bytes += facts.st_size
        if self._usage is not None:
            self._usage.removed(owner, size_bytes, files, walks)
        return files

    def _named(self, account: str) -> set[bytes]:
        """The digests in all lists of an account. A line ends in `"<digest>"]`."""
        found: set[bytes] = set()
        folder = self._places.hidden / "snapshots" / account
        for path in folder.iterdir() if folder.exists() else ():
            if path.name.startswith("."):
                continue
            try:
                with path.open("rb") as file:
                    found.update(line[-67:-3] for line in file)
            except FileNotFoundError:
                continue  # forgotten meanwhile, by the cloud server
        return found


def _blobs(folder: Path) -> Iterator[Path]:
    for shelf in sorted(folder.iterdir()):
        try:
            names = os.listdir(shelf)
        except (FileNotFoundError, NotADirectoryError):
            continue
        for name in names:
            yield shelf / name


def _is_older(path: Path, before_s: float) -> bool:
    try:
        return path.lstat().st_mtime < before_s
    except FileNotFoundError:  # found rotten and removed, by the cloud server
        return False


def _accounts(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.isdecimal()]


def _blob(digest: str) -> str:
    return f"{digest[:2]}/{digest}"


def _unlink(name: str, fd: int) -> None:
    try:
        os.unlink(name, dir_fd=fd)
    except OSError:
        pass


def _create(parent: int, name: str, mode: int) -> int:
    """A new file; what stands there is removed, a link is not followed."""
    try:
        return os.open(name, _NEW, mode, dir_fd=parent)
    except FileExistsError:
        os.unlink(name, dir_fd=parent)
        return os.open(name, _NEW, mode, dir_fd=parent)


def _write_file(fd: int, name: str, text: bytes, sync: bool) -> None:
    with os.fdopen(os.open(name, _NEW, 0o600, dir_fd=fd), "wb") as file:
        file.write(text)
        file.flush()
        if sync:
            os.fsync(file.fileno())


def _copy(source: int, target: int, file: lists.File, verify: bool) -> bool:
    """Whether the bytes are those the digest names (believed, if not to verify)."""
    if file.size_bytes <= LEAF_BYTES and verify:
        # One read serves the hash and the copy.
        data = os.read(source, file.size_bytes + 1) if file.size_bytes else b""
        whole = leaf_hash()
        whole.update(data)
        view = memoryview(data)
        while view:
            view = view[os.write(target, view) :]
        return bool(whole.hexdigest() == file.digest)
    if copy_bytes(source, target, file.size_bytes) != file.size_bytes:
        return False
    if not verify:
        return True
    leaves = read_leaves(source, file.size_bytes)
    return leaves is not None and combine(leaves).hex() == file.digest
