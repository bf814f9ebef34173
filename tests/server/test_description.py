"""The OpenAPI file is what the server does: same routes, and answers of the shapes it names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from paddlecloud.wire import shapes, shapes_v1
from tests.server.running import Caller, Running

ROOT = Path(__file__).parent.parent.parent


def test_the_file_in_docs_is_current(server: Running) -> None:
    served = server.admin.get("/api/v2/openapi.json").json
    stored = json.loads((ROOT / "docs" / "openapi.json").read_text())
    assert stored == served, "run: python -m paddlecloud.server.openapi"


def test_every_operation_has_a_name_of_its_own_and_every_reference_leads_somewhere(
    server: Running,
) -> None:
    document = server.admin.get("/api/v2/openapi.json").json
    names = [row["operationId"] for rows in document["paths"].values() for row in rows.values()]
    assert len(names) == len(set(names))
    for name in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)):
        assert name in document["components"]["schemas"]


@pytest.fixture(scope="module")
def worker(server: Running) -> Caller:
    """Somebody with a job that failed, one that waits and one that runs."""
    caller = server.account("described")
    caller.submit("failed", "fake exit=3", mode="ps", parallelism=2, pservers=1)
    caller.wait("failed")
    waits = caller.submit("waits", "fake queue=1")
    caller.get(f"/api/v2/jobs/waits/wait?for=changed&after={waits['revision']}")
    caller.submit("runs", "fake hold=1")
    caller.wait("runs", "running")
    return caller


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/api/v2/status", shapes.StatusShape),
        ("/api/v2/whoami", shapes.WhoamiShape),
        ("/api/v2/jobs?phase=all", shapes.JobListShape),
        ("/api/v2/jobs/failed", shapes.JobWithSpecShape),
        ("/api/v2/jobs/failed/runs", shapes.RunListShape),
        ("/api/v2/jobs/failed/replicas", shapes.ReplicaListShape),
        ("/api/v2/jobs/failed/events", shapes.EventListShape),
        ("/api/v2/jobs/failed/explain", shapes.ExplainShape),
        ("/api/v2/jobs/waits/explain", shapes.ExplainShape),
        ("/api/v2/jobs/runs/wait?timeout_s=0", shapes.JobShape),
        ("/api/v2/changes?timeout_s=0", shapes.ChangesShape),
        ("/api/v2/quota", shapes.QuotaShape),
        ("/api/v2/runtimes", shapes.RuntimeListShape),
        ("/api/v2/nothing", shapes.ErrorShape),
        ("/api/v2/jobs?limit=x", shapes.ErrorShape),
        ("/api/v1/jobs", shapes_v1.JobListV1),
        ("/api/v1/jobs/", shapes_v1.ObjectListV1),
        ("/api/v1/workers/", shapes_v1.ObjectListV1),
        ("/api/v1/pservers", shapes_v1.ItemsInMsgV1),
        ("/api/v1/quota", shapes_v1.QuotaV1),
        ("/api/v1/quota/", shapes_v1.ObjectListV1),
        ("/api/v1/token2user/", shapes_v1.UserV1),
        ("/api/v1/logs?jobname=failed", shapes_v1.DoneV1),
        ("/api/v1/filelist?path=/pfs/local/home/described", shapes_v1.FileListV1),
    ],
)
def test_answers_have_the_shape_they_are_described_with(
    worker: Caller, path: str, shape: Any
) -> None:
    body = worker.get(path).body
    decoded = msgspec.json.decode(body, type=shape)  # refuses missing keys and wrong types
    assert set(json.loads(body)) == set(decoded), "a key that is not described"


def test_administrators_answers_have_their_shape(server: Running) -> None:
    body = server.admin.get("/api/v2/accounts").body
    msgspec.json.decode(body, type=shapes.AccountListShape)
    body = server.admin.post("/api/v2/jobs?dry_run=1", _dry(server.admin)).body
    msgspec.json.decode(body, type=shapes.DryRunShape)


def _dry(caller: Caller) -> dict[str, str]:
    return {"name": "dry", "entry": "fake", "package_digest": caller.upload({"a": b""})}
