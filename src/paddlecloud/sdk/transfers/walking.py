"""Local folders, walked and listed for sending.

It promises: regular files and directories only; symbolic links and special files are left out and
noted (as rsync does without -l), never followed; names are what the other side will call them, in
Unicode NFC, and two local names that would become one are both refused. The transfers and
snapshots call it. It never opens a file.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from typing import NamedTuple

from paddlecloud.core.errors import Conflict, InvalidInput, PaddleCloudError
from paddlecloud.wire.pfspath import MAX_PART_BYTES, BadPath, check_part

PART_SUFFIX = ".pfs-part"  # an unfinished download of ours
NOTES_SHOWN = 5
_IS_WINDOWS = os.name == "nt"


class Found(NamedTuple):
    """A regular file and what tells whether it is still the same."""

    name: str  # relative to the base, in NFC, with "/"
    path: str  # as the operating system wants it
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    executable: bool


class Walk:
    """What one or several walks found. `failures` are names that cannot be sent at all."""

    def __init__(self) -> None:
        self.files: list[Found] = []
        self.folders: list[str] = []  # all of them, the empty ones too
        self.empty_folders: list[str] = []
        self.left_out: list[str] = []  # links, special files
        self.notes: list[str] = []
        self.failures: list[tuple[str, PaddleCloudError]] = []

    def add_file(self, path: str, name: str) -> None:
        """One file that was named by the user."""
        info = os.stat(path)
        if not stat.S_ISREG(info.st_mode):
            self._leave(path, name, "is no regular file")
            return
        self.files.append(found(name, path, info))

    def add_folder(self, path: str, name: str) -> None:
        """A folder with everything in it, called `name` in the target (empty: its contents)."""
        if name:
            self.folders.append(name)
        pending = [(path, name)]
        while pending:
            folder, prefix = pending.pop()
            try:
                with os.scandir(folder) as scan:
                    entries = list(scan)
            except OSError as error:
                self.failures.append((folder, unreadable(folder, error)))
                self.left_out.append(prefix)
                continue
            if not entries and prefix:
                self.empty_folders.append(prefix)
            self._take(entries, prefix + "/" if prefix else "", pending)

    def _take(
        self, entries: list[os.DirEntry[str]], prefix: str, pending: list[tuple[str, str]]
    ) -> None:
        names = [_sent_name(entry.name) for entry in entries]
        doubled = _doubled(names) if len(set(names)) != len(names) else frozenset()
        files = self.files
        for entry, name in zip(entries, names, strict=True):
            if name in doubled or not _is_plain(name):
                fault = _fault(entry, name in doubled)
                if fault is not None:
                    self.failures.append((entry.path, fault))
                    self.left_out.append(prefix + name)
                    continue
            try:
                if entry.is_symlink():
                    self._leave(entry.path, prefix + name, "is a symbolic link")
                elif entry.is_dir(follow_symlinks=False):
                    self.folders.append(prefix + name)
                    pending.append((entry.path, prefix + name))
                elif not entry.is_file(follow_symlinks=False):
                    self._leave(entry.path, prefix + name, "is no regular file")
                elif name.endswith(PART_SUFFIX) and name[0] == ".":
                    self._leave(entry.path, prefix + name, "is an unfinished download")
                else:
                    # On Windows what scandir knows may be stale and lacks the inode.
                    info = (
                        os.lstat(entry.path) if _IS_WINDOWS else entry.stat(follow_symlinks=False)
                    )
                    files.append(found(prefix + name, entry.path, info))
            except OSError as error:
                self.failures.append((entry.path, unreadable(entry.path, error)))
                self.left_out.append(prefix + name)

    def _leave(self, path: str, name: str, why: str) -> None:
        self.left_out.append(name)
        if len(self.notes) < NOTES_SHOWN:
            self.notes.append(f"{path} {why} and was left out")
        elif len(self.notes) == NOTES_SHOWN:
            self.notes.append("more links or special files were left out")


def found(name: str, path: str, info: os.stat_result) -> Found:
    return Found(
        name,
        path,
        info.st_size,
        info.st_mtime_ns,
        info.st_ctime_ns,
        info.st_ino,
        not _IS_WINDOWS and bool(info.st_mode & stat.S_IXUSR),
    )


def is_same(file: Found, info: os.stat_result) -> bool:
    """Whether the file still is what it was when it was found."""
    return (file.size_bytes, file.mtime_ns, file.inode) == (
        info.st_size,
        info.st_mtime_ns,
        info.st_ino,
    )


def sent_path(path: str) -> str:
    """A local name as the other side spells it."""
    return path if path.isascii() else unicodedata.normalize("NFC", path)


_sent_name = sent_path


def _is_plain(name: str) -> bool:
    return name.isascii() and name.isprintable() and len(name) <= MAX_PART_BYTES


def _doubled(names: list[str]) -> frozenset[str]:
    return frozenset(name for name in names if names.count(name) > 1)


def _fault(entry: os.DirEntry[str], is_doubled: bool) -> PaddleCloudError | None:
    if is_doubled:
        return Conflict(
            f"{_shown(entry.path)} and another name beside it differ only in how their accents "
            "are spelled, and would become one file",
            hint="rename one of them",
            field=_shown(entry.path),
        )
    try:
        check_part(_sent_name(entry.name))
    except BadPath as error:
        return InvalidInput(f"{_shown(entry.path)}: {error.message}", field=_shown(entry.path))
    return None


def _shown(path: str) -> str:
    """The path with what is no text made visible."""
    return path.encode("utf-8", "backslashreplace").decode()


def unreadable(path: str, error: OSError) -> PaddleCloudError:
    path = _shown(path)
    return InvalidInput(f"cannot read {path}: {error.strerror or error}", field=path)
