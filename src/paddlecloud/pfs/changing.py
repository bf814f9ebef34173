"""Names change: directories made, things moved, removed, copied. Called by the store only.

Each rename is one step for everybody who looks. A removed tree is set aside in one step and then
deleted. A copy goes through a hidden part like any new file, so it appears whole per file.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Sequence

from paddlecloud.core.errors import Conflict, InvalidInput
from paddlecloud.localfs.trees import Totals, move, remove_in
from paddlecloud.pfs import syscalls
from paddlecloud.pfs.directories import Directories
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.faults import missing, named, shown
from paddlecloud.pfs.listing import count as count_below
from paddlecloud.pfs.owners import Owner, Places, lies_in
from paddlecloud.pfs.publishing import Services, standing
from paddlecloud.pfs.shapes import Entry, Removed
from paddlecloud.wire.pfspath import PfsPath


class Changes:
    def __init__(self, places: Places, services: Services) -> None:
        self._places = places
        self._services = services
        self._usage = services.usage
        self._digests = services.digests
        self._sync = services.sync

    def make_directories(self, owner: Owner, paths: Sequence[PfsPath]) -> list[str]:
        """All of them, with their parents; those that were there already too."""
        trees = [self._places.tree(owner, path, to_write=True) for path in paths]
        for tree, path in zip(trees, paths, strict=True):
            with Directories(tree) as dirs:
                try:
                    dirs.open(path.parts, create=True)
                except (NotADirectoryError, FileExistsError):
                    raise Conflict(
                        f"already exist: {shown(path)}, or a part of it is a file", field="path"
                    ) from None
                except OSError as error:
                    with named(path):
                        raise error
                if self._sync:
                    with named(path):
                        dirs.sync_made()
        return [shown(path) for path in paths]

    # --- moving ---

    def move(self, owner: Owner, source: PfsPath, target: PfsPath, *, replace_it: bool) -> Entry:
        for path in (source, target):
            if path.is_root:
                raise InvalidInput("a home cannot be moved", field="path")
        tree = self._places.tree(owner, source, to_write=True)
        self._places.check(owner, target, to_write=True)
        if target.parts != source.parts and lies_in(target, source):
            raise InvalidInput(f"{shown(target)} lies in {shown(source)}", field="to")
        # Each side has its own: two deep paths would close each other's directories.
        with Directories(tree) as from_dirs, Directories(tree) as to_dirs:
            with named(source):
                from_fd = from_dirs.open(source.parts[:-1])
                facts = os.stat(source.name, dir_fd=from_fd, follow_symlinks=False)
                self._check_served(tree, facts, source)
            with named(target):
                to_fd = to_dirs.open(target.parts[:-1], create=True)
                if self._sync and to_dirs.made:
                    to_dirs.sync_made()
                    to_fd = to_dirs.open(target.parts[:-1])
                if source.parts != target.parts:
                    self._rename(owner, (from_fd, source), (to_fd, target), facts, replace_it)
                if self._sync:
                    for fd in (from_fd, to_fd):
                        syscalls.sync_directory(fd)
                after = os.stat(target.name, dir_fd=to_fd, follow_symlinks=False)
        self._keep_digest(facts, after)
        return Entry.of(target.name, after)

    def _rename(
        self,
        owner: Owner,
        source: tuple[int, PfsPath],
        target: tuple[int, PfsPath],
        facts: os.stat_result,
        replace_it: bool,
    ) -> None:
        (from_fd, old), (to_fd, new) = source, target
        with self._usage.publishing(owner) as count:
            if not replace_it or stat.S_ISDIR(facts.st_mode):
                # A directory replaces nothing: what would become of the files in it?
                syscalls.rename_new(from_fd, old.name, to_fd, new.name)
                return
            old_bytes, old_files = standing(to_fd, new.name)
            places = (from_fd, old.name), (to_fd, new.name)
            if old_files and _is_one_file(*places):
                if _are_two_names(*places):  # a rename would leave both
                    os.unlink(old.name, dir_fd=from_fd)
                    count(-old_bytes, -1)
                    return
                old_bytes = old_files = 0
            os.rename(old.name, new.name, src_dir_fd=from_fd, dst_dir_fd=to_fd)
            count(-old_bytes, -old_files)

    def _keep_digest(self, before: os.stat_result, after: os.stat_result) -> None:
        """A rename changes the ctime, and with it what the index knows the file by."""
        known = self._digests.known(before)
        if known is not None and stat.S_ISREG(after.st_mode):
            self._digests.learn_published(before, after, known.leaves)

    @staticmethod
    def _check_served(tree: Tree, facts: os.stat_result, path: PfsPath) -> None:
        if not (stat.S_ISDIR(facts.st_mode) or tree.serves(facts)):
            raise missing(path, "links and devices are not served")

    # --- removing ---

    def remove(
        self, owner: Owner, paths: Sequence[PfsPath], *, recursive: bool, missing_ok: bool
    ) -> list[Removed]:
        """All are checked before the first is removed."""
        found = [self._check_removal(owner, path, recursive, missing_ok) for path in paths]
        return [
            self._remove(owner, tree, path)
            for tree, path in zip(found, paths, strict=True)
            if tree is not None
        ]

    def _check_removal(
        self, owner: Owner, path: PfsPath, recursive: bool, missing_ok: bool
    ) -> Tree | None:
        tree = self._places.tree(owner, path, to_write=True)
        if path.is_root:
            raise InvalidInput("a home cannot be removed", field="path")
        with named(path), Directories(tree) as dirs:
            try:
                fd = dirs.open(path.parts[:-1])
                facts = os.stat(path.name, dir_fd=fd, follow_symlinks=False)
            except (FileNotFoundError, NotADirectoryError):
                if missing_ok:
                    return None
                raise
        if stat.S_ISDIR(facts.st_mode) and not recursive:
            raise Conflict(f"can't del directory:{shown(path)}", field="path", hint="use -r")
        return tree

    def _remove(self, owner: Owner, tree: Tree, path: PfsPath) -> Removed:
        aside = f"gone-{secrets.token_hex(8)}"
        folder = os.open(
            self._places.parts_of(owner.account_id), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        )
        try:
            with named(path), Directories(tree) as dirs:
                try:
                    fd = dirs.open(path.parts[:-1])
                    with self._usage.publishing(owner):
                        walks = self._usage.walks(owner)
                        move(path.name, fd, aside, folder)
                except (FileNotFoundError, NotADirectoryError):
                    # Somebody was faster, or it lay in what was removed just before.
                    return Removed(shown(path), 0, 0)
                if self._sync:
                    syscalls.sync_directory(fd)
                gone = _delete(folder, aside)
            self._usage.removed(owner, gone.size_bytes, gone.files, walks)
        finally:
            os.close(folder)
        return Removed(shown(path), gone.files, gone.size_bytes)


def _is_one_file(one: tuple[int, str], other: tuple[int, str]) -> bool:
    first, second = (os.stat(name, dir_fd=fd, follow_symlinks=False) for fd, name in (one, other))
    return os.path.samestat(first, second)


def _are_two_names(one: tuple[int, str], other: tuple[int, str]) -> bool:
    """Or is it one in two spellings, which some storages do not tell apart?"""
    (fd, name), (other_fd, other_name) = one, other
    if not os.path.samestat(os.fstat(fd), os.fstat(other_fd)):
        return True
    return {name, other_name} <= set(os.listdir(fd))


def _delete(folder: int, aside: str) -> Totals:
    facts = os.stat(aside, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISDIR(facts.st_mode):
        return remove_in(folder, aside)
    os.unlink(aside, dir_fd=folder)
    return Totals(files=1, size_bytes=facts.st_size if stat.S_ISREG(facts.st_mode) else 0)


def totals(tree: Tree, path: PfsPath) -> Totals:
    """What lies at a path: a file itself, or all that is below a directory."""
    with named(path), Directories(tree) as dirs:
        if not path.is_root:
            facts = os.stat(path.name, dir_fd=dirs.open(path.parts[:-1]), follow_symlinks=False)
            if not stat.S_ISDIR(facts.st_mode):
                if not tree.serves(facts):
                    raise missing(path, "links and devices are not served")
                return Totals(files=1, size_bytes=facts.st_size)
        dirs.open(path.parts)
        return count_below(dirs, path.parts)
