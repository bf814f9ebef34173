"""Many small files in one request: all parts first, one sync, then all names.

    begin_file, write..., end_file   a hidden part; its digest is compared as soon as it is whole
    commit                           directories made, ONE syncfs, all renames, directories synced

A file that is wrong is refused by its position and the others stand; a batch that is cut stores
nothing. The whole batch has its room reserved before its first byte. One thread per batch.
"""

from __future__ import annotations

import os
import secrets
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from paddlecloud.core.errors import (
    Conflict,
    InvalidInput,
    OutOfSpace,
    PaddleCloudError,
    TooLarge,
    Unavailable,
)
from paddlecloud.localfs.trees import empty_and_remove
from paddlecloud.pfs import syscalls
from paddlecloud.pfs.directories import Directories, Parts
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.faults import name_error
from paddlecloud.pfs.owners import Owner
from paddlecloud.pfs.publishing import (
    EXECUTABLE_MODE,
    PLAIN_MODE,
    Services,
    replace,
    sync_directories,
)
from paddlecloud.pfs.relative_names import check_name, split
from paddlecloud.pfs.shapes import BatchResult
from paddlecloud.pfs.usage import Reservation
from paddlecloud.wire.digests import LEAF_BYTES, is_digest, leaf_hash
from paddlecloud.wire.pfspath import MAX_PATH_BYTES, BadPath
from paddlecloud.wire.records import Head, Kind

MOST_FILES = 10_000
_FEW = 2  # so many are cheaper to sync one by one
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class _Part:
    """A whole file that waits for its name."""

    __slots__ = ("before", "digest", "folder", "name", "position", "size_bytes")

    def __init__(self, position: int, folder: Parts, name: str, size_bytes: int) -> None:
        self.position = position
        self.folder = folder
        self.name = name
        self.size_bytes = size_bytes
        self.digest = b""
        self.before: os.stat_result | None = None


