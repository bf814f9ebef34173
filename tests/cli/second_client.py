"""A server for tests of the second client: jobs as it knows them, packages it takes."""

from __future__ import annotations

from typing import Any

from tests.cli.shapes import job
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
    """Take packages and jobs; the bodies of the jobs, and the packages' bytes under `bytes`."""
    sent: list[dict[str, Any]] = []
    original = server.answer

    def answer(request: Request) -> Answer:
        if "/packages/" in request.path:
            if request.method == "PUT":
                sent.append({"bytes": request.body})
            return Answer(None, 404) if request.method == "HEAD" else Answer({}, 201)
        return original(request)

    def create(request: Request) -> Answer:
        sent.append(request.json)
        return Answer(job(request.json["name"], phase="Submitted"), 201)

    server.answer = answer  # type: ignore[method-assign]
    server.routes["POST /api/v2/jobs"] = create
    server.routes["GET /api/v2/runtimes"] = Answer({"items": [{"name": "paddle-v2.4.1"}]})
    server.routes["GET /api/v2/whoami"] = Answer({"name": "alice", "clusters": ["local"]})
    return sent
