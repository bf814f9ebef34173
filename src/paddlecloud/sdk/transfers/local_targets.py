"""Writing below a local directory and nowhere else.

It promises: a name from the server becomes a path only if it cannot lead out of the directory and
this operating system can hold it; a symbolic link below the directory is never followed (the
directory itself, which the user named, may be one): a link in the place of a directory is refused,
in the place of a file it is replaced. A file appears whole: written beside its place under a name
of its own, then renamed. It is not synced: after a power failure run the same command again. It
does not defend against somebody else changing the same directory at the same moment. Called by
downloading.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Iterable, Iterator

from paddlecloud.core.errors import Conflict, InvalidInput, PaddleCloudError
from paddlecloud.sdk.transfers.local_files import LocalFault, cannot
from paddlecloud.sdk.transfers.walking import PART_SUFFIX, sent_path

MAX_NAME_BYTES = 255
_RESERVED = {"CON", "PRN", "AUX", "NUL"} | {f"{n}{i}" for n in ("COM", "LPT") for i in range(1, 10)}
_WINDOWS_SIGNS = frozenset('<>:"|?*\\')
_FOLDS_CASE = os.name == "nt" or sys.platform == "darwin"
_O_BINARY = getattr(os, "O_BINARY", 0)
_O_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)


def refusal(name: str, *, is_windows: bool = os.name == "nt") -> PaddleCloudError | None:
    """Why a name from the server cannot become a local path; None when it can."""
    shown = name[:200]
    if not name or name.startswith("/") or "\0" in name:
        return InvalidInput(f"the server gave {shown!r}, which is no relative name", field=shown)
    for part in name.split("/"):
        if part in ("", ".", ".."):
            return InvalidInput(f"the server gave {shown!r}, which leads elsewhere", field=shown)
        if is_windows and (why := _windows_fault(part)):
            return InvalidInput(
                f"{shown} {why}, which Windows does not allow in a name",
                hint="rename it on the server: paddlecloud pfs mv",
                field=shown,
            )
    return None


def _windows_fault(part: str) -> str:
    if any(sign in _WINDOWS_SIGNS or sign < " " for sign in part):
        return f"has one of {' '.join(sorted(_WINDOWS_SIGNS))}"
    if part[-1] in ". ":
        return "ends in a dot or a blank"
    if part.split(".")[0].rstrip().upper() in _RESERVED:
        return "is the name of a device"
    return ""


def key_here(name: str) -> str:
    """The same for two names that mean one file to the other side or to this file system."""
    name = sent_path(name)
    return name.casefold() if _FOLDS_CASE else name


def part_path(path: str) -> str:
    """Where an unfinished file waits: `.NAME.pfs-part` beside it, shortened if it must be."""
    folder, name = os.path.split(path)
    part = f".{name}{PART_SUFFIX}"
    if len(os.fsencode(part)) > MAX_NAME_BYTES:
        import hashlib

        part = f".{hashlib.sha256(os.fsencode(name)).hexdigest()}{PART_SUFFIX}"
    return os.path.join(folder, part)


class LocalTarget:
    """A directory that files are put into. Safe to use from several threads."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._ready: set[str] = set()
        self._spelled: dict[str, str] = {}
        self._lock = threading.Lock()

    def path(self, name: str) -> str:
        if not name:
            return self.root
        parts = name.split("/")
        if self._spelled:
            whole = ""
            for number, part in enumerate(parts):
                whole = f"{whole}/{part}" if whole else part
                parts[number] = self._spelled.get(whole, part)
        return os.path.join(self.root, *parts)

    def spell(self, name: str, path: str) -> None:
        """What has this name is here already, and its path may spell the accents otherwise.

        Then it is written where it is, not beside itself.
        """
        if name.isascii():
            return
        parts = name.split("/")
        whole = ""
        for part, here in zip(parts, path.split(os.sep)[-len(parts) :], strict=False):
            whole = f"{whole}/{part}" if whole else part
            if part != here:
                self._spelled[whole] = here

    def tops(self, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """First parts of names, with the paths of what is here for them."""
        wanted = set(names)
        if any(not name.isascii() for name in wanted):
            here = set(os.listdir(self.root))
            for entry in here:
                name = sent_path(entry)
                if name in wanted and name not in here:
                    self._spelled[name] = entry
        for name in wanted:
            yield name, self.path(name)

    def prepare(self, name: str) -> str:
        """The path for a file, its directories made and checked."""
        folder = name.rpartition("/")[0]
        if folder not in self._ready:
            self.make_folder(folder)
        return self.path(name)

    def make_folder(self, name: str) -> bool:
        """A directory and its parents; whether it was not there before."""
        with self._lock:
            if "" not in self._ready:
                self._make_root()
            made = False
            at = ""
            for part in name.split("/") if name else ():
                at = f"{at}/{part}" if at else part
                if at not in self._ready:
                    made = self._step(self.path(at))
                    self._ready.add(at)
            return made

    def _make_root(self) -> None:
        try:
            os.makedirs(self.root, exist_ok=True)
        except OSError as error:
            raise cannot("make", self.root, error) from error
        self._ready.add("")

    def _step(self, path: str) -> bool:
        try:
            os.mkdir(path)
            return True
        except FileExistsError:
            pass
        except OSError as error:
            raise cannot("make", path, error) from error
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode):
            return False
        what = "a symbolic link, which is not followed" if stat.S_ISLNK(mode) else "no directory"
        raise LocalFault(
            Conflict(f"{path} is {what}", hint="remove it, or choose another target", field=path)
        )

    def put_small(
        self, name: str, data: bytes, *, executable: bool, mtime_ns: int | None, tag: str
    ) -> None:
        """One whole file. `tag` keeps several writers' unfinished files apart."""
        path = self.prepare(name)
        part = os.path.join(os.path.dirname(path), f".{os.getpid()}-{tag}{PART_SUFFIX}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _O_NOFOLLOW | _O_BINARY
        try:
            descriptor = os.open(part, flags, 0o777 if executable else 0o666)
            try:
                write_all(descriptor, data)
            finally:
                os.close(descriptor)
            if mtime_ns is not None:
                os.utime(part, ns=(mtime_ns, mtime_ns))
            os.replace(part, path)
        except OSError as error:
            try:
                os.unlink(part)
            except OSError:
                pass
            raise cannot("write", path, error) from error


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])


