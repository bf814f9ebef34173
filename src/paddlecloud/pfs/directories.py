"""Directories of a tree, opened step by step and kept open while one piece of work lasts.

Listing, comparing, batches and copies ask for thousands of directories; each is reached from the
nearest one that is open, so a step is one `openat`, and at most `keep` are open at a time, however
deep the tree. Not thread safe: one piece of work has its own. Never follows a link.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from types import TracebackType

from paddlecloud.pfs import syscalls
from paddlecloud.pfs.diskstore import Tree

Parts = tuple[str, ...]
_KEEP = 64  # far below any limit on open files; two are enough to be right


class Directories:
    def __init__(self, tree: Tree, keep: int = _KEEP, *, root: int | None = None) -> None:
        """Below the tree's root, or below `root`, a descriptor that is ours from now on."""
        self._tree = tree
        self._keep = max(2, keep)
        self._open: OrderedDict[Parts, int] = OrderedDict()
        self._root = tree.open_root() if root is None else root
        self.made: list[Parts] = []  # created on the way, in order

    def __enter__(self) -> Directories:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        for fd in self._open.values():
            os.close(fd)
        self._open.clear()
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    def open(self, parts: Parts, *, create: bool = False) -> int:
        """A descriptor that stays ours; good until another directory is asked for."""
        if not parts:
            return self._root
        fd = self._open.get(parts)
        if fd is not None:
            self._open.move_to_end(parts)
            return fd
        depth = len(parts) - 1
        while depth and parts[:depth] not in self._open:
            depth -= 1
        fd = self._open[parts[:depth]] if depth else self._root
        for upto in range(depth + 1, len(parts) + 1):
            fd, is_new = self._tree.step(fd, parts[upto - 1], create)
            if is_new:
                self.made.append(parts[:upto])
            self._remember(parts[:upto], fd)
        return fd

    def _remember(self, parts: Parts, fd: int) -> None:
        self._open[parts] = fd
        if len(self._open) > self._keep:
            _, oldest = self._open.popitem(last=False)
            os.close(oldest)

    def below(self, parts: Parts) -> Directories:
        """The same, with this directory as its root: how one goes deeper than a path can say."""
        return Directories(self._tree, self._keep, root=os.dup(self.open(parts)))

    def sync_made(self) -> None:
        """The names of the directories made so far survive a power cut."""
        for parent in {parts[:-1] for parts in self.made}:
            syscalls.sync_directory(self.open(parent))
        self.made.clear()
