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
from collections.abc import Callable
from typing import NamedTuple

from paddlecloud.core.errors import Conflict, InvalidInput, PaddleCloudError
from paddlecloud.wire.pfspath import BadPath, check_part

PART_SUFFIX = ".pfs-part"  # an unfinished download of ours
NOTES_SHOWN = 5
_IS_WINDOWS = os.name == "nt"
_EXECUTABLE = stat.S_IXUSR


class Found(NamedTuple):
    """A regular file and what tells whether it is still the same."""

    name: str  # relative to the base, in NFC, with "/"
    path: str  # as the operating system wants it
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    executable: bool


class FoundFolder(NamedTuple):
    """The files directly in a folder stand beside each other in `Walk.files`."""

    path: str
    name: str  # relative to the base; empty is the base itself
    start: int
    end: int


class Walk:
    """What one or several walks found. `failures` are names that cannot be sent at all.

    `on_folder` is called after each folder that was read: what has been found can be used already.
    """

    def __init__(self, on_folder: Callable[[FoundFolder], None] = lambda _: None) -> None:
        self._on_folder = on_folder
        self.files: list[Found] = []
        self.folders: list[str] = []  # all of them, the empty ones too
        self.empty_folders: list[str] = []
        self.left_out: list[str] = []  # links, special files
        self.notes: list[str] = []
        self.failures: list[tuple[str, PaddleCloudError]] = []

    def add_source(self, path: str, name: str, *, is_folder: bool) -> None:
        """What the user named, if it can be called that there; empty: a folder's contents."""
        name = sent_path(name)
        fault = _name_fault(path, name) if name else None
        if fault is not None:
            self.failures.append((path, fault))
            self.left_out.append(name)
        elif is_folder:
            self.add_folder(path, name)
        else:
            self.add_file(path, name)

    def add_file(self, path: str, name: str) -> None:
        try:
            info = os.stat(path)
        except OSError as error:  # gone since somebody looked
            self.failures.append((path, unreadable(path, error)))
            self.left_out.append(name)
            return
        if not stat.S_ISREG(info.st_mode):
            self._leave(path, name, "is no regular file")
            return
        self.files.append(found(name, path, info))

    def add_folder(self, path: str, name: str) -> None:
        """With everything in it, called `name` in the target (empty: its contents)."""
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
            start = len(self.files)
            self._take(entries, prefix + "/" if prefix else "", pending)
            self._on_folder(FoundFolder(folder, prefix, start, len(self.files)))

    def _take(
        self, entries: list[os.DirEntry[str]], prefix: str, pending: list[tuple[str, str]]
    ) -> None:
        """The entries of one folder. This is the loop that a tree of many files spends time in."""
        entries.sort(key=_name_of)
        add = self.files.append
        doubled = self._doubled(entries)
        for entry in entries:
            name = entry.name
            try:
                if not (name.isascii() and name.isprintable()) or name[0] == "." or doubled:
                    sent = self._odd_name(entry, prefix, doubled)
                    if sent is None:
                        continue
                    name = sent
                if entry.is_file(follow_symlinks=False):
                    # On Windows what scandir knows may be stale and lacks the inode.
                    info = (
                        _stat_windows(entry) if _IS_WINDOWS else entry.stat(follow_symlinks=False)
                    )
                    add(found(prefix + name, entry.path, info))
                elif entry.is_dir(follow_symlinks=False):
                    self.folders.append(prefix + name)
                    pending.append((entry.path, prefix + name))
                elif entry.is_symlink():
                    self._leave(entry.path, prefix + name, "is a symbolic link")
                else:
                    self._leave(entry.path, prefix + name, "is no regular file")
            except OSError as error:
                self.failures.append((entry.path, unreadable(entry.path, error)))
                self.left_out.append(prefix + name)

    def _doubled(self, entries: list[os.DirEntry[str]]) -> frozenset[str]:
        """Names that two entries would both have on the other side."""
        odd = [entry.name for entry in entries if not entry.name.isascii()]
        if not odd:
            return frozenset()
        names = [sent_path(name) for name in odd]
        return frozenset(name for name in names if names.count(name) > 1)

    def _odd_name(
        self, entry: os.DirEntry[str], prefix: str, doubled: frozenset[str]
    ) -> str | None:
        """What a name that is not plain is called there; None when it cannot go."""
        name = sent_path(entry.name)
        fault = _fault(entry, name in doubled)
        if fault is not None:
            self.failures.append((entry.path, fault))
            self.left_out.append(prefix + name)
            return None
        if name.endswith(PART_SUFFIX) and entry.is_file(follow_symlinks=False):
            self._leave(entry.path, prefix + name, "is an unfinished download")
            return None
        return name

    def _leave(self, path: str, name: str, why: str) -> None:
        self.left_out.append(name)
        if len(self.notes) < NOTES_SHOWN:
            self.notes.append(f"{path} {why} and was left out")
        elif len(self.notes) == NOTES_SHOWN:
            self.notes.append("more links or special files were left out")


def found(name: str, path: str, info: os.stat_result) -> Found:
    is_executable = not _IS_WINDOWS and info.st_mode & _EXECUTABLE != 0
    # Straight to the tuple: there are tens of thousands of them.
    return tuple.__new__(
        Found,
        (
            name,
            path,
            info.st_size,
            info.st_mtime_ns,
            info.st_ctime_ns,
            info.st_ino,
            is_executable,
        ),
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


def _name_of(entry: os.DirEntry[str]) -> str:
    return entry.name


def _stat_windows(entry: os.DirEntry[str]) -> os.stat_result:
    return os.lstat(entry.path)


def _fault(entry: os.DirEntry[str], is_doubled: bool) -> PaddleCloudError | None:
    if is_doubled:
        return Conflict(
            f"{_shown(entry.path)} and another name beside it differ only in how their accents "
            "are spelled, and would become one file",
            hint="rename one of them",
            field=_shown(entry.path),
        )
    return _name_fault(entry.path, sent_path(entry.name))


def _name_fault(path: str, name: str) -> PaddleCloudError | None:
    """Why nothing there can be called this; None when it can."""
    try:
        check_part(name)
    except BadPath as error:
        return InvalidInput(f"{_shown(path)}: {error.message}", field=_shown(path))
    return None


def _shown(path: str) -> str:
    """The path with what is no text made visible."""
    return path.encode("utf-8", "backslashreplace").decode()


def unreadable(path: str, error: OSError) -> PaddleCloudError:
    path = _shown(path)
    return InvalidInput(f"cannot read {path}: {error.strerror or error}", field=path)
