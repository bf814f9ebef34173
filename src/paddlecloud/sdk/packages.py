"""What belongs to a package: a folder walked by its ignore rules.

It promises: only regular files and folders are taken, links are left out and named; what stays
behind is counted. `sdk.snapshots` calls it. It never reads a file but the rules, and never writes.
"""

from __future__ import annotations

import os
import stat
import unicodedata

from paddlecloud.core.errors import InvalidInput
from paddlecloud.sdk.ignoring import FILES, Rules
from paddlecloud.sdk.transfers.walking import Found, found

NOTES_SHOWN = 5
# Sizes of what stays behind are only for the eye: a huge folder is not counted to its end.
MOST_COUNTED = 50_000


def walk_package(path: str) -> PackageWalk:
    """What belongs to a package, by the ignore rules at its top."""
    if not os.path.isdir(path):
        what = "is a file" if os.path.exists(path) else "does not exist"
        raise InvalidInput(
            f"{path} {what}",
            hint="the package is the folder that holds your program",
            field="package",
        )
    walk = PackageWalk(path)
    walk.enter("")
    return walk


class PackageWalk:
    """The state of one walk through a folder."""

    def __init__(self, root: str) -> None:
        self.folders: list[str] = []
        self.found: list[Found] = []  # files, with what tells whether they change
        self.skipped: list[str] = []
        self.skipped_bytes = 0
        self.notes: list[str] = []
        self._root = root
        self._odd = 0
        self._counted = 0
        self._rules = Rules(*(_text(os.path.join(root, name)) for name in FILES))

    def enter(self, below: str) -> None:
        folder = os.path.join(self._root, below) if below else self._root
        try:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            raise _unreadable(folder, error) from error
        for entry in entries:
            self._take(entry, f"{below}/{entry.name}" if below else entry.name)

    def _take(self, entry: os.DirEntry[str], path: str) -> None:
        is_folder = entry.is_dir(follow_symlinks=False)
        if self._rules.is_ignored(path, is_folder=is_folder):
            self.skipped.append(path)
            self._count(entry, is_folder)
        elif entry.is_symlink():
            self._leave(f"{path} is a symbolic link and was not sent")
        elif is_folder:
            self.folders.append(_name(path))
            self.enter(path)
        else:
            self._add(entry, path)

    def _add(self, entry: os.DirEntry[str], path: str) -> None:
        try:
            # Not entry.stat(): on Windows it may be stale.
            info = os.stat(entry.path, follow_symlinks=False)
        except OSError as error:
            raise _unreadable(entry.path, error) from error
        if not stat.S_ISREG(info.st_mode):
            self._leave(f"{path} is no regular file and was not sent")
            return
        name = _name(path)
        self.found.append(found(name, entry.path, info))

    def _leave(self, note: str) -> None:
        self._odd += 1
        if self._odd <= NOTES_SHOWN:
            self.notes.append(note)
        elif self._odd == NOTES_SHOWN + 1:
            self.notes.append("more links or special files were not sent")

    def _count(self, entry: os.DirEntry[str], is_folder: bool) -> None:
        """Add up what stays behind; unreadable parts count as nothing."""
        self._counted += 1
        if self._counted > MOST_COUNTED:
            return
        try:
            if not is_folder:
                self.skipped_bytes += entry.stat(follow_symlinks=False).st_size
                return
            with os.scandir(entry.path) as scan:
                for inner in scan:
                    self._count(inner, inner.is_dir(follow_symlinks=False))
        except OSError:
            return


def _name(path: str) -> str:
    """The path as it is called on the server: one spelling of accents, whatever the disk's."""
    return unicodedata.normalize("NFC", path)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _unreadable(path: str, error: OSError) -> InvalidInput:
    return InvalidInput(f"cannot read {path}: {error.strerror}", field="package")
