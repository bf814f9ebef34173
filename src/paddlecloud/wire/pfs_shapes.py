"""The JSON of the file service, as types: what travels on the paths `wire.routes.PFS_*`.

The data plane decodes bodies by these, OpenAPI is written from them. Lists in place of objects
where a call carries tens of thousands of rows. docs/guides/pfs-protocol.md explains them.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class PfsEntry(TypedDict):
    """One file or directory. `name` is relative to the path asked for."""

    name: str
    type: str  # "file" or "directory"
    size: int
    mtime_ns: int
    executable: bool
    digest: str | None


class PfsEntryWithPath(PfsEntry):
    path: str
    leaves: NotRequired[list[str]]


class PfsEntries(TypedDict):
    path: str
    entries: list[PfsEntry]
    next: str | None
    left_out: int


class PfsDirectoriesBody(TypedDict):
    paths: list[str]


class PfsDirectories(TypedDict):
    made: list[str]


class PfsRemoveBody(TypedDict):
    paths: list[str]
    recursive: NotRequired[bool]
    missing_ok: NotRequired[bool]


class PfsRemovedRow(TypedDict):
    path: str
    files: int
    bytes: int


class PfsRemoved(TypedDict):
    removed: list[PfsRemovedRow]


# "from" is a word of Python, so these two are written as calls.
PfsMoveBody = TypedDict("PfsMoveBody", {"from": "str", "to": "str", "replace": "NotRequired[bool]"})
PfsCopyBody = TypedDict(
    "PfsCopyBody",
    {"from": "str", "to": "str", "recursive": "NotRequired[bool]", "replace": "NotRequired[bool]"},
)


class PfsCopied(TypedDict):
    files: int
    bytes: int


class PfsUsage(TypedDict):
    """What lies below the path, and what the account uses of its limits."""

    path: str
    files: int
    directories: int
    bytes: int
    unfinished_bytes: int
    limit_bytes: int | None
    limit_files: int | None
    used_bytes: int
    used_files: int


class PfsCompareBody(TypedDict):
    """Rows are [name relative to path, size, digest], and for the files directly in a folder
    together [folder relative to path, number of files, digest of the folder]."""

    path: str
    files: list[tuple[str, int, str]]
    folders: NotRequired[list[tuple[str, int, str]]]


class PfsCompared(TypedDict):
    """Indices into `files`; what is in none of the lists is there and the same. `folders` are
    indices too: of those that are not known to hold exactly these files."""

    missing: list[int]
    different: list[int]
    blocked: list[int]
    folders: list[int]


class PfsUploadBody(TypedDict):
    """Either `path` or `blob`."""

    path: NotRequired[str]
    blob: NotRequired[str]
    size: int
    mtime_ns: NotRequired[int | None]
    executable: NotRequired[bool]
    source: NotRequired[str]


class PfsHandover(TypedDict):
    """Where a client on the same machine hands over its open file, and what it says there."""

    socket: str
    ticket: str


class PfsUpload(TypedDict):
    """`received` rows are [index, digest], `begun` rows [index, how many bytes from the leaf's
    beginning are there]; `base` the leaves of the file that is there now; `checks`: it can answer
    with them; `handover`: for who is on the same machine."""

    id: str
    received: list[tuple[int, str]]
    begun: list[tuple[int, int]]
    base: list[str] | None
    checks: bool
    handover: PfsHandover | None


class PfsLeaves(TypedDict):
    """`checks` if they were asked for: the XXH3 of 128 bits of each."""

    leaves: list[str]
    checks: NotRequired[list[str]]


class PfsReuseBody(TypedDict):
    leaves: list[int]


class PfsReused(TypedDict):
    leaves: list[tuple[int, str]]


class PfsCommitBody(TypedDict):
    digest: str


class PfsUploadRow(TypedDict):
    id: str
    path: str
    size: int
    received_bytes: int
    age_s: float


class PfsUploads(TypedDict):
    uploads: list[PfsUploadRow]


class PfsBatch(TypedDict):
    """`refused` rows are [index of the record, error]."""

    stored: int
    bytes: int
    refused: list[tuple[int, dict[str, Any]]]


class PfsFetchBody(TypedDict):
    path: str
    files: list[str]


class PfsSnapshotBody(TypedDict):
    """Rows of `files` are [path, size, executable, digest]."""

    digest: str
    base: NotRequired[str | None]
    files: list[tuple[str, int, bool, str]]
    removed: NotRequired[list[str]]
    dirs: NotRequired[list[str] | None]


class PfsSnapshotStored(TypedDict):
    """`missing`: blobs to send before the snapshot can be stored; empty: it is stored."""

    digest: str
    files: int
    bytes: int
    missing: list[str]


class PfsSnapshot(TypedDict):
    digest: str
    files: int
    bytes: int


class OldEnvelope(TypedDict):
    """The first file server's: HTTP 200 even for errors, which stand in `err`."""

    err: str
    results: Any
