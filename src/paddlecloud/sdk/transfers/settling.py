"""Whether every write to a local file from now on will show in its times.

A digest that is to be believed later, by the file's times alone, may only be taken after this has
said yes. Two things hide a write. A clock that ticks slowly gives two writes the same time: so the
file must have been still for a while. And a program that has mapped the file writes again to a page
it has written before without any new time, until that page is on the disk: so the pages are written
out first. Where a file has been still for as long as the kernel keeps pages, that costs nothing.

It promises this on Linux, on file systems known to note the first write to a clean page; for others
(in memory, over a network, the layers of a container) it says no. Windows and macOS offer no such
promise: there a file that was still is believed, and a write through a mapping that the system has
not noted yet is missed. `local_files` calls it. It never changes a file.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Calls = tuple[Callable[[int], int], Callable[[int], bool]]

_IS_LINUX = sys.platform == "linux"
# Linux writes pages out by itself after 30 s, and looks every 5; before that, doing it for every
# file of a new tree would cost as much as sending it. Elsewhere it is the coarsest clock of a file
# system in use (FAT), which ticks every two seconds.
STILL_NS = 35_000_000_000 if _IS_LINUX else 2_100_000_000
# As statfs(2) calls them. Not here: tmpfs, NFS, SMB, FUSE, 9p, ZFS, and overlayfs, on which
# sync_file_range does nothing and says that it did.
_TELLING = frozenset(
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # XFS
        0x9123683E,  # Btrfs
        0xF2F52010,  # F2FS
    }
)
_WRITE_AND_WAIT = 1 | 2 | 4  # SYNC_FILE_RANGE_WAIT_BEFORE, _WRITE, _WAIT_AFTER
_STATFS_BYTES = 256  # more than the structure has anywhere

_calls: list[Calls] = []
_devices: dict[int, bool] = {}  # whether its file system tells


def is_settled(descriptor: int, info: os.stat_result) -> bool:
    """Of an open file and its state now. What is read after this is what the times stand for."""
    # Windows has no time of change; there mtime has to do.
    changed_ns = info.st_mtime_ns if os.name == "nt" else info.st_ctime_ns
    if changed_ns + STILL_NS > time.time_ns():
        return False
    if not _IS_LINUX:
        return True
    file_system_of, write_out = _kernel_calls()
    is_telling = _devices.get(info.st_dev)
    if is_telling is None:
        is_telling = _devices[info.st_dev] = file_system_of(descriptor) in _TELLING
    return is_telling and write_out(descriptor)


def _kernel_calls() -> Calls:
    """Loaded when the first file is read: most commands read none."""
    if not _calls:
        _calls.append(_load())
    return _calls[0]


def _load() -> Calls:
    try:
        import ctypes

        library = ctypes.CDLL(None, use_errno=True)
        fstatfs, sync_file_range = library.fstatfs, library.sync_file_range
    except (ImportError, OSError, AttributeError):
        return lambda _: 0, lambda _: False
    sync_file_range.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)

    def file_system_of(descriptor: int) -> int:
        facts = ctypes.create_string_buffer(_STATFS_BYTES)
        if fstatfs(descriptor, facts) != 0:
            return 0
        return int.from_bytes(facts.raw[:4], sys.byteorder)

    def write_out(descriptor: int) -> bool:
        return bool(sync_file_range(descriptor, 0, 0, _WRITE_AND_WAIT) == 0)

    return file_system_of, write_out
