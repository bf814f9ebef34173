"""The file server's routes as rows of ours: relayed, and described in the same OpenAPI file."""

from __future__ import annotations

from typing import Any

from paddlecloud.server.routing import Param, Route, Work
from paddlecloud.wire import routes

_PATH = Param("path", str, "/pfs/<datacenter>/home/<user>/… or /pfs/<datacenter>/public/…", "")


def _answered_there(*_: Any) -> None:
    raise AssertionError("the file server answers this")


def _row(method: str, path: str, summary: str, **more: Any) -> Route:
    dialect = "v1" if path.startswith("/api/v1/") else "v2"
    more.setdefault("answers", {200: dict[str, Any]})
    return Route(method, path, _answered_there, summary, work=Work.RELAY, dialect=dialect, **more)


_NEW = [
    _row("GET", routes.PFS_ENTRIES, "What is in a directory"),
    _row("GET", routes.PFS_ENTRY, "One file or directory"),
    _row(
        "GET", routes.PFS_CONTENT, "The bytes of a file", answers={200: "application/octet-stream"}
    ),
    _row("GET", routes.PFS_USAGE, "What is stored"),
    _row("POST", routes.PFS_DIRECTORIES, "Make directories"),
    _row("POST", routes.PFS_REMOVE, "Remove"),
    _row("POST", routes.PFS_MOVE, "Move"),
    _row("POST", routes.PFS_COPY, "Copy"),
    _row("POST", routes.PFS_COMPARE, "Which files are missing or different"),
    _row("GET", routes.PFS_UPLOADS, "Unfinished uploads"),
    _row("POST", routes.PFS_UPLOADS, "Begin an upload"),
    _row("PUT", routes.PFS_UPLOAD, "Bytes of an upload"),
    _row("DELETE", routes.PFS_UPLOAD, "Give an upload up"),
    _row("POST", routes.PFS_UPLOAD_REUSE, "Take parts of the file that is there"),
    _row("POST", routes.PFS_UPLOAD_COMMIT, "Publish an upload"),
    _row("POST", routes.PFS_BATCH, "Many small files at once"),
    _row("POST", routes.PFS_FETCH, "Many small files at once"),
    _row("POST", routes.PFS_SNAPSHOTS, "Keep a folder by content"),
    _row("GET", routes.PFS_SNAPSHOT, "What is known of a snapshot"),
    _row("POST", routes.PFS_BLOBS, "Contents of a snapshot"),
]
_OLD = [
    _row("GET", routes.V1_PFS_FILES, "List or stat, as the first client asks it"),
    _row("POST", routes.V1_PFS_FILES, "mkdir, touch or rm"),
    _row("DELETE", routes.V1_PFS_FILES, "rm"),
    _row("GET", routes.V1_PFS_CHUNKS, "The MD5 of a chunk"),
    _row("GET", routes.V1_PFS_STORAGE_CHUNKS, "A chunk"),
    _row("POST", routes.V1_PFS_STORAGE_CHUNKS, "Store a chunk"),
]
ROUTES = [*_NEW, *_OLD]
