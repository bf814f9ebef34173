"""Who runs when, on a real API server and scheduler: eight nodes with eight cards each.

What is contested are cards, which no other test uses. A job of `n` workers takes `n` nodes.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kube import dying_operator, running
from tests.kube.running import Cluster, Namespace, until
from tests.kube.test_jobs import paddle_job, role

pytestmark = [pytest.mark.e2e, pytest.mark.needs("kube")]

NODES, CARDS = 8, "nvidia.com/gpu"


def cards(workers: int, each: int = 8) -> dict[str, Any]:
    made = role(workers)
    made["template"]["spec"]["containers"][0]["resources"] = {"limits": {CARDS: str(each)}}
    return made


def admitted(namespace: Namespace, job: str) -> tuple[str, str, str]:
    """The condition: whether, why, and in words."""
    for one in namespace.status(job).get("conditions", ()):
        if one["type"] == "Admitted":
            return one["status"], one["reason"], one["message"]
    return "", "", ""


def until_waits(namespace: Namespace, job: str, why: str) -> str:
    """Until the job waits for this; the sentence."""
    until(lambda: admitted(namespace, job)[:2] == ("False", why), f"{job} to wait: {why}")
    return admitted(namespace, job)[2]


def events(namespace: Namespace, job: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in namespace.get("events")["items"]:
        if one["involvedObject"]["name"] == job:
            found.setdefault(one["reason"], []).append(one["message"])
    return found


def finish(namespace: Namespace, job: str) -> None:
    """Let the workers of this job end well, and the job with them."""
    chosen = f"paddlepaddle.org/job={job}"
    namespace.kubectl("annotate", "pods", "-l", chosen, "pretend/complete-after=0s")
    namespace.until_phase("Completed", job)


def pods_of(namespace: Namespace, job: str) -> list[str]:
    return sorted(namespace.pods("-l", f"paddlepaddle.org/job={job}"))


@pytest.fixture(autouse=True)
def all_cards_are_free(cluster: Cluster) -> None:
    """Namespaces of earlier tests go in their own time, and until then their pods hold cards."""

    def holders() -> list[str]:
        pods = json.loads(cluster.kubectl("get", "pods", "-A", "-o", "json"))["items"]
        return [pod["metadata"]["name"] for pod in pods if CARDS in json.dumps(pod["spec"])]

    until(lambda: not holders(), "the cards of earlier tests to be free")


@pytest.fixture
def groups(cluster: Cluster, namespace: Namespace) -> Iterator[Any]:
    """Makes ResourceGroups that this namespace may use."""
    made: list[str] = []

    def make(name: str, **spec: Any) -> str:
        full = f"{name}-{namespace.name}"
        body = {
            "apiVersion": "paddlepaddle.org/v1",
            "kind": "ResourceGroup",
            "metadata": {"name": full},
            "spec": {"namespaces": [namespace.name], **spec},
        }
        cluster.kubectl("apply", "-f", "-", text=json.dumps(body))
        made.append(full)
        return full

    yield make
    for full in made:
        cluster.kubectl("delete", "rg", full)


def test_starts_whole_jobs_in_their_order(namespace, operator):
    """Nothing of a job that does not fit is made, and nobody passes it who would delay it."""
    namespace.apply(paddle_job("runs", worker=cards(6)))
    namespace.until_phase("Running", "runs")
    assert admitted(namespace, "runs") == ("True", "Admitted", "")
    assert namespace.status("runs")["allocation"] == {"workers": 6, "revision": 1}
    namespace.apply(paddle_job("first", worker=cards(NODES)))
    sentence = f"waits for 64 gpu: 16 free; runs ({namespace.name}) holds 48"
    assert until_waits(namespace, "first", "NoRoom") == sentence
    status = namespace.status("first")
    assert (status["phase"], status["reason"]) == ("Pending", sentence)
    namespace.apply(paddle_job("second", worker=cards(1)))
    words = until_waits(namespace, "second", "Behind")
    assert words.startswith("waits behind first")
    assert pods_of(namespace, "first") == pods_of(namespace, "second") == []
    assert events(namespace, "first") == {"Queued": [sentence]}
    finish(namespace, "runs")
    namespace.until_phase("Running", "first")
    assert len(pods_of(namespace, "first")) == NODES
    assert events(namespace, "first")["Admitted"] == ["starts with 8 trainers, 8 replicas in all"]
    assert pods_of(namespace, "second") == []
    finish(namespace, "first")
    namespace.until_phase("Running", "second")


def test_serves_the_higher_priority_first(namespace, operator):
    namespace.apply(paddle_job("runs", worker=cards(NODES)))
    namespace.until_phase("Running", "runs")
    namespace.apply(paddle_job("normal", worker=cards(NODES)))
    until_waits(namespace, "normal", "NoRoom")
    namespace.apply(paddle_job("urgent", worker=cards(NODES), priority="high"))
    until_waits(namespace, "urgent", "NoRoom")
    finish(namespace, "runs")
    namespace.until_phase("Running", "urgent")
    assert pods_of(namespace, "normal") == []


def test_holds_a_namespace_to_its_quota(namespace, operator):
    key = "paddlepaddle.org/quota"
    namespace.cluster.kubectl("annotate", "ns", namespace.name, f'{key}={{"gpu": 16}}')
    namespace.apply(paddle_job("runs", worker=cards(2)))
    namespace.until_phase("Running", "runs")
    namespace.apply(paddle_job("waits", worker=cards(1)))
    words = until_waits(namespace, "waits", "OverQuota")
    assert words == "your quota of 16 gpu is used: 16 of 16"
    namespace.apply(paddle_job("never", worker=cards(3)))
    words = until_waits(namespace, "never", "QuotaTooSmall")
    assert words == "can never start: needs 24 gpu, your quota is 16"
    namespace.cluster.kubectl("annotate", "ns", namespace.name, f"{key}-")
    namespace.until_phase("Running", "waits")
    namespace.until_phase("Running", "never")


def test_gives_a_group_its_guarantee_back(namespace, operator, groups):
    """Who borrowed it stops, waits with its age, and goes on; no restart is counted."""
    owners = groups("owners", guarantee={"gpu": 64})
    others = groups("others", limit={"gpu": 64})
    policy = {"group": others, "mayBorrow": True}
    namespace.apply(paddle_job("borrows", worker=cards(6), schedulingPolicy=policy))
    namespace.until_phase("Running", "borrows")
    namespace.apply(paddle_job("ordinary", worker=cards(1), schedulingPolicy={"group": others}))
    until_waits(namespace, "ordinary", "AllGuaranteed")
    namespace.apply(paddle_job("owns", worker=cards(4), schedulingPolicy={"group": owners}))
    namespace.until_phase("Running", "owns")
    assert pods_of(namespace, "borrows") == []
    status = namespace.status("borrows")
    assert (status["phase"], status["allocation"]["preemptions"]) == ("Pending", 1)
    assert "startTime" not in status
    assert events(namespace, "borrows")["Preempted"] == [
        f"preempted: group {owners} takes its guarantee back for owns ({namespace.name}); "
        "it goes back to the queue with its age"
    ]
    finish(namespace, "owns")
    namespace.until_phase("Running", "borrows")
    status = namespace.status("borrows")
    assert (status["restarts"], status["allocation"]["workers"]) == (0, 6)
    pods = namespace.pods("-l", "paddlepaddle.org/job=borrows").values()
    assert {pod["metadata"]["labels"]["paddlepaddle.org/attempt"] for pod in pods} == {"2"}


def test_says_on_a_group_what_cannot_be_read(namespace, operator, groups):
    bad = groups("bad", guarantee={"gpu": 2}, limit={"gpu": 1})
    good = groups("good", guarantee={"cpu": "500m", "memory": "1Gi", "gpu": 1}, weight=3)

    def valid(name: str) -> dict[str, Any]:
        body = json.loads(namespace.cluster.kubectl("get", "rg", name, "-o", "json"))
        rows = body.get("status", {}).get("conditions", ())
        return next((one for one in rows if one["type"] == "Valid"), {})

    until(lambda: valid(bad).get("status") == "False", "the condition")
    assert "spec.guarantee.gpu: is more than spec.limit.gpu" in valid(bad)["message"]
    until(lambda: valid(good).get("status") == "True", "the condition")
    body = {"apiVersion": "paddlepaddle.org/v1", "kind": "ResourceGroup"}
    for spec in ({"weight": 0}, {"guarantee": {"cpu": "many"}}, {"limit": {"gpu": -1}}):
        text = json.dumps({**body, "metadata": {"name": "refused"}, "spec": spec})
        namespace.cluster.kubectl("apply", "-f", "-", text=text, ok=False)


def test_goes_on_where_a_killed_operator_was(namespace, tmp_path):
    """It dies when it has made some pods of a gang, and has not yet written that it may have them.
    A job of a higher priority comes before the next operator does, and has to wait."""
    config = str(namespace.cluster.kubeconfig)
    program = [sys.executable, "-m", dying_operator.__name__, config, namespace.name, "3", "after"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, cwd=running.ROOT) as dying:
        namespace.apply(paddle_job("begun", worker=cards(NODES)))
        assert dying.wait(running.PATIENCE_S) == dying_operator.DIED
    assert 0 < len(pods_of(namespace, "begun")) < NODES
    assert "allocation" not in namespace.status("begun")
    namespace.apply(paddle_job("urgent", worker=cards(NODES), priority="high"))
    words = ("--namespace", namespace.name, "--no-lease")
    with running.operator(namespace.cluster, tmp_path / "second.log", *words) as second:
        namespace.until_phase("Running", "begun")
        until_waits(namespace, "urgent", "NoRoom")
        before = namespace.pods("-l", "paddlepaddle.org/job=begun")
        second.stop(signal.SIGKILL)
    with running.operator(namespace.cluster, tmp_path / "third.log", *words):
        namespace.apply(paddle_job("late", worker=cards(1), priority="low"))
        until_waits(namespace, "late", "NoRoom")
        after = namespace.pods("-l", "paddlepaddle.org/job=begun")
    uids = [{pod["metadata"]["uid"] for pod in pods.values()} for pods in (before, after)]
    assert uids[0] == uids[1]
    assert len(uids[0]) == NODES


def test_grows_a_job_when_there_is_room(namespace, operator):
    namespace.apply(paddle_job("runs", worker=cards(6)))
    namespace.apply(paddle_job("grows", worker=cards(1)))
    for job in ("runs", "grows"):
        namespace.until_phase("Running", job)
    namespace.kubectl("scale", "pdj/grows", "--replicas=4")
    until(lambda: "has 1 of 4 workers: waits" in admitted(namespace, "grows")[2], "the reason")
    assert pods_of(namespace, "grows") == ["grows-worker-0"]
    namespace.kubectl("scale", "pdj/runs", "--replicas=4")
    namespace.kubectl("wait", "pdj/grows", "--for=jsonpath={.status.ready}=4/4", "--timeout=180s")
    assert namespace.status("grows")["allocation"] == {"workers": 4, "revision": 2}


def test_lets_others_pass_a_job_that_the_api_server_refuses(namespace, operator):
    namespace.kubectl("create", "quota", "few", "--hard=pods=3")
    until(lambda: namespace.get("quota/few").get("status", {}).get("hard"), "the quota")
    namespace.apply(paddle_job("refused", worker=cards(NODES)))
    assert "exceeded quota" in until_waits(namespace, "refused", "Refused")
    assert "Refused" in events(namespace, "refused")
    namespace.apply(paddle_job("small", worker=cards(2)))
    namespace.until_phase("Running", "small")
    until(lambda: not pods_of(namespace, "refused"), "no pod of half a gang")


def test_makes_pods_at_once_without_a_planner(namespace, tmp_path):
    words = ("--namespace", namespace.name, "--no-planner")
    with running.operator(namespace.cluster, tmp_path / "operator.log", *words):
        namespace.apply(paddle_job("big", worker=cards(NODES + 1)))
        until(lambda: len(pods_of(namespace, "big")) == NODES + 1, "all pods")
        until(lambda: "Insufficient" in namespace.status("big").get("reason", ""), "the reason")
        assert "allocation" not in namespace.status("big")
    with running.operator(namespace.cluster, tmp_path / "plans.log", "--namespace", namespace.name):
        # What has pods was decided by whoever made them.
        until(lambda: admitted(namespace, "big")[0] == "True", "the condition")
        assert len(pods_of(namespace, "big")) == NODES + 1


def test_counts_only_the_nodes_that_a_job_may_use(namespace, operator):
    worker = role(1)
    worker["template"]["spec"]["nodeSelector"] = {"no-node": "has-this"}
    namespace.apply(paddle_job("nowhere", worker=worker))
    words = until_waits(namespace, "nowhere", "TooBig")
    assert words == "can never start: the nodes it may run on could not hold all its replicas"
    namespace.apply(paddle_job("anywhere", worker=cards(NODES)))
    namespace.until_phase("Running", "anywhere")
