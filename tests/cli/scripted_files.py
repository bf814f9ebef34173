"""`Files` of the SDK that do what a test says, and remember what they were asked."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence
from typing import Any

from paddlecloud.core.errors import Conflict, NotFound, PaddleCloudError
from paddlecloud.sdk.transfers.events import Event, OnEvent, Summary

HOME = "/pfs/local/home/alice"
CHANGED_NS = 1_763_193_165_000_000_000  # 2025-11-15 07:52:45


def file(name: str, size: int = 36, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "type": "file",
        "size": size,
        "mtime_ns": CHANGED_NS,
        "executable": False,
        "digest": "ab" * 32,
        **changes,
    }


def folder(name: str) -> dict[str, Any]:
    return {**file(name, 4096), "type": "directory", "digest": None}


class ScriptedFiles:
    """A tree of `{path: entry}`, and for `copy` and `sync` the events they tell."""

    def __init__(self) -> None:
        self.tree: dict[str, dict[str, Any]] = {HOME: folder("alice")}
        self.contents: dict[str, bytes] = {}
        self.events: list[Event | BaseException] = []
        self.summary = Summary()
        self.asked: list[tuple[str, Any]] = []
        self.failing: PaddleCloudError | None = None

    def add(self, path: str, entry: dict[str, Any]) -> None:
        self.tree[path] = entry

    # --- looking ---------------------------------------------------------------------------

    def entries(
        self, path: str, recursive: bool = False, digests: bool = False
    ) -> Iterator[dict[str, Any]]:
        self.asked.append(("entries", (path, recursive, digests)))
        path = path.rstrip("/")
        found = self.entry(path)
        if found["type"] == "file":
            yield {**found, "name": path.rpartition("/")[2]}
            return
        for other in sorted(self.tree, key=lambda text: text.split("/")):
            inside = other.removeprefix(path + "/")
            if other.startswith(path + "/") and (recursive or "/" not in inside):
                yield {**self.tree[other], "name": inside}

    def entry(self, path: str, **how: bool) -> dict[str, Any]:
        if self.failing is not None:
            raise self.failing
        if path.rstrip("/") not in self.tree:
            raise NotFound("no such file or directory")
        self.asked.append(("entry", (path, how)))
        return self.tree[path.rstrip("/")]

    def usage(self, path: str) -> dict[str, Any]:
        self.entry(path)
        return {
            **{"path": path, "files": 1204, "directories": 3, "bytes": 1_288_490_189},
            **{"unfinished_bytes": 4096, "limit_bytes": 10 << 30, "limit_files": None},
            **{"used_bytes": 1_288_490_189, "used_files": 1204},
        }

    def expand(self, pattern: str) -> list[str]:
        depth = pattern.count("/")
        return [
            path
            for path in sorted(self.tree)
            if path.count("/") == depth and fnmatch.fnmatchcase(path, pattern)
        ]

    def read(self, path: str) -> Iterator[bytes]:
        self.entry(path)
        yield self.contents[path]

    # --- changing --------------------------------------------------------------------------

    def make_directories(self, paths: Sequence[str]) -> list[str]:
        self.asked.append(("make_directories", list(paths)))
        return list(paths)

    def remove(
        self, paths: Sequence[str], recursive: bool = False, missing_ok: bool = False
    ) -> list[dict[str, Any]]:
        self.asked.append(("remove", (list(paths), recursive, missing_ok)))
        for path in paths:
            if path not in self.tree and not missing_ok:
                raise NotFound("no such file or directory")
            if self.tree.get(path, {}).get("type") == "directory" and not recursive:
                raise Conflict(f"can't del directory:{path}")
        there = [path for path in paths if path in self.tree]
        return [{"path": path, "files": 2, "bytes": 2048} for path in there]

    def move(self, source: str, target: str, replace: bool = False) -> dict[str, Any]:
        self.asked.append(("move", (source, target, replace)))
        if target in self.tree and not replace:
            raise Conflict(f"{target} is there already")
        return self.entry(source)

    # --- moving many -----------------------------------------------------------------------

    def copy(
        self, sources: Sequence[str], target: str, *, on_event: OnEvent, **how: Any
    ) -> Summary:
        self.asked.append(("copy", (list(sources), target, how)))
        return self._tell(on_event)

    def sync(self, source: str, target: str, *, on_event: OnEvent, **how: Any) -> Summary:
        self.asked.append(("sync", (source, target, how)))
        return self._tell(on_event)

    def _tell(self, on_event: OnEvent) -> Summary:
        for event in self.events:
            if isinstance(event, BaseException):
                raise event
            on_event(event)
        return self.summary


def summary(**facts: Any) -> Summary:
    made = Summary()
    for name, value in facts.items():
        setattr(made, name, value)
    return made
