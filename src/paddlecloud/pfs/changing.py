"""Names change: directories made, things moved, removed, copied. Called by the store only.

Each rename is one step for everybody who looks. A removed tree is set aside in one step and then
deleted. A copy goes through a hidden part like any new file, so it appears whole per file.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path

from paddlecloud.core.errors import Conflict, InvalidInput
from paddlecloud.pfs import syscalls
from paddlecloud.pfs.copying import copy_bytes
from paddlecloud.pfs.digesting import Digests, is_same
from paddlecloud.pfs.directories import Directories, Parts
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.faults import missing, named, shown
from paddlecloud.pfs.listing import count as count_below
from paddlecloud.pfs.listing import walk
from paddlecloud.pfs.owners import Owner, Places
from paddlecloud.pfs.publishing import dress, replace, standing, sync_directory
from paddlecloud.pfs.removing import remove_in
from paddlecloud.pfs.shapes import Copied, Entry, Removed
from paddlecloud.pfs.usage import Totals, Usage
from paddlecloud.wire.pfspath import PfsPath

_FEW = 2
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Changes:
    def __init__(self, places: Places, usage: Usage, digests: Digests, *, sync: bool) -> None:
        self._places = places
        self._usage = usage
        self._digests = digests
        self._sync = sync

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
        if target.parts != source.parts and target.is_below(source):
            raise InvalidInput(f"{shown(target)} lies in {shown(source)}", field="to")
        with Directories(tree) as dirs:
            with named(source):
                from_fd = dirs.open(source.parts[:-1])
                facts = os.stat(source.name, dir_fd=from_fd, follow_symlinks=False)
                self._check_served(tree, facts, source)
            with named(target):
                to_fd = dirs.open(target.parts[:-1], create=True)
                from_fd = dirs.open(source.parts[:-1])
                if source.parts != target.parts:
                    self._rename(owner, (from_fd, source), (to_fd, target), facts, replace_it)
                if self._sync:
                    for fd in {from_fd, to_fd}:
                        sync_directory(fd)
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
                fd = dirs.open(path.parts[:-1])
                with self._usage.publishing(owner):
                    walks = self._usage.walks(owner)
                    _set_aside(fd, path.name, folder, aside)
                if self._sync:
                    sync_directory(fd)
                gone = _delete(folder, aside)
            self._usage.removed(owner, gone.size_bytes, gone.files, walks)
        except FileNotFoundError:
            gone = Totals()  # somebody was faster
        finally:
            os.close(folder)
        return Removed(shown(path), gone.files, gone.size_bytes)

    # --- copying ---

    def copy(
        self, owner: Owner, source: PfsPath, target: PfsPath, *, recursive: bool, replace_it: bool
    ) -> Copied:
        from_tree = self._places.tree(owner, source)
        to_tree = self._places.tree(owner, target, to_write=True)
        if target.is_root:
            raise InvalidInput("must name a file or a directory in your home", field="to")
        with named(source), Directories(from_tree) as dirs:
            if source.is_root:
                is_directory = True
            else:
                fd = dirs.open(source.parts[:-1])
                facts = os.stat(source.name, dir_fd=fd, follow_symlinks=False)
                self._check_served(from_tree, facts, source)
                is_directory = stat.S_ISDIR(facts.st_mode)
            if not is_directory:
                wanted: list[tuple[Parts, os.stat_result]] = [((), facts)]
            elif not recursive:
                raise InvalidInput(f"{shown(source)} is a directory", field="from", hint="use -r")
            elif target.is_below(source):
                raise InvalidInput(f"{shown(target)} lies in {shown(source)}", field="to")
            else:
                found = walk(from_tree, dirs, source.parts, recursive=True)
                wanted = [(parts, facts) for parts, facts in found if facts is not None]
        work = _Copying(self._usage, self._digests, owner, self._sync)
        work.folder = self._places.parts_of(owner.account_id)
        return work.run((from_tree, source.parts), (to_tree, target), wanted, replace_it)


def _set_aside(fd: int, name: str, folder: int, aside: str) -> None:
    try:
        os.rename(name, aside, src_dir_fd=fd, dst_dir_fd=folder)
    except PermissionError:
        facts = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if not stat.S_ISDIR(facts.st_mode):
            raise
        os.chmod(name, 0o700, dir_fd=fd, follow_symlinks=False)
        os.rename(name, aside, src_dir_fd=fd, dst_dir_fd=folder)


def _delete(folder: int, aside: str) -> Totals:
    facts = os.stat(aside, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISDIR(facts.st_mode):
        return remove_in(folder, aside)
    os.unlink(aside, dir_fd=folder)
    return Totals(files=1, size_bytes=facts.st_size if stat.S_ISREG(facts.st_mode) else 0)


class _Copying:
    """One copy of a file or a tree."""

    folder: Path

    def __init__(self, usage: Usage, digests: Digests, owner: Owner, sync: bool) -> None:
        self._usage = usage
        self._digests = digests
        self._owner = owner
        self._sync = sync

    def run(
        self,
        source: tuple[Tree, Parts],
        target: tuple[Tree, PfsPath],
        wanted: list[tuple[Parts, os.stat_result]],
        replace_it: bool,
    ) -> Copied:
        files = [(parts, facts) for parts, facts in wanted if stat.S_ISREG(facts.st_mode)]
        size_bytes = sum(facts.st_size for _, facts in files)
        to_tree, path = target
        reservation = self._usage.reserve(self._owner, size_bytes, len(files))
        try:
            with (
                Directories(source[0]) as from_dirs,
                Directories(to_tree) as to_dirs,
                named(path),
            ):
                if wanted != [((), files[0][1])] if files else True:
                    to_dirs.open(path.parts, create=True)
                for parts, facts in wanted:
                    if stat.S_ISDIR(facts.st_mode):
                        to_dirs.open(path.parts + parts, create=True)
                for parts, _ in files:
                    place = source[1] + parts
                    self._one(
                        source[0],
                        from_dirs,
                        place,
                        (to_tree, to_dirs),
                        path.parts + parts,
                        replace_it,
                    )
                if self._sync:
                    to_dirs.sync_made()
        finally:
            reservation.release()
        return Copied(len(files), size_bytes)

    def _one(
        self,
        from_tree: Tree,
        from_dirs: Directories,
        source: Parts,
        target: tuple[Tree, Directories],
        parts: Parts,
        replace_it: bool,
    ) -> None:
        to_tree, to_dirs = target
        fd, facts = from_tree.open_file_in(from_dirs.open(source[:-1]), source[-1])
        part = f"copy-{secrets.token_hex(8)}"
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            new = os.open(part, _NEW, 0o600, dir_fd=folder)
            try:
                copy_bytes(fd, new, facts.st_size)
                dress(to_tree, new, executable=bool(facts.st_mode & stat.S_IXUSR), mtime_ns=None)
                if self._sync:
                    os.fsync(new)
                before = os.fstat(new)
                parent = to_dirs.open(parts[:-1], create=True)
                with self._usage.publishing(self._owner) as count:
                    if not replace_it:
                        syscalls.rename_new(folder, part, parent, parts[-1])
                        count(before.st_size, 1)
                    else:
                        replace(folder, part, parent, parts[-1], before.st_size, count)
                if self._sync:
                    sync_directory(parent)
                known = self._digests.known(facts)
                if known is not None and is_same(facts, os.fstat(fd)):
                    self._digests.learn_published(before, os.fstat(new), known.leaves)
            except BaseException:
                try:
                    os.unlink(part, dir_fd=folder)
                except FileNotFoundError:
                    pass
                raise
            finally:
                os.close(new)
        finally:
            os.close(folder)
            os.close(fd)


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