class Part:
    """An unfinished large file beside its place; what is in it is kept over cuts."""

    def __init__(self, path: str, *, executable: bool) -> None:
        self.target = path
        self.path = part_path(path)
        self._executable = executable
        flags = os.O_RDWR | os.O_CREAT | _O_NOFOLLOW | _O_BINARY
        try:
            self._lock = os.open(self.path, flags, 0o777 if executable else 0o666)
            if not _lock(self._lock):
                os.close(self._lock)
                # Another program fetches the same file: each has its own, the last one wins.
                self.path = f"{self.path.removesuffix(PART_SUFFIX)}.{os.getpid()}{PART_SUFFIX}"
                self._lock = os.open(self.path, flags, 0o777 if executable else 0o666)
            self.size_bytes = os.fstat(self._lock).st_size
        except OSError as error:
            raise cannot("write", self.path, error) from error

    def finish(self, size_bytes: int, mtime_ns: int | None) -> None:
        """Give it its name."""
        try:
            os.truncate(self.path, size_bytes)
            mode = stat.S_IMODE(os.stat(self.path).st_mode)
            wanted = mode_of(mode, executable=self._executable)
            if wanted != mode and os.name != "nt":
                os.chmod(self.path, wanted)
            if mtime_ns is not None:
                os.utime(self.path, ns=(mtime_ns, mtime_ns))
            if os.name == "nt":
                self.close()  # an open file cannot be renamed there
            os.replace(self.path, self.target)
        except OSError as error:
            raise cannot("write", self.target, error) from error
        finally:
            self.close()

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def mode_of(mode: int, *, executable: bool) -> int:
    """Who may read it may run it, or nobody may."""
    return mode | (mode & 0o444) >> 2 if executable else mode & ~0o111


def _lock(descriptor: int) -> bool:
    """Hold the file for as long as it is open here; False when another program holds it."""
    try:
        import fcntl
    except ImportError:
        import msvcrt  # Windows

        try:
            os.lseek(descriptor, 2**62, os.SEEK_SET)  # a byte nobody will ever write
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
