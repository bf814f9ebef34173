"""`cluster list|info`: tables, JSON of both releases, and what is refused."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run
from tests.scripted_server import Answer, ScriptedServer

pytestmark = pytest.mark.usefixtures("elsewhere")

GROUP = {
    "name": "alice",
    "limits": {"cpu": "4", "memory": None, "gpu": 2, "replicas": None},
    "used": {"cpu": "1", "memory": "1Gi", "gpu": 0, "replicas": 2},
    "idle": {"cpu": "3", "memory": "7Gi", "gpu": 2, "replicas": None},
}
LOCAL = {
    "name": "local",
    "engine": "embedded",
    "is_default": True,
    "total": {"cpu": "8", "memory": "8Gi", "gpu": 4},
    "free": {"cpu": "7", "memory": "7Gi", "gpu": 4},
    "notes": [],
    "groups": [GROUP],
}
SILENT = {**LOCAL, "name": "yq01", "is_default": False, "total": None, "free": None}
SILENT["notes"] = ["the engine of yq01 does not answer"]


@pytest.fixture
def clusters(server: ScriptedServer) -> ScriptedServer:
    server.routes["GET /api/v2/clusters"] = Answer({"items": [LOCAL, SILENT]})
    return server


@pytest.mark.usefixtures("clusters")
def test_lists_what_there_is(run: Run) -> None:
    ran = run("cluster", "list")
    assert ran.code == 0
    rule = len("cluster_name | engine   | cpu | memory | gpu | idle_cpu | idle_memory | idle_gpu")
    assert ran.out == (
        f"{'=' * rule}\n"
        "cluster_name | engine   | cpu | memory | gpu | idle_cpu | idle_memory | idle_gpu\n"
        f"{'-' * rule}\n"
        "local        | embedded | 8   | 8Gi    | 4   | 7        | 7Gi         | 4\n"
        "yq01         | embedded | -   | -      | -   | -        | -           | -\n"
    )
    assert ran.err == "note: yq01: the engine of yq01 does not answer\n"
    assert run("cluster").out == ran.out


@pytest.mark.usefixtures("clusters")
def test_tells_quota_by_group(run: Run) -> None:
    ran = run("cluster", "info", "--cluster-name", "local")
    header = "cluster_name | group_name | resource | quota    | used | idle"
    rule = len(header) + len("no limit") - len("idle")
    assert ran.out.splitlines() == [
        "=" * rule,
        header,
        "-" * rule,
        "local        | alice      | cpu      | 4        | 1    | 3",
        "local        | alice      | memory   | no limit | 1Gi  | 7Gi",
        "local        | alice      | gpu      | 2        | 0    | 2",
        "local        | alice      | replicas | no limit | 2    | no limit",
    ]
    assert len(run("cluster", "info").out.splitlines()) == 3 + 8


@pytest.mark.usefixtures("clusters")
def test_speaks_json_of_both_releases(run: Run) -> None:
    new = json.loads(run("cluster", "info", "--json").out)
    assert new["clusters"][0]["groups"][0]["idleQuota"]["gpu"] == 2
    assert new["clusters"][1]["resources"] is None
    old = json.loads(run("cluster", "--compat", "1", "list", "--json").out)
    assert (old["code"], old["msg"]) == (0, "success")
    assert [each["clusterName"] for each in old["data"]] == ["local", "yq01"]


@pytest.mark.usefixtures("clusters")
def test_an_unknown_cluster_is_answered_with_those_there_are(run: Run) -> None:
    ran = run("cluster", "info", "--cluster-name=nope")
    assert ran.code == 1
    assert ran.out.startswith("Oops...The named cluster 'nope' not exists.\n====")
    assert "\nlocal\nyq01\n" in ran.out


def test_an_unknown_option_is_exit_code_1(server: ScriptedServer, run: Run) -> None:
    ran = run("cluster", "list", "--cluster-name", "x")
    assert (ran.code, server.requests) == (1, [])
    assert "--cluster-name    unknown option" in ran.err


def test_a_failure_is_exit_code_1(server: ScriptedServer, run: Run) -> None:
    body = {"code": "not_logged_in", "message": "who are you?", "hint": "log in", "field": ""}
    server.routes["GET /api/v2/clusters"] = Answer(body, 401)
    ran = run("cluster")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "Error occurred: who are you?\nhint:  log in\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lst",), "did you mean list?"),
        (("info", "local"), "is not asked for here"),
        (("info", "--cluster-name"), "needs a value"),
        (("--nonsense", "list", "x"), "--nonsense"),
    ],
)
def test_refuses(server: ScriptedServer, run: Run, words: tuple[str, ...], said: str) -> None:
    ran = run("cluster", *words)
    assert (ran.code, ran.out, server.requests) == (2, "", [])
    assert said in ran.err
