"""Every call of the file service, row by row, in its three dialects.

Pure data: the data plane routes by it, and the cloud server, which passes these calls on, writes
OpenAPI from it. `name` finds the handler; importing this starts nothing.

    v2       our own protocol, docs/guides/pfs-protocol.md; errors are `ErrorShape`
    old      the first file server's: an envelope, HTTP 200 even for errors
    simple   /api/v1/file and /api/v1/filelist; errors have `msg` besides
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paddlecloud.wire import handovers, pfs_shapes, records, routes, shapes_v1

BYTES = "application/octet-stream"
DOWNLOAD = "application/force-download"
MULTIPART = "multipart/form-data"
JSON_BODY_BYTES = 1 << 20
MANY_BODY_BYTES = 32 << 20  # calls that carry lists of files


@dataclass(frozen=True, slots=True)
class Param:
    """One query parameter. `kind` is str, int or bool (`1 true yes` / `0 false no`)."""

    name: str
    kind: type
    about: str
    default: Any = None
    low: int | None = None
    high: int | None = None
    is_needed: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    method: str
    path: str  # from wire.routes, with at most one {segment}
    name: str
    summary: str
    params: tuple[Param, ...] = ()
    body: Any = None  # a shape of wire.pfs_shapes; None: no body, or not JSON
    body_type: str = ""  # content type of a body that is not JSON
    answers: Mapping[int, Any] = field(default_factory=dict)  # status → shape or content type
    dialect: str = "v2"
    body_limit_bytes: int = JSON_BODY_BYTES


def _path(about: str) -> Param:
    return Param("path", str, about, is_needed=True)


_ANY = _path("/pfs/<datacenter>/home/<user>/... or /pfs/<datacenter>/public/...")
_FILES = Param("files", int, "how many records follow, at most", 0, 0, 10_000, is_needed=True)
_BYTES = Param("bytes", int, "bytes of content in all of them", 0, 0, is_needed=True)

V2 = (
    Row(
        "GET",
        routes.PFS_ENTRIES,
        "entries",
        "What is in a directory",
        (
            _ANY,
            Param("recursive", bool, "also what is in its directories", False),
            Param("digests", bool, "with the digests the server knows already", False),
            Param("after", str, "go on after this name, the `next` of the page before", ""),
            Param("limit", int, "at most this many", 1000, 1, 10_000),
        ),
        answers={200: pfs_shapes.PfsEntries},
    ),
    Row(
        "GET",
        routes.PFS_ENTRY,
        "entry",
        "One file or directory",
        (
            _ANY,
            Param("digest", bool, "compute the digest if it is not known", False),
            Param("leaves", bool, "with the digests of its parts of 4 MiB", False),
            Param("verify", bool, "read every byte again and compare", False),
        ),
        answers={200: pfs_shapes.PfsEntryWithPath},
    ),
    Row(
        "POST",
        routes.PFS_DIRECTORIES,
        "make_directories",
        "Make directories, with their parents",
        body=pfs_shapes.PfsDirectoriesBody,
        answers={200: pfs_shapes.PfsDirectories},
    ),
    Row(
        "POST",
        routes.PFS_REMOVE,
        "remove",
        "Remove files and directories",
        body=pfs_shapes.PfsRemoveBody,
        answers={200: pfs_shapes.PfsRemoved},
    ),
    Row(
        "POST",
        routes.PFS_MOVE,
        "move",
        "Rename a file or directory",
        body=pfs_shapes.PfsMoveBody,
        answers={200: pfs_shapes.PfsEntry},
    ),
    Row(
        "POST",
        routes.PFS_COPY,
        "copy",
        "Copy on the server",
        body=pfs_shapes.PfsCopyBody,
        answers={200: pfs_shapes.PfsCopied},
    ),
    Row(
        "GET",
        routes.PFS_USAGE,
        "usage",
        "What a path and the account take up",
        (_ANY,),
        answers={200: pfs_shapes.PfsUsage},
    ),
    Row(
        "GET",
        routes.PFS_CONTENT,
        "content",
        "The bytes of a file; ranges and conditions as in HTTP",
        (_ANY,),
        answers={200: BYTES, 206: BYTES, 304: None},
    ),
    Row(
        "HEAD",
        routes.PFS_CONTENT,
        "content",
        "What GET would answer, without the bytes",
        (_ANY,),
        answers={200: None, 304: None},
    ),
    Row(
        "POST",
        routes.PFS_COMPARE,
        "compare",
        "Which of many files are not there, or not the same",
        body=pfs_shapes.PfsCompareBody,
        answers={200: pfs_shapes.PfsCompared},
        body_limit_bytes=MANY_BODY_BYTES,
    ),
    Row(
        "POST",
        routes.PFS_UPLOADS,
        "begin_upload",
        "Begin an upload, or find it again",
        body=pfs_shapes.PfsUploadBody,
        answers={200: pfs_shapes.PfsUpload},
    ),
    Row(
        "GET",
        routes.PFS_UPLOADS,
        "uploads",
        "Uploads that are not finished",
        answers={200: pfs_shapes.PfsUploads},
    ),
    Row(
        "PUT",
        routes.PFS_UPLOAD,
        "put_leaves",
        "Send some of an upload's leaves, or all",
        (
            Param("offset", int, "where they begin; a multiple of 4 MiB", 0, 0),
            Param("checks", bool, "answer with the XXH3 of each leaf besides", False),
        ),
        body_type=BYTES,
        answers={200: pfs_shapes.PfsLeaves},
    ),
    Row(
        "POST",
        routes.PFS_UPLOAD_TAKE,
        "take_leaves",
        "Read some of an upload's leaves from the file that was handed over",
        (
            Param("offset", int, "where they begin; a multiple of 4 MiB", 0, 0, is_needed=True),
            Param("length", int, "so many bytes", 0, 0, handovers.MOST_BYTES, is_needed=True),
        ),
        answers={200: pfs_shapes.PfsLeaves},
    ),
    Row(
        "DELETE",
        routes.PFS_UPLOAD,
        "abandon_upload",
        "Forget an upload and its bytes",
        answers={204: None},
    ),
    Row(
        "POST",
        routes.PFS_UPLOAD_REUSE,
        "reuse_leaves",
        "Take leaves from the file that is there now",
        body=pfs_shapes.PfsReuseBody,
        answers={200: pfs_shapes.PfsReused},
    ),
    Row(
        "POST",
        routes.PFS_UPLOAD_COMMIT,
        "commit_upload",
        "Make the upload the file, if its digest is this",
        body=pfs_shapes.PfsCommitBody,
        answers={200: pfs_shapes.PfsEntry},
    ),
    Row(
        "POST",
        routes.PFS_BATCH,
        "batch",
        "Store many small files at once",
        (_path("the directory the names are relative to"), _FILES, _BYTES),
        body_type=records.CONTENT_TYPE,
        answers={200: pfs_shapes.PfsBatch},
    ),
    Row(
        "POST",
        routes.PFS_FETCH,
        "fetch",
        "Read many small files at once",
        body=pfs_shapes.PfsFetchBody,
        answers={200: records.CONTENT_TYPE},
        body_limit_bytes=MANY_BODY_BYTES,
    ),
    Row(
        "POST",
        routes.PFS_SNAPSHOTS,
        "put_snapshot",
        "Pin a list of files, or hear which of them have to be sent",
        body=pfs_shapes.PfsSnapshotBody,
        answers={200: pfs_shapes.PfsSnapshotStored},
        body_limit_bytes=MANY_BODY_BYTES,
    ),
    Row(
        "GET",
        routes.PFS_SNAPSHOT,
        "snapshot",
        "A snapshot of the account",
        answers={200: pfs_shapes.PfsSnapshot},
    ),
    Row(
        "POST",
        routes.PFS_BLOBS,
        "blobs",
        "Store what snapshots lack",
        (_FILES, _BYTES),
        body_type=records.CONTENT_TYPE,
        answers={200: pfs_shapes.PfsBatch},
    ),
)

_ENVELOPE = {200: pfs_shapes.OldEnvelope}
_METHOD = Param("method", str, "what to do", "")
_OLD_CHUNK = (
    Param("path", str, "the file", ""),
    Param("offset", str, "where the chunk begins", ""),
    Param("chunksize", str, "its length, 4 KiB to 32 MiB", ""),
)

OLD = (
    Row(
        "GET",
        routes.V1_PFS_FILES,
        "old_look",
        "method=ls (r, arg...) or method=stat (path)",
        (
            _METHOD,
            Param("r", str, "true: also what is in directories", ""),
            Param("arg", str, "a path or pattern; repeatable", ""),
            Param("path", str, "for stat", ""),
        ),
        answers=_ENVELOPE,
        dialect="old",
    ),
    *(
        Row(
            method,
            routes.V1_PFS_FILES,
            "old_change",
            '{"method": "mkdir" | "touch" | "rm", ...}',
            body_type="application/json",
            answers=_ENVELOPE,
            dialect="old",
        )
        for method in ("POST", "DELETE")
    ),
    Row(
        "GET",
        routes.V1_PFS_CHUNKS,
        "old_chunk_meta",
        "The MD5 of a chunk",
        (_METHOD, *_OLD_CHUNK),
        answers=_ENVELOPE,
        dialect="old",
    ),
    Row(
        "GET",
        routes.V1_PFS_STORAGE_CHUNKS,
        "old_get_chunk",
        "A chunk as a multipart body, an envelope behind it",
        _OLD_CHUNK,
        answers={200: MULTIPART},
        dialect="old",
    ),
    Row(
        "POST",
        routes.V1_PFS_STORAGE_CHUNKS,
        "old_post_chunk",
        "Write a chunk",
        body_type=MULTIPART,
        answers=_ENVELOPE,
        dialect="old",
    ),
)

_FILE_PATH = (Param("path", str, "the file", ""),)
_LIST_PARAMS = (
    Param("path", str, "the directory", ""),
    Param("dc", str, "the datacenter; the path's if left out", ""),
)
SIMPLE = tuple(
    row
    for slash in ("", "/")
    for row in (
        Row(
            "POST",
            routes.V1_FILE + slash,
            "simple_put",
            "Store one file",
            _FILE_PATH,
            body_type=MULTIPART,
            answers={200: shapes_v1.DoneV1},
            dialect="simple",
        ),
        Row(
            "GET",
            routes.V1_FILE + slash,
            "simple_get",
            "Read one file",
            _FILE_PATH,
            answers={200: DOWNLOAD},
            dialect="simple",
        ),
        Row(
            "GET",
            routes.V1_FILELIST + slash,
            "simple_list",
            "The names in a directory",
            _LIST_PARAMS,
            answers={200: shapes_v1.FileListV1},
            dialect="simple",
        ),
    )
)

ROWS: tuple[Row, ...] = (*V2, *OLD, *SIMPLE)
