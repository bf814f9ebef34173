"""The engine for Kubernetes on a real API server; statuses are written as an operator would."""

from __future__ import annotations

import itertools
import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.core.errors import Unavailable
from paddlecloud.core.jobspec import Mode, Role, RoleSpec
from paddlecloud.core.observed import Move, ReplicaKey
from paddlecloud.core.phases import Phase
from paddlecloud.engines.kubernetes.config import KubernetesConfig
from paddlecloud.engines.kubernetes.engine import KubernetesEngine
from paddlecloud.engines.protocols import JobRun
from paddlecloud.kube.client import member
from paddlecloud.scheduling.snapshot import Group, Quota
from tests.engine_bench import SMALL, Bench, a_job
from tests.kube.running import Cluster, until

pytestmark = pytest.mark.needs("kube")

_numbers = itertools.count(1)
VERSION, PLURAL = "batch.paddlepaddle.org/v1", "paddlejobs"


class Home:
    """An account's namespace, and an engine that serves it."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.client = cluster, cluster.client()
        self.prefix = f"engine{next(_numbers)}-"
        self.namespace = f"{self.prefix}alice"
        self._config = KubernetesConfig(
            folder, cluster="dc", kubeconfig=cluster.kubeconfig, namespace_prefix=self.prefix
        )
        self.bench = Bench(self._make, self._make(), folder / "pfs")
        self.bench.engine.start()

    def _make(self) -> KubernetesEngine:
        return KubernetesEngine(self._config)

    def another(self, folder: Path) -> KubernetesEngine:
        """With a memory of its own."""
        return KubernetesEngine(replace(self._config, state_dir=folder))

    @property
    def engine(self) -> KubernetesEngine:
        engine = self.bench.engine
        assert isinstance(engine, KubernetesEngine)
        return engine

    def put(self, **more: Any) -> JobRun:
        job = a_job("", "true", mode=Mode.COLLECTIVE, trainers=2, **more)
        job = replace(job, secret_env={"TOKEN": "s3cret"})
        self.engine.put(job)
        return job

    def objects(self) -> list[dict[str, Any]]:
        path = f"/apis/{VERSION}/namespaces/{self.namespace}/{PLURAL}"
        found: list[dict[str, Any]] = self.client.get(path)["items"]
        return found

    def write_status(self, **status: Any) -> None:
        (body,) = self.objects()
        path = member(VERSION, PLURAL, self.namespace, body["metadata"]["name"], "status")
        self.client.patch(path, {"status": status})

    def notes(self) -> dict[str, str]:
        (body,) = self.objects()
        found: dict[str, str] = body["metadata"]["annotations"]
        return found

    def close(self) -> None:
        self.engine.close()
        self.cluster.kubectl(
            "delete", "namespace", self.namespace, "--wait=false", "--ignore-not-found"
        )


@pytest.fixture
def home(cluster: Cluster, tmp_path: Path) -> Iterator[Home]:
    made = Home(cluster, tmp_path / "engine")
    yield made
    made.close()


def test_makes_one_object_of_a_run_however_often_it_is_put(home):
    job = home.put()
    home.engine.put(job)
    home.bench.restart()
    home.engine.put(job)
    (body,) = home.objects()
    assert body["metadata"]["labels"]["paddlepaddle.org/job-id"] == job.job_id
    (secret,) = [
        one
        for one in home.client.get(f"/api/v1/namespaces/{home.namespace}/secrets")["items"]
        if one["metadata"]["name"].endswith(".env")
    ]
    assert secret["metadata"]["ownerReferences"][0]["uid"] == body["metadata"]["uid"]


def test_tells_what_the_object_says_and_after_a_restart_only_news(home):
    job = home.put()
    home.bench.until(job, Phase.SUBMITTED)
    home.write_status(phase="Pending", lifecycle="Queued", reason="waits for cpu")
    assert home.bench.until(job, Phase.QUEUED).status.reason == "waits for cpu"
    told = len(home.bench.told)
    home.bench.restart()
    home.write_status(phase="Completed", lifecycle="Succeeded", reason="")
    home.bench.end(job)
    assert [change.status.phase for change in home.bench.told[told:]] == [Phase.SUCCEEDED]


def test_a_lost_memory_is_another_epoch_and_what_is_there_is_found_again(home, tmp_path):
    job = home.put()
    other = home.another(tmp_path / "other")
    assert other.history().epoch != home.engine.history().epoch
    assert other.knows(job.job_id, 1)
    assert not other.knows(job.job_id, 2)
    other.put(job)
    other.start()
    assert other.watch(0, 30)[0].status.phase == Phase.SUBMITTED
    other.close()
    assert len(home.objects()) == 1


def test_an_object_that_vanished_while_nobody_looked_has_ended(home):
    job = home.put()
    home.bench.until(job, Phase.SUBMITTED)
    home.write_status(phase="Running", lifecycle="Running")
    home.bench.until(job, Phase.RUNNING)
    home.engine.close()
    home.cluster.kubectl("-n", home.namespace, "delete", "pdj", "--all")
    home.bench.engine = home.bench.make()
    home.engine.start()
    end = home.bench.end(job).status
    assert end.phase == Phase.KILLED
    assert end.reason.endswith("was deleted from the cluster")
    assert home.namespace in end.reason


def test_orders_are_notes_on_the_object(home):
    job = home.put()
    home.engine.cancel(job.job_id, 1, "by alice")
    home.engine.cancel(job.job_id, 1, "by bob")
    move = Move(Role.TRAINER, 1, 1, "n1", 2.5)
    home.engine.move(job.job_id, 1, [move])
    home.engine.move(job.job_id, 1, [move, replace(move, index=0)])
    assert home.notes()["paddlepaddle.org/cancel"] == "by alice"
    rows = json.loads(home.notes()["paddlepaddle.org/moves"])
    assert [(row["role"], row["index"], row["host"]) for row in rows] == [
        ("trainer", 1, "n1"),
        ("trainer", 0, "n1"),
    ]


def test_a_deleted_job_leaves_nothing(home):
    job = home.put()
    home.bench.until(job, Phase.SUBMITTED)
    home.write_status(phase="Completed", lifecycle="Succeeded")
    home.bench.end(job)
    home.engine.delete(job.job_id)
    assert home.objects() == []
    assert home.engine.watch(0, 0) == []
    key = ReplicaKey(job.job_id, 1, Role.TRAINER, 0, 1)
    assert home.engine.log(key, 0, 100).data == b""


def test_a_job_the_cluster_never_takes_fails_with_its_words(home):
    job = a_job("", "true", mode=Mode.COLLECTIVE)
    bad = RoleSpec(Role.TRAINER, 3, SMALL, min_replicas=5, max_replicas=2)
    home.engine.put(replace(job, spec=replace(job.spec, roles=(bad,))))
    end = home.bench.end(job).status
    assert end.phase == Phase.FAILED
    assert "requests" in end.reason


# --- jobs that others made ---------------------------------------------------------------------


def by_hand(home: Home, name: str, **metadata: Any) -> str:
    template = {"spec": {"containers": [{"name": "x", "image": "own:1"}]}}
    body = {
        "apiVersion": VERSION,
        "kind": "PaddleJob",
        "metadata": {"name": name, "namespace": home.namespace, **metadata},
        "spec": {"worker": {"replicas": 2, "template": template}},
    }
    made = home.client.create(f"/apis/{VERSION}/namespaces/{home.namespace}/{PLURAL}", body)
    return "job-" + made["metadata"]["uid"].replace("-", "")[:16]


def test_tells_of_jobs_made_with_kubectl_in_an_accounts_namespace(home):
    home.engine.put(a_job("", "true"))  # so that the namespace is there
    job_id = by_hand(home, "mine")
    change = until(lambda: _told(home, job_id), "the job made by hand")
    assert change.status.phase == Phase.SUBMITTED
    found = home.engine.found(job_id)
    assert (found.account, found.account_id, found.spec.name) == ("alice", 1, "mine")
    assert found.spec.trainers.template["spec"]["containers"][0]["image"] == "own:1"
    home.engine.cancel(job_id, 1, "by alice")
    home.engine.delete(job_id)
    until(lambda: "paddlepaddle.org/cancel" in _notes_of(home, "mine"), "the order")


def _told(home: Home, job_id: str) -> Any:
    home.bench.read()
    return next((one for one in home.bench.told if one.job_id == job_id), None)


def _notes_of(home: Home, name: str) -> dict[str, str]:
    body = home.client.get(member(VERSION, PLURAL, home.namespace, name))
    return body["metadata"].get("annotations") or {}


def test_believes_nobody_who_says_his_object_is_the_platforms(home):
    victim = home.put()
    home.bench.until(victim, Phase.SUBMITTED)
    labels = {"paddlepaddle.org/job-id": victim.job_id, "paddlepaddle.org/run": "7"}
    forged = by_hand(home, "forged", labels=labels)
    honest = by_hand(home, "honest")
    until(lambda: _told(home, honest), "the honest one")
    assert _told(home, forged) is None
    assert home.engine.found(forged) is None
    assert {one.run for one in home.bench.told if one.job_id == victim.job_id} == {1}


# --- groups and quotas -------------------------------------------------------------------------


def groups_of(home: Home) -> dict[str, Any]:
    items = home.client.get("/apis/paddlepaddle.org/v1/resourcegroups")["items"]
    return {body["metadata"]["name"]: body["spec"] for body in items}


def test_publishes_groups_and_who_may_use_them(home):
    group = Group("owners", guarantee=Quota(gpu=4, memory_bytes=2**30), weight=3)
    home.engine.set_groups({"owners": group, "a_b": Group("a_b")})
    until(lambda: len(groups_of(home)) == 2, "the groups")
    home.put(group="owners")
    assert groups_of(home)["owners"] == {
        "guarantee": {"memory": "1Gi", "gpu": 4},
        "limit": {},
        "weight": 3,
        "namespaces": [home.namespace],
    }
    home.engine.set_groups({})
    until(lambda: not groups_of(home), "no groups")


def quota_of(home: Home) -> dict[str, str]:
    notes = home.client.get(f"/api/v1/namespaces/{home.namespace}")["metadata"]["annotations"]
    found: dict[str, str] = json.loads(notes.get("paddlepaddle.org/quota", "{}"))
    return found


def test_writes_quotas_on_the_namespaces(home):
    home.put()
    home.engine.set_quota({1: Quota(gpu=2)})
    assert until(lambda: quota_of(home), "the quota") == {"gpu": "2"}


def test_leaves_the_accounts_of_another_platform_alone(home, namespace):
    theirs = ("paddlepaddle.org/account=carol", "paddlepaddle.org/account-id=1")
    home.cluster.kubectl("annotate", "namespace", namespace.name, *theirs)
    home.put()
    home.bench.restart()  # it lists the namespaces anew
    for gpus in (2, 3):  # when the second is written, all was done for the first
        home.engine.set_quota({1: Quota(gpu=gpus)})
        until(lambda gpus=gpus: quota_of(home) == {"gpu": str(gpus)}, "the quota")
    names = home.cluster.kubectl("get", "namespaces", "-o", "name").split()
    assert f"namespace/{home.prefix}carol" not in names


# --- a server that does not answer -------------------------------------------------------------


@pytest.fixture(params=["refuses", "is silent"])
def away(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KubernetesEngine]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        if request.param == "refuses":
            server.close()
            port = 1
        else:
            port = server.getsockname()[1]
        config = tmp_path / "kubeconfig"
        config.write_text(
            json.dumps(
                {
                    "current-context": "x",
                    "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
                    "clusters": [{"name": "x", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
                    "users": [{"name": "x", "user": {}}],
                }
            )
        )
        engine = KubernetesEngine(
            KubernetesConfig(tmp_path / "engine", kubeconfig=config, patience_s=(0.5, 1.0))
        )
        engine.start()
        yield engine
        engine.close()


def seconds_of(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def test_says_so_when_the_server_is_away_and_keeps_nobody(away):
    job = a_job("", "true")

    def put() -> None:
        with pytest.raises(Unavailable) as caught:
            away.put(job)
        assert "did not answer" in caught.value.message

    for call in (put, lambda: away.check(job.spec), away.capacity, away.snapshot):
        assert seconds_of(call) < 5.0
    assert away.check(job.spec) == []
    assert "does not answer" in away.capacity().notes[0]
    assert away.knows(job.job_id, 1)
    assert away.explain(job.job_id) is None


def test_a_job_that_never_came_to_the_cluster_can_be_killed(home, monkeypatch):
    job = a_job("", "true")

    def fails(*_: object) -> None:
        raise Unavailable("not now")

    monkeypatch.setattr("paddlecloud.engines.kubernetes.orders.Orders.make", fails)
    with pytest.raises(Unavailable):
        home.engine.put(job)
    home.engine.cancel(job.job_id, 1, "by alice")
    end = home.bench.end(job).status
    assert (end.phase, end.reason) == (Phase.KILLED, "by alice")
