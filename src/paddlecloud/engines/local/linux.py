"""What Linux says about processes and this machine, and calls Python lacks.

Small, without state, without policy. Callers are the modules of this package.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from pathlib import Path

_FALLOC_FL_KEEP_SIZE = 1
_FALLOC_FL_PUNCH_HOLE = 2
_IN_MODIFY = 2
_SYS_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_VERSION = 1  # the flag that asks for it
_INOTIFY_EVENT = struct.Struct("iIII")  # watch number, mask, cookie, bytes of name

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


def boot_id() -> str:
    """Changes with every boot: a pid recorded under another one names nothing."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_ticks(pid: int) -> int | None:
    """When the process began, in clock ticks since boot; None if there is no such process.

    Together with the pid and the boot id it names one process for ever.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    return int(stat.rpartition(b")")[2].split()[19])


def punch_hole(fd: int, start: int, length: int) -> None:
    """Give the disk space of a range back; the file keeps its size and reads zeros there."""
    mode = _FALLOC_FL_PUNCH_HOLE | _FALLOC_FL_KEEP_SIZE
    if _libc.fallocate(fd, mode, start, length) != 0:
        _raise_errno()


def is_locked(path: Path) -> bool:
    """Whether some process still holds the lock that `spawning` put on this file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def inotify_open() -> int:
    """A descriptor that tells of changes in files; raises OSError where there are too many."""
    fd = int(_libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
    if fd < 0:
        _raise_errno()
    return fd


def inotify_watch(fd: int, path: Path) -> int:
    """Be told when the file is written; the same file has the same number."""
    number = int(_libc.inotify_add_watch(fd, os.fsencode(path), _IN_MODIFY))
    if number < 0:
        _raise_errno()
    return number


def inotify_unwatch(fd: int, number: int) -> None:
    _libc.inotify_rm_watch(fd, number)


def inotify_read(fd: int) -> set[int]:
    """The numbers of the files that changed since the last call."""
    try:
        data = os.read(fd, 2**16)
    except BlockingIOError:
        return set()
    found, at = set(), 0
    while at < len(data):
        number, _, _, name_bytes = _INOTIFY_EVENT.unpack_from(data, at)
        found.add(number)
        at += _INOTIFY_EVENT.size + name_bytes
    return found


def can_scope_abstract_sockets() -> bool:
    """Whether the shim can keep a program from the machine's abstract sockets (Linux 6.12)."""
    return int(_libc.syscall(_SYS_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION)) >= 6


def _raise_errno() -> None:
    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code))
