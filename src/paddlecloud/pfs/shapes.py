"""What the store answers with; `to_json` is what travels (docs/guides/pfs-protocol.md)."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from paddlecloud.core.errors import PaddleCloudError
from paddlecloud.wire.pfspath import PfsPath

FILE = "file"
DIRECTORY = "directory"


@dataclass(frozen=True, slots=True)
class Entry:
    name: str  # relative to the path asked for; for a single file its last part
    type: str
    size_bytes: int
    mtime_ns: int
    executable: bool
    digest: bytes | None = None
    path: str = ""  # only where one entry was asked for
    leaves: tuple[bytes, ...] | None = None

    @classmethod
    def of(cls, name: str, facts: os.stat_result, digest: bytes | None = None) -> Entry:
        if stat.S_ISDIR(facts.st_mode):
            return cls(name, DIRECTORY, 0, facts.st_mtime_ns, False)
        return cls(
            name,
            FILE,
            facts.st_size,
            facts.st_mtime_ns,
            bool(facts.st_mode & stat.S_IXUSR),
            digest,
        )

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "name": self.name,
            "type": self.type,
            "size": self.size_bytes,
            "mtime_ns": self.mtime_ns,
            "executable": self.executable,
            "digest": None if self.digest is None else self.digest.hex(),
        }
        if self.path:
            body["path"] = self.path
        if self.leaves is not None:
            body["leaves"] = [leaf.hex() for leaf in self.leaves]
        return body


@dataclass(frozen=True, slots=True)
class Page:
    path: str
    entries: list[Entry]
    next: str | None
    left_out: int

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "entries": [entry.to_json() for entry in self.entries],
            "next": self.next,
            "left_out": self.left_out,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Positions in the lists that were sent."""

    missing: list[int]
    different: list[int]
    blocked: list[int]  # a directory or link is there, or a file is where a directory must be
    folders: list[int]  # not known to hold exactly these files

    def to_json(self) -> dict[str, Any]:
        return {
            "missing": self.missing,
            "different": self.different,
            "blocked": self.blocked,
            "folders": self.folders,
        }


@dataclass(frozen=True, slots=True)
class Removed:
    path: str
    files: int
    size_bytes: int

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "files": self.files, "bytes": self.size_bytes}


@dataclass(frozen=True, slots=True)
class Copied:
    files: int
    size_bytes: int

    def to_json(self) -> dict[str, Any]:
        return {"files": self.files, "bytes": self.size_bytes}


@dataclass(frozen=True, slots=True)
class UsageAnswer:
    path: str
    files: int
    directories: int
    size_bytes: int
    unfinished_bytes: int
    used_bytes: int
    used_files: int
    limit_bytes: int | None
    limit_files: int | None

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "files": self.files,
            "directories": self.directories,
            "bytes": self.size_bytes,
            "unfinished_bytes": self.unfinished_bytes,
            "used_bytes": self.used_bytes,
            "used_files": self.used_files,
            "limit_bytes": self.limit_bytes,
            "limit_files": self.limit_files,
        }


@dataclass(slots=True)
class BatchResult:
    stored: int = 0
    size_bytes: int = 0
    refused: list[tuple[int, PaddleCloudError]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "stored": self.stored,
            "bytes": self.size_bytes,
            "refused": [[index, error.to_json()] for index, error in self.refused],
        }


@dataclass(frozen=True, slots=True)
class UploadWish:
    """What POST uploads asks for: a file at `path`, or the blob `blob` (its digest in hex)."""

    path: PfsPath | None
    size_bytes: int
    mtime_ns: int | None = None
    executable: bool = False
    source: str = ""
    blob: str | None = None


@dataclass(frozen=True, slots=True)
class UploadRow:
    """One line of the list of unfinished uploads."""

    id: str
    path: str
    size_bytes: int
    received_bytes: int
    age_s: float

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "path": self.path,
            "size": self.size_bytes,
            "received_bytes": self.received_bytes,
            "age_s": round(self.age_s, 3),
        }


@dataclass(frozen=True, slots=True)
class SnapshotAnswer:
    digest: str
    files: int
    size_bytes: int
    missing: list[str]  # digests of blobs to send; empty: stored and durable

    def to_json(self) -> dict[str, Any]:
        return {
            "digest": self.digest,
            "files": self.files,
            "bytes": self.size_bytes,
            "missing": self.missing,
        }


@dataclass(slots=True)
class Content:
    """An open file; the descriptor is closed on leaving the `with`."""

    fd: int
    size_bytes: int
    etag: str
    digest: bytes | None
    mtime_ns: int
    executable: bool

    def __enter__(self) -> Content:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
