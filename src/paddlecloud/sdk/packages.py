"""A folder on its way to the server: walked, listed, digested, streamed.

It promises: the same folder gives the same digest on every machine; only regular files and
folders are sent, links are left out and named; the files are streamed, never held in memory. The
client and `submit` call it. It never writes, and never sends a file that changed meanwhile.
"""

from __future__ import annotations

import hashlib
import os
import stat
import unicodedata
from collections.abc import Callable, Iterator

from paddlecloud.core.errors import Conflict, InvalidInput
from paddlecloud.sdk.ignoring import FILES, Rules
from paddlecloud.sdk.transfers.walking import Found, found
from paddlecloud.wire import package as wire

READ_BYTES = 1 << 18
NOTES_SHOWN = 5
# Sizes of what stays behind are only for the eye: a huge folder is not counted to its end.
MOST_COUNTED = 50_000


class Package:
    """A collected folder. `digest` is its name on the server."""

    def __init__(
        self, root: str, manifest: wire.Manifest, sources: dict[str, str], walk: PackageWalk
    ) -> None:
        self.root = root
        self.manifest = manifest
        self.files = len(manifest.files)
        self.bytes = manifest.total_bytes
        self.skipped = walk.skipped  # what was left behind, as shown to the user
        self.skipped_bytes = walk.skipped_bytes
        self.notes = walk.notes
        self._sources = sources
        self._header = wire.encode_header(manifest)
        self.size_bytes = len(self._header) + self.bytes  # of the whole stream
        self.digest = self._digest()

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for piece in self.stream():
            digest.update(piece)
        return digest.hexdigest()

    def stream(self, on_sent: Callable[[int], None] = lambda sent: None) -> Iterator[bytes]:
        """The package's bytes; `on_sent` is told how many have been taken so far."""
        sent = len(self._header)
        yield self._header
        for file in self.manifest.files:
            for piece in _pieces(self._sources[file.path], file):
                sent += len(piece)
                yield piece
                on_sent(sent)


def _pieces(source: str, file: wire.File) -> Iterator[bytes]:
    left = file.size_bytes
    try:
        with open(source, "rb") as opened:
            while left:
                piece = opened.read(min(READ_BYTES, left))
                if not piece:
                    break
                left -= len(piece)
                yield piece
            if left or opened.read(1):
                raise Conflict(
                    f"{file.path} changed while it was read", hint="submit again when it is still"
                )
    except OSError as error:
        raise _unreadable(source, error) from error


def collect(path: str) -> Package:
    """Walk a folder and digest it; what cannot be sent is refused by name."""
    walk = walk_package(path)
    manifest = wire.make_manifest(walk.files, walk.folders)
    return Package(path, manifest, walk.sources, walk)


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
        self.files: list[wire.File] = []
        self.folders: list[str] = []
        self.sources: dict[str, str] = {}  # path in the package → path on disk
        self.found: list[Found] = []  # the same files, with what tells whether they change
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
        self.files.append(wire.File(name, info.st_size, bool(info.st_mode & stat.S_IXUSR)))
        self.sources[name] = entry.path
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
