"""The operator as a process: who leads, what it may do, how it stops."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.kube import running
from tests.kube.running import OperatorProcess, until
from tests.kube.test_jobs import paddle_job, role
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.e2e, pytest.mark.needs("kube")]


def test_tells_how_it_is(namespace, operator):
    until(lambda: "not yet" not in _ready(operator), "readiness")
    assert operator.ask("/healthz") == "ok\n"
    namespace.apply(paddle_job(worker=role(2)))
    namespace.until_phase("Running")
    figures = dict(
        line.rsplit(" ", 1)
        for line in operator.ask("/metrics").splitlines()
        if not line.startswith("#")
    )
    assert figures["paddlecloud_operator_jobs"] == "1"
    assert figures["paddlecloud_operator_pods"] == "2"
    assert figures["paddlecloud_operator_leads"] == "1"
    assert float(figures["paddlecloud_operator_reconciles_total"]) > 0
    assert figures["paddlecloud_operator_reconcile_failures_total"] == "0"


def _ready(operator: OperatorProcess) -> str:
    try:
        return operator.ask("/readyz")
    except OSError:
        return "not yet"


def test_stops_gracefully_and_lets_go_of_the_lease(namespace, operator):
    until(lambda: "not yet" not in _ready(operator), "readiness")
    assert operator.stop(signal.SIGTERM) == 0
    lease = namespace.get("lease/paddlecloud")
    assert lease["spec"].get("holderIdentity", "") == ""


def test_is_followed_by_another_when_it_is_killed(namespace, operator, tmp_path):
    until(lambda: "not yet" not in _ready(operator), "readiness")
    words = ("--namespace", namespace.name)
    with running.operator(namespace.cluster, tmp_path / "second.log", *words) as second:
        assert until(lambda: second.ask("/healthz"), "health") == "ok\n"
        assert _ready(second) == "not yet"
        assert operator.stop(signal.SIGKILL) == -signal.SIGKILL
        until(lambda: "not yet" not in _ready(second), "the second to lead")
        namespace.apply(paddle_job(worker=role(2)))
        namespace.until_phase("Running")


def test_goes_on_where_a_killed_one_was(namespace, operator, tmp_path):
    namespace.apply(paddle_job(worker=role(2), ps=role(1)))
    namespace.until_phase("Running")
    pods = {pod["metadata"]["uid"] for pod in namespace.pods().values()}
    operator.stop(signal.SIGKILL)
    namespace.finish()  # while nobody looks
    words = ("--namespace", namespace.name, "--no-lease")
    with running.operator(namespace.cluster, tmp_path / "second.log", *words):
        namespace.until_phase("Completed")
    assert {pod["metadata"]["uid"] for pod in namespace.pods().values()} <= pods


@pytest.mark.parametrize(
    ("words", "complaint", "code"),
    [
        (["--kubeconfig", "no-such-file"], "there is no kubeconfig no-such-file", 4),
        ([], "outside a cluster say which one: --kubeconfig FILE", 4),
        (["--kubeconfig", "empty"], "error: --kubeconfig: is not a kubeconfig", 2),
        (["--kubeconfig", "good", "--etcd-server", "http://a:1"], "--etcd-server: must be HOST", 2),
    ],
)
def test_says_what_is_missing(words: list[str], complaint: str, code: int, tmp_path, cluster):
    (tmp_path / "empty").write_text("")
    (tmp_path / "good").write_bytes(cluster.kubeconfig.read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "paddlecloud", "controller", *words],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=PATIENCE_S,
    )
    assert done.returncode == code
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
