"""A scripted server that takes packages, by content, as the real one does."""

from __future__ import annotations

from tests.scripted_server import Answer, Request, ScriptedServer


def take_packages(server: ScriptedServer, *, has_all: bool = False, has: int = 0) -> list[Request]:
    """It has the first `has` files of every package, or all of them; the requests that bring
    the rest are in the list that is returned."""
    received: list[Request] = []

    def snapshot(request: Request) -> Answer:
        digests = [row[3] for row in request.json["files"]]
        missing = [] if has_all or received else digests[has:]
        return Answer({"digest": request.json["digest"], "missing": missing})

    def blobs(request: Request) -> Answer:
        received.append(request)
        return Answer({"stored": int(request.query["files"]), "bytes": 0, "refused": []})

    server.routes["GET /api/v2/status"] = Answer({})  # files go the same way as everything else
    server.routes["POST /api/v2/pfs/snapshots"] = snapshot
    server.routes["POST /api/v2/pfs/blobs"] = blobs
    return received
