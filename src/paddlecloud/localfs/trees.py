"""Deletes a tree, however deep or wide: no recursion, two descriptors, little memory.

A directory found inside is moved up to the top of the tree and waits its turn there, so the work
never goes deeper than one level. The tree must be out of everybody's reach, so that nothing can be
swapped under the work; links are removed, never followed. Work that was cut off is simply begun
again: all that is left is still below the same name.
"""

from __future__ import annotations

import itertools
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ENTRIES_AT_ONCE = 4096  # of one directory: nobody else's memory is filled by many names


@dataclass(frozen=True, slots=True)
class Totals:
    files: int = 0
    size_bytes: int = 0
    directories: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.files + other.files,
            self.size_bytes + other.size_bytes,
            self.directories + other.directories,
        )


def empty_and_remove(path: Path) -> Totals:
    """Delete `path`, a file or a directory; what was in it. One that is not there is fine."""
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
    top = _open(parent, name)
    try:
        found = _empty(top, top)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=parent)
    return found + Totals(directories=1)


def move(name: str, source: int, new: str, target: int) -> None:
    """Rename between two directories, also a directory to which a job took our rights."""
    try:
        os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)
    except PermissionError:
        # Moving a directory writes into it: its `..` changes. (For root there is nothing to take,
        # and a chmod might follow a link.)
        facts = os.stat(name, dir_fd=source, follow_symlinks=False)
        if os.geteuid() == 0 or not stat.S_ISDIR(facts.st_mode):
            raise
        os.chmod(name, 0o700, dir_fd=source)
        os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)


def _empty(folder: int, top: int) -> Totals:
    """Remove all that is in `folder`; directories in another than `top` are moved there."""
    files = size_bytes = 0
    below = Totals()
    while True:
        with os.scandir(folder) as entries:
            some = list(itertools.islice(entries, _ENTRIES_AT_ONCE))
        if not some:
            return below + Totals(files, size_bytes)
        for entry in some:
            if not entry.is_dir(follow_symlinks=False):
                if entry.is_file(follow_symlinks=False):
                    size_bytes += os.stat(entry.name, dir_fd=folder, follow_symlinks=False).st_size
                os.unlink(entry.name, dir_fd=folder)
                files += 1
            elif folder != top:
                move(entry.name, folder, f"gone-{secrets.token_hex(8)}", top)
            else:
                inner = _open(top, entry.name)
                try:
                    below += _empty(inner, top) + Totals(directories=1)
                finally:
                    os.close(inner)
                os.rmdir(entry.name, dir_fd=top)


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