class Batch:
    """Made by the store. Call in the order of the records, then `commit` or `abandon`."""

    def __init__(
        self,
        owner: Owner,
        tree: Tree,
        base: Parts,
        parts_folder: Path,
        services: Services,
        reservation: Reservation,
        announced: tuple[int, int],
        *,
        room_bytes: int = MAX_PATH_BYTES,
        are_blobs: bool = False,
    ) -> None:
        """`announced`: records and bytes; `room_bytes`: what a name may have behind the base."""
        self._owner = owner
        self._tree = tree
        self._base = base
        self._usage, self._digests = services.usage, services.digests
        self._sync = services.sync
        self._reservation = reservation
        self._files_left, self._bytes_left = announced
        self._room_bytes = room_bytes
        self._are_blobs = are_blobs
        self._parents: dict[str, Parts] = {"": base}  # by the text before the last slash
        self._parts: list[_Part] = []
        self._directories: list[tuple[int, Parts]] = []
        self._position = -1
        self._part: _Part | None = None
        self._fd = -1
        self._left_bytes = 0
        self._hash = leaf_hash()
        self._mtime_ns: int | None = None
        self._is_over = False
        self.result = BatchResult()
        self._folder = parts_folder / f"batch-{secrets.token_hex(8)}"
        try:
            os.mkdir(self._folder, 0o700)
            self._folder_fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            reservation.release()
            raise name_error(error, "the batch") from error

    # --- receiving ---

    def begin_file(self, head: Head, name: str) -> None:
        """A file record. If it cannot be, it is refused and its bytes are passed over."""
        self._position += 1
        self._left_bytes = head.size_bytes
        self._part = None
        self._take_from_announced(head.size_bytes)
        try:
            self._begin(head, name)
        except PaddleCloudError as error:
            self._refuse(error)
        except OSError as error:
            raise name_error(error, name) from error

    def _take_from_announced(self, size_bytes: int) -> None:
        """Refused records count too: each of them is remembered until the answer."""
        self._files_left -= 1
        self._bytes_left -= size_bytes
        if self._files_left < 0 or self._bytes_left < 0:
            raise InvalidInput("the batch holds more than it announced", field="body")

    def _begin(self, head: Head, name: str) -> None:
        if not head.has_digest:
            raise InvalidInput("a record that is no file", field="body")
        if head.size_bytes > LEAF_BYTES:
            raise TooLarge(
                f"a file in a batch may have {LEAF_BYTES} bytes", field="body", hint="upload it"
            )
        part = _Part(self._position, *self._place(name), head.size_bytes)
        mode = EXECUTABLE_MODE if head.kind is Kind.EXECUTABLE else PLAIN_MODE
        self._mtime_ns = head.mtime_ns
        self._fd = os.open(str(self._position), _NEW, mode, dir_fd=self._folder_fd)
        self._part = part
        self._hash = leaf_hash()

    def _place(self, name: str) -> tuple[Parts, str]:
        """(directory, name in it), checked; each directory's text is taken apart once."""
        if self._are_blobs:
            if not is_digest(name):
                raise InvalidInput("a blob is called by its digest", field="body")
            return (name[:2],), name
        above, slash, last = name.rpartition("/")
        check_name(last)
        if slash and not above:
            raise BadPath("a name in a batch is relative: it cannot begin with /")
        self._check_length(name)
        folder = self._parents.get(above)
        if folder is None:
            folder = self._parents[above] = self._base + split(above)
        return folder, last

    def _check_length(self, name: str) -> None:
        """What nobody could name afterwards is not stored."""
        if len(name) > self._room_bytes // 4 and len(name.encode()) > self._room_bytes:
            raise BadPath(f"a path can have {MAX_PATH_BYTES} bytes")

    def write(self, data: memoryview | bytes) -> None:
        """Content of the file begun last, in any pieces."""
        self._left_bytes -= len(data)
        if self._left_bytes < 0:
            raise InvalidInput("a record with more bytes than its head says", field="body")
        if self._part is None:
            return
        self._hash.update(data)
        try:
            written = os.write(self._fd, data)
            while written < len(data):
                written += os.write(self._fd, memoryview(data)[written:])
        except OSError as error:
            raise name_error(error, self._part.name) from error

    def end_file(self, digest: bytes) -> None:
        if self._left_bytes:
            raise InvalidInput("a record with fewer bytes than its head says", field="body")
        part = self._part
        if part is None:
            return
        part.digest = bytes(self._hash.digest())
        is_right = part.digest == digest and (not self._are_blobs or part.name == digest.hex())
        try:
            if is_right:
                self._tree.give(self._fd)
                if self._mtime_ns is not None:
                    os.utime(self._fd, ns=(self._mtime_ns, self._mtime_ns))
                part.before = os.fstat(self._fd)
        except OSError as error:
            raise name_error(error, part.name) from error
        finally:
            self._close_part()
        if is_right:
            self._parts.append(part)
        else:
            self._refuse(
                Conflict(
                    f"{part.name}: the bytes that arrived differ from their digest",
                    hint="send it again",
                )
            )

    def directory(self, name: str) -> None:
        self._position += 1
        self._take_from_announced(0)
        try:
            if self._are_blobs:
                raise InvalidInput("a directory among blobs", field="body")
            self._check_length(name)
            self._directories.append((self._position, self._base + split(name)))
        except PaddleCloudError as error:
            self._refuse(error)

    def _refuse(self, error: PaddleCloudError) -> None:
        self.result.refused.append((self._position, error))

    def _close_part(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._part = None

    # --- the end ---

    def commit(self) -> BatchResult:
        """Every right file takes its name; what this returns is on the disk."""
        try:
            with Directories(self._tree) as dirs:
                self._make_directories(dirs)
                self._sync_parts(dirs)
                self._publish(dirs)
        except OSError as error:
            raise name_error(error, "the batch") from error
        finally:
            self.abandon()
        self.result.refused.sort(key=lambda row: row[0])
        return self.result

    def _make_directories(self, dirs: Directories) -> None:
        for position, parts in self._directories:
            self._make_directory(dirs, parts, [position])
        possible = []
        for folder, parts_of_it in groupby(self._parts, key=attrgetter("folder")):
            group = list(parts_of_it)
            if self._make_directory(dirs, folder, [part.position for part in group]):
                possible += group
        self._parts = possible

    def _make_directory(self, dirs: Directories, parts: Parts, positions: list[int]) -> bool:
        """Whether it is there now; else all that needs it is refused."""
        try:
            dirs.open(parts, create=True)
        except OSError as error:
            self._refuse_all(positions, error, "/".join(parts[len(self._base) :]))
            return False
        return True

    def _refuse_all(self, positions: list[int], error: OSError, shown: str) -> None:
        named = name_error(error, shown)
        if isinstance(named, OutOfSpace | Unavailable):
            raise named from error  # it will be no better for the others
        self.result.refused += [(position, named) for position in positions]

    def _sync_parts(self, dirs: Directories) -> None:
        if not self._sync:
            return
        if len(self._parts) > _FEW:
            syscalls.syncfs(self._folder_fd)
            return
        for part in self._parts:
            fd = os.open(str(part.position), os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder_fd)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        dirs.sync_made()

    def _publish(self, dirs: Directories) -> None:
        self._parts.sort(key=attrgetter("folder"))
        touched: list[Parts] = []
        learned: list[tuple[os.stat_result, tuple[bytes]]] = []
        with self._usage.publishing(self._owner) as count:
            for folder, group in groupby(self._parts, key=attrgetter("folder")):
                touched.append(folder)
                fd = dirs.open(folder, create=True)
                for part in group:
                    try:
                        replace(
                            self._folder_fd,
                            str(part.position),
                            fd,
                            part.name,
                            part.size_bytes,
                            count,
                        )
                    except PaddleCloudError as error:
                        self.result.refused.append((part.position, error))
                        continue
                    except OSError as error:
                        self._refuse_all([part.position], error, part.name)
                        continue
                    self._count(part)
                    after = os.stat(part.name, dir_fd=fd, follow_symlinks=False)
                    if part.before is not None and self._digests.may_keep(part.before, after):
                        learned.append((after, (part.digest,)))
            self._reservation.release()
        self._digests.index.learn_many(learned)
        if self._sync:
            sync_directories(dirs, touched)

    def _count(self, part: _Part) -> None:
        self.result.stored += 1
        self.result.size_bytes += part.size_bytes

    def abandon(self) -> None:
        """Nothing of it remains, but what `commit` published."""
        if self._is_over:
            return
        self._is_over = True
        self._close_part()
        os.close(self._folder_fd)
        self._reservation.release()
        try:
            empty_and_remove(self._folder)
        except OSError:
            pass  # swept later
