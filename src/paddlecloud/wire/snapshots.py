"""A snapshot: the list of a folder's files by content, with one digest for all of it.

Both ends make the same text of the same folder: one JSON line per entry, sorted by the UTF-8 bytes
of the path, `["a/b.py",120,false,"<digest>"]` for a file and `["empty"]` for a directory that
nothing else implies. The snapshot's digest is the BLAKE3 of that text. The SDK makes and sends it
(whole, or as the difference from one the server has), the store keeps it. What passes here can be
created below any directory without leaving it (`wire.package` has the rules).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from paddlecloud.core.errors import InvalidInput, TooLarge
from paddlecloud.wire import package
from paddlecloud.wire.digests import is_digest, leaf_hash

MAX_ENTRIES = 100_000


@dataclass(frozen=True, slots=True)
class File:
    path: str  # relative, "a/b.py"
    size_bytes: int
    executable: bool
    digest: str  # hex, of wire.digests

    def to_json(self) -> list[Any]:
        return [self.path, self.size_bytes, self.executable, self.digest]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Sorted and checked; made by `make` or `decode` only."""

    files: tuple[File, ...] = ()
    dirs: tuple[str, ...] = ()  # those nothing lies in

    @property
    def total_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class Wish:
    """The body of POST snapshots: a whole list, or what differs from `base`."""

    digest: str
    base: str | None
    files: tuple[File, ...]
    removed: tuple[str, ...] = ()
    dirs: tuple[str, ...] | None = None  # None: as in the base

    def to_json(self) -> dict[str, Any]:
        return {
            "digest": self.digest,
            "base": self.base,
            "files": [file.to_json() for file in self.files],
            "removed": list(self.removed),
            "dirs": None if self.dirs is None else list(self.dirs),
        }


def make(files: Iterable[File], dirs: Iterable[str] = ()) -> Snapshot:
    """The one snapshot of these entries, in whatever order they come. Checks everything."""
    kept = sorted(files, key=lambda file: package.order(file.path))
    for file in kept:
        if not is_digest(file.digest):
            raise InvalidInput(f"{file.path!r} has no digest of 64 hex digits", field="files")
    lone = package.lone_directories([(file.path, file.size_bytes) for file in kept], dirs)
    return Snapshot(tuple(kept), lone)


def encode(snapshot: Snapshot) -> bytes:
    """The canonical text."""
    rows: list[tuple[bytes, list[Any]]] = [
        (package.order(file.path), file.to_json()) for file in snapshot.files
    ]
    rows += [(package.order(path), [path]) for path in snapshot.dirs]
    rows.sort()
    lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for _, row in rows)
    return "".join(line + "\n" for line in lines).encode()


def digest_of(text: bytes) -> str:
    """The snapshot's digest, from its canonical text."""
    whole = leaf_hash()
    whole.update(text)
    return whole.hexdigest()


def decode(text: bytes) -> Snapshot:
    """The snapshot in a text that `encode` made."""
    rows = [json.loads(line) for line in text.decode().split("\n") if line]
    return Snapshot(
        tuple(File(*row) for row in rows if len(row) == 4),
        tuple(row[0] for row in rows if len(row) == 1),
    )


def difference(base: Snapshot, wanted: Snapshot) -> Wish:
    """What to send to somebody who has `base`."""
    before = {file.path: file for file in base.files}
    changed = tuple(file for file in wanted.files if before.get(file.path) != file)
    paths = {file.path for file in wanted.files}
    return Wish(
        digest=digest_of(encode(wanted)),
        base=digest_of(encode(base)),
        files=changed,
        removed=tuple(path for path in before if path not in paths),
        dirs=None if wanted.dirs == base.dirs else wanted.dirs,
    )


def whole(wanted: Snapshot) -> Wish:
    """What to send to somebody who has nothing."""
    return Wish(digest_of(encode(wanted)), None, wanted.files, (), wanted.dirs)


def fulfil(wish: Wish, base: Snapshot | None) -> Snapshot:
    """The snapshot a wish describes; its digest must be the one the wish names."""
    files = {file.path: file for file in base.files} if base else {}
    for path in wish.removed:
        files.pop(path, None)
    files.update((file.path, file) for file in wish.files)
    dirs: Collection[str] = wish.dirs if wish.dirs is not None else (base.dirs if base else ())
    snapshot = make(files.values(), dirs)
    if digest_of(encode(snapshot)) != wish.digest:
        raise InvalidInput(
            "the snapshot's digest is not that of its list of files",
            field="digest",
            hint="send the whole list, without a base",
        )
    return snapshot


def parse_wish(body: Any) -> Wish:
    """A decoded JSON body; every wrong type is named."""
    if not isinstance(body, dict):
        raise InvalidInput("the body must be an object", field="body")
    digest, base = body.get("digest"), body.get("base")
    if not isinstance(digest, str) or not is_digest(digest):
        raise InvalidInput("must be 64 hex digits", field="digest")
    if base is not None and not (isinstance(base, str) and is_digest(base)):
        raise InvalidInput("must be 64 hex digits, or null", field="base")
    files = body.get("files", [])
    if not isinstance(files, list):
        raise InvalidInput("must be a list", field="files")
    if len(files) > MAX_ENTRIES:
        raise TooLarge(f"a snapshot may have {MAX_ENTRIES} files", field="files")
    dirs = body.get("dirs")
    return Wish(
        digest=digest,
        base=base,
        files=tuple(_parse_file(row) for row in files),
        removed=_texts(body.get("removed", []), "removed"),
        dirs=None if dirs is None else _texts(dirs, "dirs"),
    )


def _parse_file(row: Any) -> File:
    if isinstance(row, list) and len(row) == 4:
        path, size_bytes, executable, digest = row
        if (
            isinstance(path, str)
            and type(size_bytes) is int
            and isinstance(executable, bool)
            and isinstance(digest, str)
        ):
            return File(path, size_bytes, executable, digest)
    raise InvalidInput("each must be [path, size, executable, digest]", field="files")


def _texts(value: Any, field: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise InvalidInput("must be a list of texts", field=field)
    return tuple(value)
