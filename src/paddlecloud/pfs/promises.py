"""What the mounted storage promises, tried out when the store opens.

The root may be any mounted POSIX storage. Without a rename that replaces and an fsync that works
nothing we acknowledge would be safe, so their lack is refused with a sentence. The rest is a fact
to work with: how fine file times are decides when a cached digest may be believed. A full disk
refuses nothing: reads go on, and what could not be tried is taken to be the worst.
"""

from __future__ import annotations

import errno
import itertools
import mmap
import os
import secrets
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paddlecloud import clock
from paddlecloud.core.errors import Unavailable
from paddlecloud.pfs import syscalls

_FINE_NS = 500_000  # no coarse clock of a kernel ticks faster
_LONGEST_TICK_S = 2.2  # FAT has 2 s
_NEVER_NS = 1 << 62


@dataclass(frozen=True, slots=True)
class Times:
    """How far the times of a file tell one state of it from another.

    `tick_ns` 0: two states that were both looked at never have the same times (Linux 6.13 and
    newer on the usual filesystems). Else two writes within a tick may look the same.
    """

    tick_ns: int
    mapped_writes_show: bool = True

    def tell(self, ctime_ns: int, looked_at_ns: int) -> bool:
        """Whether a change after the look must show in the times."""
        if not self.mapped_writes_show:
            return False
        return self.tick_ns == 0 or ctime_ns + self.tick_ns < looked_at_ns

    def tell_writes(self, ctime_ns: int, looked_at_ns: int) -> bool:
        """The same for writes other than through a mapping: what an ETag stands for."""
        tick_ns = min(self.tick_ns, int(_LONGEST_TICK_S * 1e9))
        return tick_ns == 0 or ctime_ns + tick_ns < looked_at_ns

    def tell_published(self, mtime_ns: int, ctime_ns: int) -> bool:
        """The same for a file nobody else could write before it got its name at `ctime_ns`."""
        if not self.mapped_writes_show:
            return False
        return self.tick_ns == 0 or mtime_ns + self.tick_ns < ctime_ns


WORST = Times(_NEVER_NS, mapped_writes_show=False)


@dataclass(frozen=True, slots=True)
class Promises:
    times: Times
    rename_replaces: bool = True
    rename_refuses_to_replace: bool = True  # else looked up first: not safe against a job
    directory_sync: bool = True
    one_sync_for_all: bool = True  # syncfs; else os.sync
    case_sensitive: bool = True
    keeps_names: bool = True  # gives back the bytes of a name as they were written
    tried: bool = True  # False: the disk was full

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def check(folder: Path, *, sync: bool = True) -> Promises:
    """Try everything in a new directory below `folder`, and remove it."""
    probe = folder / f"probe-{secrets.token_hex(8)}"
    try:
        os.mkdir(probe, 0o700)
        return _check(probe, sync)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return Promises(WORST, tried=False)
        raise Unavailable(
            f"the storage at {folder.parent} cannot keep files safely: {error.strerror}",
            hint="it must offer mkdir, rename over an existing file, and fsync",
        ) from error
    finally:
        shutil.rmtree(probe, ignore_errors=True)


def _check(probe: Path, sync: bool) -> Promises:
    fd = os.open(probe, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _rename(probe)
        return Promises(
            times=_times(probe),
            rename_refuses_to_replace=_refuses_to_replace(probe, fd),
            directory_sync=syscalls.sync_directory(fd) if sync else True,
            one_sync_for_all=syscalls.has_syncfs(),
            case_sensitive=_case_sensitive(probe),
            keeps_names=_keeps_names(probe),
        )
    finally:
        os.close(fd)


def _rename(probe: Path) -> None:
    old, new = probe / "old", probe / "new"
    old.write_bytes(b"old")
    with new.open("wb") as file:
        file.write(b"new")
        file.flush()
        os.fsync(file.fileno())
        number = os.fstat(file.fileno()).st_ino
    os.rename(new, old)
    if old.read_bytes() != b"new" or new.exists() or os.stat(old).st_ino != number:
        raise OSError(errno.EOPNOTSUPP, "rename does not replace a file as a whole")


def _refuses_to_replace(probe: Path, fd: int) -> bool:
    (probe / "first").write_bytes(b"first")
    (probe / "second").write_bytes(b"second")
    try:
        syscalls.rename_new(fd, "first", fd, "second")
    except FileExistsError:
        return syscalls.has_renameat2()
    return False


def _case_sensitive(probe: Path) -> bool:
    (probe / "case").write_bytes(b"")
    return not (probe / "CASE").exists()


def _keeps_names(probe: Path) -> bool:
    folder = probe / "names"
    folder.mkdir()
    composed, decomposed = "\u00e9", "e\u0301"
    for name in (composed, decomposed):
        (folder / name).write_bytes(b"")
    return sorted(os.listdir(folder)) == sorted((composed, decomposed))


def _times(probe: Path) -> Times:
    fd = os.open(probe / "times", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(fd, mmap.PAGESIZE)
        tick_ns = _tick_ns(fd)
        return Times(tick_ns, mapped_writes_show=_mapped_writes_show(fd, tick_ns))
    finally:
        os.close(fd)


def _tick_ns(fd: int) -> int:
    """0 where every write that follows a look changes the time; else a generous tick."""
    stamps = []
    for number in range(64):
        os.pwrite(fd, bytes((number,)), 0)
        stamps.append(os.fstat(fd).st_ctime_ns)
    steps = [later - earlier for earlier, later in itertools.pairwise(stamps)]
    if 0 < min(steps) < _FINE_NS:
        return 0
    deadline = time.monotonic() + _LONGEST_TICK_S
    changes: list[int] = []
    last = stamps[-1]
    while len(changes) < 3 and time.monotonic() < deadline:
        time.sleep(0.0005)
        os.pwrite(fd, b"x", 0)
        now = os.fstat(fd).st_ctime_ns
        if now != last:
            changes.append(now - last)
            last = now
    if not changes:
        return _NEVER_NS
    skew_ns = abs(clock.now_ns() - last)  # the storage may have a clock of its own
    return 2 * max(changes) + skew_ns


def _mapped_writes_show(fd: int, tick_ns: int) -> bool:
    """Whether a write through a mapping changes the times, once the pages were written out."""
    if tick_ns >= _NEVER_NS:
        return False
    with mmap.mmap(fd, mmap.PAGESIZE) as mapping:
        mapping[0] = 1
        syscalls.write_out(fd)
        before = os.fstat(fd)
        time.sleep(tick_ns / 1e9)
        mapping[0] = 2
        after = os.fstat(fd)
    return (before.st_mtime_ns, before.st_ctime_ns) != (after.st_mtime_ns, after.st_ctime_ns)
