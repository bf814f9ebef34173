"""The digest of the files directly in a folder, without looking at the files one by one.

Each file's facts are looked at, as always; what is remembered in the index is the digest that goes
with all of them together. So it is believed exactly as long as each file's own digest would be,
and a folder of a thousand unchanged files costs one row instead of a thousand. Never reads a file.
"""

from __future__ import annotations

import os
import struct

from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.index import FolderRow, Index
from paddlecloud.wire.digests import folder_digest, leaf_hash

_FACTS = struct.Struct("<QQqqH")
_EXECUTABLE = 0o100


class FolderDigests:
    """For one piece of work: `of` any number of folders, then `keep` what was learnt."""

    def __init__(self, tree: Tree, index: Index) -> None:
        self._tree = tree
        self._index = index
        self._learnt: list[FolderRow] = []

    def of(self, fd: int, count: int) -> bytes | None:
        """None when it does not hold exactly `count` files, or one of them is not known.

        Files of another device never are: see `index`.
        """
        names, many = self._look(fd, count)
        device = self._index.device
        if len(names) != count or any(facts.st_dev != device for facts in many):
            return None
        inode, state = os.fstat(fd).st_ino, _state(names, many)
        found = self._index.folder(inode, state)
        if found is None:
            found = self._from_files(names, many)
            if found is not None:
                self._learnt.append((inode, state, found))
        return found

    def keep(self) -> None:
        self._index.learn_folders(self._learnt)
        self._learnt = []

    def _look(self, fd: int, count: int) -> tuple[list[str], list[os.stat_result]]:
        """The files, in a fixed order; one more than `count` is enough to know."""
        found: list[tuple[str, os.stat_result]] = []
        serves = self._tree.serves
        with os.scandir(fd) as scan:
            for entry in scan:
                try:
                    facts = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if serves(facts):
                    found.append((entry.name, facts))
                    if len(found) > count:
                        break
        found.sort(key=_name_of)
        return [name for name, _ in found], [facts for _, facts in found]

    def _from_files(self, names: list[str], many: list[os.stat_result]) -> bytes | None:
        rows = []
        for name, facts, digest in zip(names, many, self._index.digests(many), strict=True):
            if digest is None:
                return None
            rows.append((name, facts.st_mode & _EXECUTABLE != 0, digest))
        return folder_digest(rows)


def _name_of(found: tuple[str, os.stat_result]) -> str:
    return found[0]


def _state(names: list[str], many: list[os.stat_result]) -> bytes:
    """Another one as soon as a name or a fact of a file is another."""
    pack = _FACTS.pack
    whole = leaf_hash()
    if many:
        whole.update(str(many[0].st_dev).encode())
    whole.update(
        b"".join(
            [
                pack(
                    facts.st_ino,
                    facts.st_size,
                    facts.st_mtime_ns,
                    facts.st_ctime_ns,
                    facts.st_mode & 0xFFFF,
                )
                for facts in many
            ]
        )
    )
    # No name holds a NUL.
    whole.update("\0".join(names).encode("utf-8", "surrogateescape"))
    return bytes(whole.digest())
