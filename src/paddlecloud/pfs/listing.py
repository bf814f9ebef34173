"""What lies in a directory: pages in a fixed order, single entries, totals.

The order is that of the relative paths' parts by their UTF-8 bytes, a directory before what is in
it; Python compares texts by code point, which is the same. A page costs one reading of each
directory on the way to its cursor and one look at each entry it shows; nothing is kept between
pages. Links, devices, pipes and names nobody could ask for are counted, never followed.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_left
from collections.abc import Iterator

from paddlecloud.localfs.trees import Totals
from paddlecloud.pfs.directories import Directories, Parts
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.index import Index
from paddlecloud.pfs.relative_names import is_plain
from paddlecloud.pfs.shapes import Entry, Page
from paddlecloud.wire.pfspath import MAX_PATH_BYTES

MOST_AT_ONCE = 10_000
_DEEP = 200
_MOST_DEEPER = 100
_Found = tuple[Parts, os.stat_result | None]  # None: left out


def page(
    tree: Tree,
    dirs: Directories,
    base: Parts,
    shown: str,
    *,
    recursive: bool,
    after: Parts,
    limit: int,
    index: Index | None,
) -> Page:
    """At most `limit` entries of a directory, behind `after`; with digests where known."""
    found: list[tuple[Parts, os.stat_result]] = []
    left_out = 0
    has_more = False
    for relative, facts in walk(tree, dirs, base, recursive=recursive, after=after):
        is_full = len(found) == limit
        if facts is None:
            # Counted once: on the page whose entries it stands between.
            left_out += not is_full
        elif is_full:
            has_more = True
            break
        else:
            found.append((relative, facts))
    entries = _entries(found, index)
    return Page(shown, entries, entries[-1].name if has_more else None, left_out)


def _entries(found: list[tuple[Parts, os.stat_result]], index: Index | None) -> list[Entry]:
    digests: dict[int, bytes | None] = {}
    if index is not None:
        files = [n for n, (_, facts) in enumerate(found) if stat.S_ISREG(facts.st_mode)]
        known = index.digests([found[n][1] for n in files])
        digests = dict(zip(files, known, strict=True))
    return [
        Entry.of("/".join(relative), facts, digests.get(n))
        for n, (relative, facts) in enumerate(found)
    ]


def walk(
    tree: Tree, dirs: Directories, base: Parts, *, recursive: bool, after: Parts = ()
) -> Iterator[_Found]:
    """Every entry behind `after`, in order. What vanishes meanwhile is not there."""
    fd = dirs.open(base)
    stack: list[tuple[Parts, Iterator[str]]] = [((), _names(fd, after, 0))]
    while stack:
        above, names = stack[-1]
        name = next(names, None)
        if name is None:
            stack.pop()
            if stack:
                fd = _reopen(dirs, base + stack[-1][0])
            continue
        relative = (*above, name)
        is_on_trail = after[: len(relative)] == relative
        facts = _look(tree, fd, name)
        if not is_on_trail and (facts is not None or not _is_gone(fd, name)):
            yield relative, facts
        if recursive and facts is not None and stat.S_ISDIR(facts.st_mode):
            if len(relative) > MAX_PATH_BYTES // 2:
                continue  # nobody could ask for what is in there
            try:
                below = dirs.open(base + relative)
                names = _names(below, after if is_on_trail else (), len(relative))
            except OSError:
                continue  # gone, or swapped for something else
            fd = below
            stack.append((relative, names))


def _reopen(dirs: Directories, parts: Parts) -> int:
    try:
        return dirs.open(parts)
    except OSError:
        return -1  # gone with all that was left to list: every look will fail


def _names(fd: int, after: Parts, depth: int) -> Iterator[str]:
    names = sorted(os.listdir(fd))
    return iter(names[bisect_left(names, after[depth]) :] if len(after) > depth else names)


def _look(tree: Tree, fd: int, name: str) -> os.stat_result | None:
    """The facts of an entry that may be shown."""
    if not is_plain(name):
        return None
    try:
        facts = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return None
    return facts if stat.S_ISDIR(facts.st_mode) or tree.serves(facts) else None


def _is_gone(fd: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return True
    return False


def count(dirs: Directories, base: Parts) -> Totals:
    """All that takes room below a directory, whatever it is called and whoever made it.

    A job can make trees far deeper than any path can say. Each directory is reached by its parts,
    which would be quadratic, so from `_DEEP` on the count begins anew below where it is.
    """
    total = Totals()
    deeper: list[Directories] = []
    try:
        total += _count(dirs, base, deeper)
        while deeper:
            with deeper.pop() as one:
                total += _count(one, (), deeper)
    finally:
        for one in deeper:
            one.close()
    return total


def _count(dirs: Directories, base: Parts, deeper: list[Directories]) -> Totals:
    files = size_bytes = directories = 0
    waiting = [base]
    while waiting:
        parts = waiting.pop()
        try:
            if len(parts) - len(base) >= _DEEP and len(deeper) < _MOST_DEEPER:
                deeper.append(dirs.below(parts))
                continue
            with os.scandir(dirs.open(parts)) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        directories += 1
                        waiting.append((*parts, entry.name))
                        continue
                    files += 1
                    if entry.is_file(follow_symlinks=False):
                        size_bytes += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue  # gone meanwhile
    return Totals(files, size_bytes, directories)
