"""Deletes a tree that was set aside, however deep: no recursion, few descriptors.

A directory found inside is moved up next to the one it was in and waits its turn, so the work
never goes deeper than one level. The folder must be ours (nobody else reaches it), so nothing can
be swapped under the work; links are removed, never followed.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from paddlecloud.pfs.usage import Totals

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def empty_and_remove(path: Path) -> Totals:
    """Delete `path`, a file or a directory; what was in it."""
    parent = os.open(path.parent, _DIRECTORY)
    try:
        return remove_in(parent, path.name)
    finally:
        os.close(parent)


def remove_in(parent: int, name: str) -> Totals:
    try:
        os.unlink(name, dir_fd=parent)
        return Totals(files=1)
    except FileNotFoundError:
        return Totals()
    except (IsADirectoryError, PermissionError):
        pass
    files = size_bytes = directories = 0
    waiting = [name]
    while waiting:
        folder = waiting.pop()
        fd = _open(parent, folder)
        try:
            with os.scandir(fd) as entries:
                for entry in list(entries):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(_move_up(fd, entry.name, parent))
                        continue
                    if entry.is_file(follow_symlinks=False):
                        size_bytes += os.stat(entry.name, dir_fd=fd, follow_symlinks=False).st_size
                    os.unlink(entry.name, dir_fd=fd)
                    files += 1
        finally:
            os.close(fd)
        os.rmdir(folder, dir_fd=parent)
        directories += 1
    return Totals(files, size_bytes, directories)


def _open(parent: int, name: str) -> int:
    try:
        fd = os.open(name, _DIRECTORY, dir_fd=parent)
    except PermissionError:  # not root, and a job took our rights to its directory
        if os.geteuid() == 0:
            raise
        os.chmod(name, 0o700, dir_fd=parent)
        return os.open(name, _DIRECTORY, dir_fd=parent)
    if os.geteuid() != 0:
        os.fchmod(fd, 0o700)
    return fd


def _move_up(fd: int, name: str, parent: int) -> str:
    new = f"gone-{secrets.token_hex(8)}"
    try:
        os.rename(name, new, src_dir_fd=fd, dst_dir_fd=parent)
    except PermissionError:  # moving a directory writes into it: its `..` changes
        if os.geteuid() == 0:
            raise
        os.chmod(name, 0o700, dir_fd=fd)
        os.rename(name, new, src_dir_fd=fd, dst_dir_fd=parent)
    return new
