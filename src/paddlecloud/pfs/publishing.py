"""The moment a finished part gets its name: who pays for it, what it replaces, what is remembered.

Uploads, batches, copies and old chunk writes end here. The rename and the counting happen under
the account's lock, so two writers of one path are counted right and one of them wins whole.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

from paddlecloud.core.errors import Conflict
from paddlecloud.pfs.diskstore import Tree

PLAIN_MODE = 0o600
EXECUTABLE_MODE = 0o700
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
) -> None:
    """Rename the part over whatever file is there; the account's lock is held."""
    old_bytes, old_files = standing(target_fd, name)
    os.rename(part, name, src_dir_fd=part_fd, dst_dir_fd=target_fd)
    count(size_bytes - old_bytes, 1 - old_files)


def standing(target_fd: int, name: str) -> tuple[int, int]:
    """(bytes, files) that stand under the name now; refuses what a file cannot replace."""
    try:
        facts = os.stat(name, dir_fd=target_fd, follow_symlinks=False)
    except FileNotFoundError:
        return 0, 0
    if stat.S_ISREG(facts.st_mode):
        return facts.st_size, 1
    if stat.S_ISDIR(facts.st_mode):
        raise Conflict(f"{name} is a directory", field="path")
    raise Conflict(
        f"{name} is a link or a device", field="path", hint="remove it first (paddlecloud pfs rm)"
    )


def sync_directory(fd: int) -> None:
    """Some FUSE mounts have nothing to sync in a directory and say so."""
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
