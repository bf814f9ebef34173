"""The moment a finished part gets its name: who pays for it, what it replaces, what is remembered.

Uploads, batches, streams, copies and old chunk writes end here. The rename and the counting happen
under the account's lock, so two writers of one path are counted right and one of them wins whole.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from paddlecloud.core.errors import Conflict
from paddlecloud.pfs import syscalls
from paddlecloud.pfs.digesting import Digests
from paddlecloud.pfs.directories import Directories, Parts
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.owners import Owner
from paddlecloud.pfs.usage import Reservation, Usage

PLAIN_MODE = 0o600
EXECUTABLE_MODE = 0o700
_FEW_DIRECTORIES = 2
_TOO_EARLY_NS, _TOO_LATE_NS = -(1 << 62), 1 << 62


def dress(tree: Tree, fd: int, *, executable: bool, mtime_ns: int | None) -> None:
    """Mode, owner and time, before it is synced. Never setuid, whatever was asked."""
    os.fchmod(fd, EXECUTABLE_MODE if executable else PLAIN_MODE)
    tree.give(fd)
    if mtime_ns is not None:
        kept_ns = max(_TOO_EARLY_NS, min(_TOO_LATE_NS, mtime_ns))
        os.utime(fd, ns=(kept_ns, kept_ns))


def replace(
    part_fd: int,
    part: str,
    target_fd: int,
    name: str,
    size_bytes: int,
    count: Callable[[int, int], None],
    *,
    over_links: bool = False,
) -> None:
    """Rename the part over whatever file is there; the account's lock is held."""
    old_bytes, old_files = standing(target_fd, name, over_links=over_links)
    os.rename(part, name, src_dir_fd=part_fd, dst_dir_fd=target_fd)
    count(size_bytes - old_bytes, 1 - old_files)


def standing(target_fd: int, name: str, *, over_links: bool = False) -> tuple[int, int]:
    """(bytes, files) that stand under the name now; refuses what a file cannot replace."""
    try:
        facts = os.stat(name, dir_fd=target_fd, follow_symlinks=False)
    except FileNotFoundError:
        return 0, 0
    if stat.S_ISREG(facts.st_mode):
        return facts.st_size, 1
    if stat.S_ISDIR(facts.st_mode):
        raise Conflict(f"{name} is a directory", field="path")
    if over_links:
        return 0, 1
    raise Conflict(
        f"{name} is a link or a device", field="path", hint="remove it first (paddlecloud pfs rm)"
    )


def sync_directories(dirs: Directories, touched: Sequence[Parts]) -> None:
    """The names in these directories survive a power cut.

    One by one each costs a flush of the disk's cache: measured 5 ms each, while `syncfs` right
    after another has little left to do and takes 10 ms for any number.
    """
    if len(touched) > _FEW_DIRECTORIES:
        syscalls.syncfs(dirs.open(()))
        return
    for folder in touched:
        syscalls.sync_directory(dirs.open(folder))


@dataclass(frozen=True, slots=True)
class Services:
    """What everything that publishes needs."""

    usage: Usage
    digests: Digests
    sync: bool


class Draft:
    """A hidden file of one account that will take a name, or be discarded."""

    def __init__(self, folder: Path, services: Services, *, name: str = "") -> None:
        """A new one; `name` opens one that exists."""
        self.name = name or f"draft-{secrets.token_hex(8)}"
        self._services = services
        self._folder = folder
        self.is_doubtful = False  # a sync failed: what the kernel has of it may not be on the disk
        self.is_named = False  # from then on it is the user's file, whatever fails behind it
        self.fd = self.open() if name else self.open(os.O_CREAT | os.O_EXCL)

    @property
    def path(self) -> Path:
        return self._folder / self.name

    def open(self, more_flags: int = 0) -> int:
        """A descriptor of its own, which the caller closes."""
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | more_flags
        return os.open(self.path, flags, PLAIN_MODE)

    def reopen(self) -> None:
        """Go on with one that was closed meanwhile."""
        if self.fd < 0:
            self.fd = self.open()

    def publish(
        self,
        owner: Owner,
        target: tuple[Tree, Parts],
        reservation: Reservation,
        *,
        executable: bool = False,
        mtime_ns: int | None = None,
        leaves: Sequence[bytes] | None = None,
        only_new: bool = False,
        over_links: bool = False,
        sync: bool | None = None,
    ) -> os.stat_result:
        """Dress, fsync, rename, fsync of the directory; the index learns `leaves` if given.

        `sync=False`: dressed and synced by the caller, who also syncs the directory.
        """
        tree, parts = target
        usage = self._services.usage
        if sync is None:
            sync = self._services.sync
            dress(tree, self.fd, executable=executable, mtime_ns=mtime_ns)
        if sync:
            self.is_doubtful = True
            os.fsync(self.fd)
            self.is_doubtful = False
        before = os.fstat(self.fd)
        with Directories(tree) as dirs, _opened(self._folder) as folder:
            dirs.open(parts[:-1], create=True)
            if sync and dirs.made:
                dirs.sync_made()
            parent = dirs.open(parts[:-1])
            with usage.publishing(owner) as count:
                if only_new:
                    syscalls.rename_new(folder, self.name, parent, parts[-1])
                    count(before.st_size, 1)
                else:
                    part = (folder, self.name)
                    replace(*part, parent, parts[-1], before.st_size, count, over_links=over_links)
                self.is_named = True
                reservation.release()
            if sync:
                syscalls.sync_directory(parent)
        after = os.fstat(self.fd)
        if leaves is not None:
            self._services.digests.learn_published(before, after, leaves)
        return after

    def discard(self) -> None:
        try:
            os.unlink(self._folder / self.name)
        except FileNotFoundError:
            pass

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)
