"""Which of many files are here already, with the same bytes: the question before an upload.

Only looks below the base it is given, which the caller may read; answers by position. A file whose
size is right and whose digest nobody knows yet is read. About a whole folder the answer is "the
same" or "ask about its files": nothing is read for it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from paddlecloud.core.errors import Conflict, InvalidInput
from paddlecloud.pfs.digesting import Digests
from paddlecloud.pfs.directories import Directories, Parts
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.folder_digests import FolderDigests
from paddlecloud.pfs.relative_names import check_name, split
from paddlecloud.pfs.shapes import Comparison
from paddlecloud.wire.digests import is_digest

MOST_AT_ONCE = 50_000
Wanted = tuple[str, int, str]  # relative name, size in bytes, digest in hex
WantedFolder = tuple[str, int, str]  # relative name, how many files, digest in hex


class Comparing:
    """One comparison: `run` it once."""

    def __init__(self, tree: Tree, dirs: Directories, base: Parts, digests: Digests) -> None:
        self._tree = tree
        self._dirs = dirs
        self._base = base
        self._digests = digests
        self._missing: list[int] = []
        self._different: list[int] = []
        self._blocked: list[int] = []

    def run(self, files: Sequence[Wanted], folders: Sequence[WantedFolder] = ()) -> Comparison:
        for field, rows in (("files", files), ("folders", folders)):
            if len(rows) > MOST_AT_ONCE:
                raise InvalidInput(f"at most {MOST_AT_ONCE} {field} at once", field=field)
        others = self._other_folders(folders)
        for folder, positions in _by_folder(files).items():
            self._folder(folder, positions, files)
        for found in (self._missing, self._different, self._blocked):
            found.sort()
        return Comparison(self._missing, self._different, self._blocked, others)

    def _other_folders(self, folders: Sequence[WantedFolder]) -> list[int]:
        """Those that are not known to hold exactly the files that were meant."""
        if not folders:
            return []
        if len({row[0] for row in folders}) < len(folders):
            raise InvalidInput("a folder is there twice", field="folders")
        known = FolderDigests(self._tree, self._digests.index)
        others = []
        for position, (name, count, digest) in enumerate(folders):
            _check_row(name, count, digest, "folders")
            try:
                fd = self._dirs.open(self._base + (split(name) if name else ()))
                found = known.of(fd, count)
            except OSError:
                found = None
            if found is None or found.hex() != digest:
                others.append(position)
        known.keep()
        return others

    def _folder(self, folder: str, positions: list[int], files: Sequence[Wanted]) -> None:
        parts = self._base + (split(folder) if folder else ())
        try:
            fd = self._dirs.open(parts)
        except FileNotFoundError:
            self._missing += positions
            return
        except OSError:
            self._blocked += positions
            return
        same_size: list[int] = []
        many: list[os.stat_result] = []
        for position in positions:
            name, size_bytes, _ = files[position]
            facts = self._look(fd, name[len(folder) + 1 :] if folder else name, position)
            if facts is None:
                continue
            if facts.st_size != size_bytes:
                self._different.append(position)
                continue
            same_size.append(position)
            many.append(facts)
        self._contents(parts, same_size, self._digests.index.digests(many), files)

    def _look(self, fd: int, name: str, position: int) -> os.stat_result | None:
        check_name(name)
        try:
            facts = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            self._missing.append(position)
            return None
        if stat.S_ISREG(facts.st_mode) and self._tree.serves(facts):
            return facts
        self._blocked.append(position)
        return None

    def _contents(
        self,
        parts: Parts,
        positions: list[int],
        known: Sequence[bytes | None],
        files: Sequence[Wanted],
    ) -> None:
        for position, digest in zip(positions, known, strict=True):
            name, _, wanted = files[position]
            if digest is None:
                digest = self._read(parts, name.rpartition("/")[2], name)
            if digest is None or digest.hex() != wanted:
                self._different.append(position)

    def _read(self, parts: Parts, name: str, shown: str) -> bytes | None:
        """None: it went away or is being written; sending it again is never wrong."""
        try:
            fd, _ = self._tree.open_file_in(self._dirs.open(parts), name)
        except OSError:
            return None
        try:
            return self._digests.of(fd, shown)[1].digest
        except Conflict:
            return None
        finally:
            os.close(fd)


def _by_folder(files: Sequence[Wanted]) -> dict[str, list[int]]:
    folders: dict[str, list[int]] = {}
    for position, row in enumerate(files):
        name, size_bytes, digest = row
        _check_row(name, size_bytes, digest, "files")
        folders.setdefault(name.rpartition("/")[0], []).append(position)
    return folders


def _check_row(name: object, number: object, digest: object, field: str) -> None:
    if type(name) is not str or type(number) is not int or type(digest) is not str:
        raise InvalidInput("each must be [name, number, digest]", field=field)
    if not is_digest(digest):
        raise InvalidInput("a digest has 64 hex digits", field=field)
