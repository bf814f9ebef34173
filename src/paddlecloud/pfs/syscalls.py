"""Calls of the kernel that Python 3.11 does not offer, each with what happens where it lacks them.

Called by the store only. `syncfs` falls back to `os.sync` (which waits for every filesystem:
slower, never weaker), `rename_new` to a look before the rename, `write_out` to `fdatasync`;
`cached_bytes` says that it does not know, `allocate` that it cannot.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from typing import Any

_AT_NOREPLACE = 1
_WRITE = 2  # SYNC_FILE_RANGE_WRITE
_WRITE_AND_WAIT = 1 | _WRITE | 4  # SYNC_FILE_RANGE_WAIT_BEFORE | WRITE | WAIT_AFTER
_CACHESTAT = 451  # on every architecture but alpha; since Linux 6.5
_NOT_HERE = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)


def _find(name: str) -> Any:
    try:
        return getattr(ctypes.CDLL(None, use_errno=True), name)
    except (OSError, AttributeError):
        return None


_syncfs = _find("syncfs")
_renameat2 = _find("renameat2")
_sync_file_range = _find("sync_file_range")
_syscall = _find("syscall")
_fallocate = _find("fallocate")
if _sync_file_range is not None:
    _sync_file_range.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
if _fallocate is not None:
    _fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def has_syncfs() -> bool:
    return _syncfs is not None


def has_renameat2() -> bool:
    return _renameat2 is not None


def syncfs(fd: int) -> None:
    """Everything written to the filesystem of `fd` so far is on its medium when this returns."""
    if _syncfs is None:
        os.sync()
    elif _syncfs(fd) != 0:
        _raise()


def sync_directory(fd: int) -> bool:
    """The names in it survive a power cut; False where there is nothing to sync in a directory,
    as some FUSE mounts say."""
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
        return False
    return True


def rename_new(source_fd: int, source: str, target_fd: int, target: str) -> None:
    """Rename, unless something has the new name: then FileExistsError."""
    if _renameat2 is not None:
        names = (os.fsencode(source), os.fsencode(target))
        if _renameat2(source_fd, names[0], target_fd, names[1], _AT_NOREPLACE) == 0:
            return
        if ctypes.get_errno() not in _NOT_HERE:
            _raise()
    try:
        os.stat(target, dir_fd=target_fd, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)


def write_out(fd: int) -> None:
    """Clean the file's pages, so that the next write through a mapping changes its times again."""
    if _sync_file_range is not None:
        if _sync_file_range(fd, 0, 0, _WRITE_AND_WAIT) == 0:
            return
        if ctypes.get_errno() not in (*_NOT_HERE, errno.ESPIPE):
            _raise()
    os.fdatasync(fd)


def begin_writing_out(fd: int, offset: int, length: int) -> None:
    """Have the kernel begin to write these bytes, so that the fsync to come has little to wait for.

    Only a hint: where it is not possible, the fsync does all of it.
    """
    if _sync_file_range is not None:
        _sync_file_range(fd, offset, length, _WRITE)


def allocate(fd: int, offset: int, length: int) -> bool:
    """Give this part of a file its place on the disk, zeroed, and the file the length for it.

    False where the filesystem cannot: then every write finds its place by itself.
    """
    if _fallocate is None:
        return False
    if _fallocate(fd, 0, offset, length) == 0:
        return True
    if ctypes.get_errno() not in _NOT_HERE:
        _raise()
    return False


def cached_bytes(fd: int, offset: int, length: int) -> int | None:
    """How much of this part of a file is in the kernel's memory; None: nobody can tell."""
    asked = (ctypes.c_uint64 * 2)(offset, length)
    answer = (ctypes.c_uint64 * 5)()
    if _syscall is None or _syscall(_CACHESTAT, fd, asked, answer, 0) != 0:
        return None
    return int(answer[0]) * mmap.PAGESIZE


def _raise() -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))
