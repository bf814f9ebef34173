"""`copy` and `sync`, whichever way: finds out what the sources are and hands them on.

    local → /pfs      sending          /pfs → local      receiving
    /pfs → /pfs       copied by the server itself

It promises the rules of `sdk.pfs`: what goes where, what is refused before anything moves, what is
removed at the end. Called by `Files`.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from typing import NamedTuple

from paddlecloud.core.errors import Conflict, InvalidInput, NotFound
from paddlecloud.sdk.transfers.digest_cache import DigestCache
from paddlecloud.sdk.transfers.local_targets import LocalTarget
from paddlecloud.sdk.transfers.planning import (
    Placed,
    Source,
    Wanted,
    is_remote,
    place,
    source_of,
    under,
)
from paddlecloud.sdk.transfers.remote import has_pattern
from paddlecloud.sdk.transfers.removing import Removing
from paddlecloud.sdk.transfers.sessions import Session
from paddlecloud.wire.pfspath import PfsPath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from paddlecloud.sdk.pfs import Replace

_LOCAL_SEPARATORS = "/" if os.sep == "/" else "/\\"


class Wish(NamedTuple):
    """How to copy; see `Files.copy` and `Files.sync`."""

    recursive: bool
    replace: Replace
    preserve_times: bool
    chunk_bytes: int | None
    delete: bool = False


class Listed(NamedTuple):
    """What the server has, by the names it gets in the target."""

    wanted: list[Wanted]
    folders: list[str]
    unclear: list[str]  # folders with links or special files in them, which nothing names


class Copying:
    """One `copy` or `sync`."""

    def __init__(self, session: Session, wish: Wish, cache: DigestCache) -> None:
        self._session = session
        self._wish = wish
        self._cache = cache

    def run(self, sources: Sequence[str], target: str) -> None:
        if not sources:
            raise InvalidInput("name at least one source", field="source")
        if self._wish.replace not in ("changed", "always", "never"):
            raise InvalidInput("replace is changed, always or never", field="replace")
        kinds = {is_remote(source) for source in sources}
        if len(kinds) > 1:
            raise InvalidInput(
                "sources must be all local or all under /pfs",
                hint="copy them in two commands",
                field="source",
            )
        for path in (target, *sources):
            if is_remote(path):
                PfsPath.parse(path)
        is_from_remote = kinds.pop()
        if is_from_remote and is_remote(target):
            self._within(sources, target)
        elif is_from_remote:
            self._download(sources, target)
        elif is_remote(target):
            self._upload(sources, target)
        else:
            raise InvalidInput(
                "one side must be under /pfs",
                hint="such as /pfs/<datacenter>/home/<user>/...",
                field=target,
            )

    # --- up --------------------------------------------------------------------------------

    # Each way imports only what it needs: that is a tenth of sending a tree that is the same.

    def _upload(self, texts: Sequence[str], target: str) -> None:
        from paddlecloud.sdk.transfers.sending import Sending

        sources = [source_of(text, _LOCAL_SEPARATORS) for text in _expand_local(texts)]
        folders = [self._is_local_folder(source) for source in sources]
        self._check_recursive(sources, folders)
        placed = self._place_remote(sources, folders, target)
        sending = Sending(
            self._session,
            placed.base,
            self._cache,
            roots=[source.text for source in sources],
            replace=self._wish.replace,
            preserve_times=self._wish.preserve_times,
            chunk_bytes=self._wish.chunk_bytes,
        )
        walk = sending.walk
        for source, name, is_folder in zip(sources, placed.names, folders, strict=True):
            walk.add_source(source.text, name, is_folder=is_folder)
        sending.run()
        if self._wish.delete and any(folders):
            kept = [*walk.folders, *(file.name for file in walk.files)]
            removing = Removing(self._session, kept, protected=walk.left_out)
            removing.remote(placed.base, list(placed.names))

    def _is_local_folder(self, source: Source) -> bool:
        if os.path.isdir(source.text):
            return True
        if not os.path.exists(source.text):
            raise NotFound(f"{source.text} does not exist", field=source.text)
        return False

    def _check_recursive(self, sources: Sequence[Source], folders: Sequence[bool]) -> None:
        for source, is_folder in zip(sources, folders, strict=True):
            if is_folder and not self._wish.recursive:
                raise InvalidInput(
                    f"{source.text} is a folder", hint="add -r to copy folders", field=source.text
                )

    def _place_remote(
        self, sources: Sequence[Source], folders: Sequence[bool], target: str
    ) -> Placed:
        if PfsPath.parse(target).is_root:
            target = target.rstrip("/") + "/"  # a home is never one of the things put there
        target_is = ""
        if len(sources) > 1 or not (target.endswith("/") or any(folders)):
            target_is = self._session.remote.kind(target)
        placed = place(sources, folders, target, target_is)
        return placed._replace(base=str(PfsPath.parse(placed.base)).rstrip("/"))

    # --- down ------------------------------------------------------------------------------

    def _download(self, texts: Sequence[str], target: str) -> None:
        from paddlecloud.sdk.transfers.receiving import Receiving

        found = self._look_at(texts)
        sources = [source for source, _ in found]
        folders = [entry["type"] == "directory" for _, entry in found]
        self._check_recursive(sources, folders)
        target_is = ""
        if os.path.isdir(target):
            target_is = "directory"
        elif os.path.lexists(target):
            target_is = "file"
        placed = place(sources, folders, target, target_is, _LOCAL_SEPARATORS)
        listed = self._list(found, placed.names)
        local = LocalTarget(placed.base or os.curdir)
        receiving = Receiving(
            self._session,
            listed.wanted,
            listed.folders,
            local,
            self._cache,
            replace=self._wish.replace,
            preserve_times=self._wish.preserve_times,
            chunk_bytes=self._wish.chunk_bytes,
        )
        receiving.run()
        if self._wish.delete and any(folders):
            self._removing(listed).local(local, list(placed.names))

    def _look_at(self, texts: Sequence[str]) -> list[tuple[Source, dict[str, Any]]]:
        """The sources with what they are; patterns are expanded, what is missing is refused."""
        remote = self._session.remote
        found = []
        for text in texts:
            matching = remote.expand(text) if has_pattern(text) else [text]
            if not matching:
                raise NotFound(f"nothing matches {text}", field=text)
            for path in matching:
                # A name may hold the signs of a pattern: what matched is taken as it is.
                found.append((source_of(path), remote.entry(path.rstrip("/"))))
        return found

    def _list(self, found: Sequence[tuple[Source, dict[str, Any]]], names: Sequence[str]) -> Listed:
        listed = Listed([], [], [])
        for (source, entry), name in zip(found, names, strict=True):
            path = source.text.rstrip("/")
            if entry["type"] == "directory":
                self._list_folder(listed, path, name)
            else:
                base, _, last = path.rpartition("/")
                listed.wanted.append(_wanted(name, base, last, entry))
        return listed

    def _list_folder(self, listed: Listed, path: str, name: str) -> None:
        inside = [""]
        left_out = 0
        for page in self._session.remote.pages(path, recursive=True, digests=True):
            left_out += int(page["left_out"])
            for entry in page["entries"]:
                below = str(entry["name"])
                if entry["type"] == "directory":
                    inside.append(below)
                else:
                    listed.wanted.append(_wanted(under(name, below), path, below, entry))
        listed.folders.extend(under(name, below) for below in inside)
        if left_out and self._wish.delete:
            unclear = [below for below in inside if self._has_links(under(path, below))]
            listed.unclear.extend(under(name, below) for below in unclear)

    def _has_links(self, path: str) -> bool:
        try:
            return any(page["left_out"] for page in self._session.remote.pages(path))
        except NotFound:  # somebody removed it just now: nothing is known of what was in it
            return True

    def _removing(self, listed: Listed) -> Removing:
        kept = [*listed.folders, *(file.name for file in listed.wanted)]
        return Removing(self._session, kept, unclear=listed.unclear)

    # --- within ----------------------------------------------------------------------------

    def _within(self, texts: Sequence[str], target: str) -> None:
        from paddlecloud.sdk.transfers.server_copies import ServerCopy

        found = self._look_at(texts)
        sources = [source for source, _ in found]
        folders = [entry["type"] == "directory" for _, entry in found]
        self._check_recursive(sources, folders)
        placed = self._place_remote(sources, folders, target)
        for source, name in zip(sources, placed.names, strict=True):
            _refuse_into_itself(source.text, under(placed.base, name))
        listed = self._list(found, placed.names)
        ServerCopy(
            self._session, listed.wanted, listed.folders, placed.base, self._wish.replace
        ).run()
        if self._wish.delete and any(folders):
            self._removing(listed).remote(placed.base, list(placed.names))


def _wanted(name: str, base: str, below: str, entry: dict[str, Any]) -> Wanted:
    return Wanted(
        name,
        base,
        below,
        int(entry["size"]),
        entry["digest"],
        bool(entry["executable"]),
        int(entry["mtime_ns"]),
    )


def _refuse_into_itself(source: str, target: str) -> None:
    here, there = PfsPath.parse(source), PfsPath.parse(target)
    if there.is_below(here):
        raise Conflict(f"{source} cannot be copied into itself", field=target)


def _expand_local(texts: Sequence[str]) -> list[str]:
    """Patterns a shell has not expanded (quoted, or on Windows)."""
    found: list[str] = []
    for text in texts:
        if os.path.lexists(text) or not has_pattern(text):
            found.append(text)
            continue
        matching = sorted(glob.glob(text))
        if not matching:
            raise NotFound(f"nothing matches {text}", field=text)
        found += matching
    return found
