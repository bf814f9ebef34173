"""Copies within the store: bytes by the kernel where it can, each file through a hidden part.

Called by the store for `copy`, by snapshots and old chunk writes for their bytes. A file appears
whole or not at all; the room for all of a copy is reserved before its first byte.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass

from paddlecloud.core.errors import Conflict, InvalidInput
from paddlecloud.pfs import syscalls
from paddlecloud.pfs.digesting import is_same
from paddlecloud.pfs.directories import Directories, Parts
from paddlecloud.pfs.faults import missing, named, shown
from paddlecloud.pfs.listing import walk
from paddlecloud.pfs.owners import Owner, Places, lies_in
from paddlecloud.pfs.publishing import Draft, Services, dress, sync_directories
from paddlecloud.pfs.shapes import Copied
from paddlecloud.wire.buffers import buffer as new_buffer
from paddlecloud.wire.pfspath import PfsPath

_AT_ONCE_BYTES = 64 << 20
_PIECE_BYTES = 1 << 20
_ATTEMPTS = 3
_GROUP_FILES = 100  # each is open until it has its name
_KERNEL_CANNOT = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)


def copy_whole(
    source: int, target: int, where: str, most_bytes: int | None = None
) -> os.stat_result:
    """One state of the file, or its first `most_bytes`; the facts of that state.

    Conflict when it changes under every attempt: a mix of two states is nobody's file.
    """
    for _ in range(_ATTEMPTS):
        facts = os.fstat(source)
        wanted = facts.st_size if most_bytes is None else min(facts.st_size, most_bytes)
        if copy_bytes(source, target, wanted) == wanted and is_same(facts, os.fstat(source)):
            return facts
        os.ftruncate(target, 0)
    raise Conflict(f"{where} is being written", field="path", hint="try again when it is done")


def copy_bytes(source: int, target: int, size_bytes: int) -> int:
    """Up to `size_bytes` from the start of `source`, holes as holes; how many there were."""
    at = 0
    while at < size_bytes:
        at, end = _next_data(source, at, size_bytes)
        n_copied = _copy_range(source, target, at, end)
        at += n_copied
        if at < end:  # it shrank meanwhile
            return at
    if size_bytes:
        os.ftruncate(target, size_bytes)  # a hole at the end
    return size_bytes


def _next_data(source: int, at: int, size_bytes: int) -> tuple[int, int]:
    """The next range that is not a hole; empty, at the end, when there is none."""
    try:
        start = min(os.lseek(source, at, os.SEEK_DATA), size_bytes)
        return start, min(os.lseek(source, start, os.SEEK_HOLE), size_bytes)
    except OSError as error:
        if error.errno == errno.ENXIO:  # only a hole is left, or the file ends before
            end = min(size_bytes, os.fstat(source).st_size)
            return end, size_bytes
        return at, size_bytes  # a storage that knows no holes


def _copy_range(source: int, target: int, at: int, end: int) -> int:
    """How many bytes were copied; fewer where the file ends."""
    start = at
    try:
        while at < end:
            n_copied = os.copy_file_range(source, target, min(_AT_ONCE_BYTES, end - at), at, at)
            if n_copied == 0:  # the end of the file, or a mount that only says so
                return at - start + _by_hand(source, target, at, end)
            at += n_copied
    except OSError as error:
        if error.errno not in _KERNEL_CANNOT:
            raise
        return at - start + _by_hand(source, target, at, end)
    return at - start


def _by_hand(source: int, target: int, at: int, end: int) -> int:
    buffer = new_buffer(_PIECE_BYTES)
    start = at
    while at < end:
        n_read = os.preadv(source, [buffer[: end - at]], at)
        if n_read == 0:
            break
        written = 0
        while written < n_read:
            written += os.pwrite(target, buffer[written:n_read], at + written)
        at += n_read
    return at - start


@dataclass(frozen=True, slots=True)
class _Copy:
    """A whole copy that waits for its name."""

    parts: Parts
    draft: Draft
    size_bytes: int
    leaves: tuple[bytes, ...] | None  # if they are known


@dataclass
class Copying:
    """One copy of a file or a tree: `run` it once."""

    places: Places
    services: Services
    owner: Owner
    source: PfsPath
    target: PfsPath
    only_new: bool  # an existing file is not replaced

    def __post_init__(self) -> None:
        self._copied_bytes = 0

    def run(self, *, recursive: bool) -> Copied:
        self._from = self.places.tree(self.owner, self.source)
        self._to = self.places.tree(self.owner, self.target, to_write=True)
        if self.target.is_root:
            raise InvalidInput("must name a file or a directory in your home", field="to")
        with named(self.source), Directories(self._from) as dirs:
            wanted = self._wanted(dirs, recursive)
        files = [(parts, facts) for parts, facts in wanted if stat.S_ISREG(facts.st_mode)]
        size_bytes = sum(facts.st_size for _, facts in files)
        self._held = self.services.usage.reserve(self.owner, size_bytes, len(files))
        try:
            with named(self.target), Directories(self._from) as dirs:
                self._make_directories(wanted)
                for at in range(0, len(files), _GROUP_FILES):
                    self._group(dirs, files[at : at + _GROUP_FILES])
        finally:
            self._held.release()
        return Copied(len(files), self._copied_bytes)

    def _wanted(self, dirs: Directories, recursive: bool) -> list[tuple[Parts, os.stat_result]]:
        """What is to be copied, by its place below the source; the source itself is ()."""
        source = self.source
        if source.is_root:
            facts = os.fstat(dirs.open(()))
        else:
            fd = dirs.open(source.parts[:-1])
            facts = os.stat(source.name, dir_fd=fd, follow_symlinks=False)
        if not stat.S_ISDIR(facts.st_mode):
            if not self._from.serves(facts):
                raise missing(source, "links and devices are not served")
            return [((), facts)]
        if not recursive:
            raise InvalidInput(f"{shown(source)} is a directory", field="from", hint="use -r")
        if lies_in(self.target, source):
            raise InvalidInput(f"{shown(self.target)} lies in {shown(source)}", field="to")
        found = walk(self._from, dirs, source.parts, recursive=True)
        return [((), facts), *((parts, facts) for parts, facts in found if facts is not None)]

    def _make_directories(self, wanted: list[tuple[Parts, os.stat_result]]) -> None:
        with Directories(self._to) as dirs:
            for parts, facts in wanted:
                if stat.S_ISDIR(facts.st_mode):
                    dirs.open(self.target.parts + parts, create=True)
            if self.services.sync:
                dirs.sync_made()

    def _group(self, dirs: Directories, group: list[tuple[Parts, os.stat_result]]) -> None:
        """Some files together, so that one sync serves them all."""
        drafts: list[_Copy] = []
        try:
            for parts, facts in group:
                drafts.append(self._draft(dirs, parts, facts.st_size))
            if self.services.sync:
                if len(drafts) > 1:
                    syscalls.syncfs(drafts[0].draft.fd)
                else:
                    os.fsync(drafts[0].draft.fd)
            self._publish(drafts)
        finally:
            for copy in drafts:
                copy.draft.discard()  # nothing, once it took its name
                copy.draft.close()

    def _draft(self, dirs: Directories, parts: Parts, reserved_bytes: int) -> _Copy:
        """A copy of one file, hidden."""
        place = self.source.parts + parts
        where = "/".join((shown(self.source), *parts))
        fd, _ = self._from.open_file_in(dirs.open(place[:-1]), place[-1])
        try:
            draft = Draft(self.places.parts_of(self.owner.account_id), self.services)
            try:
                facts = copy_whole(fd, draft.fd, where)
                self._hold(facts.st_size - reserved_bytes)
                executable = bool(facts.st_mode & stat.S_IXUSR)
                dress(self._to, draft.fd, executable=executable, mtime_ns=None)
            except BaseException:
                draft.discard()
                draft.close()
                raise
            known = self.services.digests.known(facts)
            return _Copy(parts, draft, facts.st_size, None if known is None else known.leaves)
        finally:
            os.close(fd)

    def _hold(self, more_bytes: int) -> None:
        """The file is not as long as when the room for all was reserved."""
        if more_bytes > 0:
            self._held.absorb(self.services.usage.reserve(self.owner, more_bytes, 0))
        else:
            self._held.shrink(-more_bytes, 0)

    def _publish(self, copies: list[_Copy]) -> None:
        touched: dict[Parts, None] = {}
        usage = self.services.usage
        for copy in copies:
            place = self.target.parts + copy.parts
            with usage.publishing(self.owner):  # what is used now is held no more
                copy.draft.publish(
                    self.owner,
                    (self._to, place),
                    usage.nothing(self.owner),
                    leaves=copy.leaves,
                    only_new=self.only_new,
                    sync=False,
                )
                self._held.shrink(copy.size_bytes, 1)
            self._copied_bytes += copy.size_bytes
            touched[place[:-1]] = None
        if self.services.sync:
            with Directories(self._to) as dirs:
                sync_directories(dirs, list(touched))
