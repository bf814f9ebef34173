"""A server for a cluster whose API server is not there: it starts, says so, and keeps promises."""

from __future__ import annotations

import json
from pathlib import Path

from tests.server.running import Running


def _kubeconfig(path: Path) -> Path:
    """Of an address where nothing listens."""
    body = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "u", "user": {}}],
    }
    path.write_text(json.dumps(body))
    return path


def test_starts_says_so_and_takes_jobs(make_server, tmp_path: Path) -> None:
    config = _kubeconfig(tmp_path / "kubeconfig")
    server: Running = make_server("kubernetes", PADDLECLOUD_KUBECONFIG=str(config)).start()
    admin = server.admin
    status = admin.get("/api/v2/status").json
    assert status["engine"] == "kubernetes"
    assert any("API server" in note for note in status["notes"]), status["notes"]
    admin.submit("waits", "python train.py")
    job = admin.get("/api/v2/jobs/waits/wait?for=changed&after=0&timeout_s=0").json
    while not job["reason"]:
        after = job["revision"]
        job = admin.get(f"/api/v2/jobs/waits/wait?for=changed&after={after}&timeout_s=20").json
        assert job["revision"] != after, "nobody says why it waits"
    assert job["phase"] == "Submitted"
    assert "the API server did not answer" in job["reason"]
    assert admin.post("/api/v2/registries", _LOGIN).status == 201
    # What never came to the cluster can be killed all the same, and the server can be stopped.
    assert admin.post("/api/v2/jobs/waits/cancel").status == 202
    assert admin.wait("waits")["phase"] == "Killed"
    assert server.stop() == 0
    server.start()
    assert server.admin.get("/api/v2/jobs/waits").json["phase"] == "Killed"


_LOGIN = {"name": "hub", "username": "a", "password": "b", "server": "hub.example.com"}
