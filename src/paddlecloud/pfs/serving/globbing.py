"""Patterns of the old protocol (`*`, `?`, `[...]` in any part), matched against the store."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from paddlecloud.core.errors import InvalidInput, NotFound
from paddlecloud.wire.pfspath import PfsPath

if TYPE_CHECKING:
    from paddlecloud.pfs.owners import Owner
    from paddlecloud.pfs.shapes import Entry
    from paddlecloud.pfs.store import Store

_MAGIC = frozenset("*?[")
_PAGE = 10_000
_MOST_MATCHES = 100_000


def expand(store: Store, owner: Owner, pattern: PfsPath) -> list[PfsPath]:
    """What exists and matches, sorted. A pattern never reaches beyond the home it names."""
    store.check(owner, pattern)
    found = [pattern.root]
    for part in pattern.parts:
        if _MAGIC.isdisjoint(part):
            found = [path.child(part) for path in found]
        else:
            found = [below for path in found for below in _matching(store, owner, path, part)]
        if len(found) > _MOST_MATCHES:
            raise InvalidInput("too many files match", hint="write a longer pattern")
    kept = [path for path in found if _is_there(store, owner, path)]
    return [path._replace(is_directory=pattern.is_directory) for path in kept]


def _matching(store: Store, owner: Owner, path: PfsPath, part: str) -> list[PfsPath]:
    try:
        if store.entry(owner, path).type != "directory":
            return []
        return [
            path.child(entry.name)
            for entry in walk(store, owner, path, recursive=False)
            # As in a shell: hidden names are matched by a dot that was written.
            if fnmatchcase(entry.name, part)
            and (part.startswith(".") or not entry.name.startswith("."))
        ]
    except NotFound:
        return []


def _is_there(store: Store, owner: Owner, path: PfsPath) -> bool:
    try:
        store.entry(owner, path)
    except NotFound:
        return False
    return True


def walk(store: Store, owner: Owner, path: PfsPath, *, recursive: bool) -> Iterator[Entry]:
    """All entries, page by page."""
    after: str | None = ""
    while after is not None:
        page = store.entries(owner, path, recursive=recursive, after=after, limit=_PAGE)
        yield from page.entries
        after = page.next
