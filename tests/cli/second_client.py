"""A server for tests of the second client: jobs as it knows them, packages it takes."""

from __future__ import annotations

from typing import Any

from tests.cli.shapes import job
from tests.cli.taking import take_packages
from tests.scripted_server import Answer, Request, ScriptedServer

ID = "job-4f1c09d2a7b35e60"
OTHER = "job-0a1b2c3d4e5f6071"
TRAIN = ("train", "--job-name", "a_b:1", "--start-cmd", "python t.py")


def full(
    name: str = "a-b-1-1f2e3d", title: str = "a_b:1", notes: Any = None, **changes: Any
) -> dict[str, Any]:
    """A job of the second client as the server knows it."""
    spec = {
        "runtime": "",
        "entry": "exec sh start.sh 'python t.py'",
        "annotations": {"job-name": title, **(notes or {})},
    }
    return {**job(name, mode="single", **changes), "spec": spec}


def accept(server: ScriptedServer) -> list[dict[str, Any]]:
    """Take packages and jobs; the bodies of the jobs, and of packages the content of their files
    under `bytes` and the list of them under `names`."""
    sent: list[dict[str, Any]] = []
    take_packages(server)
    take = server.routes["POST /api/v2/pfs/blobs"]
    lists = server.routes["POST /api/v2/pfs/snapshots"]
    names: list[bytes] = []

    def snapshot(request: Request) -> Answer:
        names.append(request.body)
        return lists(request)  # type: ignore[operator]

    def blobs(request: Request) -> Answer:
        sent.append({"bytes": request.body, "names": b"".join(names)})
        return take(request)  # type: ignore[operator]

    def create(request: Request) -> Answer:
        sent.append(request.json)
        return Answer(job(request.json["name"], phase="Submitted"), 201)

    server.routes["POST /api/v2/pfs/snapshots"] = snapshot
    server.routes["POST /api/v2/pfs/blobs"] = blobs
    server.routes["POST /api/v2/jobs"] = create
    server.routes["GET /api/v2/runtimes"] = Answer({"items": [{"name": "paddle-v2.4.1"}]})
    server.routes["GET /api/v2/whoami"] = Answer({"name": "alice", "clusters": ["local"]})
    return sent
