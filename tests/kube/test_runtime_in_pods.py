"""Our runtime in real pods: no image of ours, and what it does for the programs behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kube import running
from tests.kube.real_pods import shell_role
from tests.kube.running import Namespace, RealCluster, until
from tests.kube.test_jobs import paddle_job

pytestmark = [pytest.mark.e2e, pytest.mark.needs("kube", "node")]

MOUNTED_S = 180.0  # a kubelet looks at what is mounted every minute or two
BREAKS = """\
cat > /tmp/train.py <<'END'
def read():
    raise KeyError("price")

read()
END
python3 /tmp/train.py
"""
SAVES = """\
cat > /tmp/train.py <<'END'
import signal, sys, time

def save(number, frame):
    time.sleep(0.5)
    print("saved", flush=True)
    sys.exit(0)

signal.signal(signal.SIGTERM, save)
print("training", flush=True)
time.sleep(600)
END
python3 /tmp/train.py
echo never
"""
ASKS = """\
import json, os, time
import paddlecloud_runtime as runtime
facts = [runtime.role(), runtime.rank(), runtime.world_size(), len(runtime.peers())]
print(json.dumps([*facts, os.getppid()]), flush=True)
while len(runtime.peers()) != 3:
    time.sleep(0.5)
print("three", flush=True)
time.sleep(600)
"""


def _python_role(cluster: RealCluster, replicas: int, program: str, **container: Any) -> Any:
    made = shell_role(cluster, replicas, "", **container)
    made["template"]["spec"]["containers"][0]["command"] = ["python3", "-c", program]
    return made


def _jobs(cluster: RealCluster) -> list[dict[str, Any]]:
    def job(name: str, worker: dict[str, Any]) -> dict[str, Any]:
        return paddle_job(name, worker=worker, cleanPodPolicy="Never")

    crash = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    deaf = "import time; print('up', flush=True); time.sleep(600)"
    patient = _python_role(cluster, 1, deaf)
    patient["template"]["spec"]["terminationGracePeriodSeconds"] = 600
    poor = shell_role(cluster, 1, "echo $0 is here; exit 3", env=[{"name": "PATH", "value": "/x"}])
    poor["template"]["spec"]["containers"][0]["command"][0] = "/bin/sh"
    saves = shell_role(cluster, 1, SAVES)
    saves["template"]["spec"]["terminationGracePeriodSeconds"] = 60
    return [
        job("breaks", shell_role(cluster, 1, BREAKS)),
        job("crashes", _python_role(cluster, 1, crash)),
        job("saves", saves),
        job("asks", {**_python_role(cluster, 2, ASKS), "limits": 3}),
        job("deaf", patient),
        job("poor", poor),
    ]


@pytest.fixture(scope="module")
def jobs(real_cluster: RealCluster, tmp_path_factory: Any) -> Iterator[Namespace]:
    """All jobs at once; each test waits for its own."""
    namespace = Namespace(real_cluster, "real-runtime")
    log = tmp_path_factory.mktemp("operator") / "log"
    try:
        with running.operator(real_cluster, log, "--namespace", namespace.name):
            for job in _jobs(real_cluster):
                namespace.apply(job)
            yield namespace
    finally:
        namespace.remove()


def _log(jobs: Namespace, pod: str) -> str:
    """What it printed, or nothing while it has not begun."""
    begun = jobs.pods()[pod]["status"].get("containerStatuses", [{}])[0].get("state", {})
    return "" if "waiting" in begun or not begun else jobs.kubectl("logs", pod)


def _ended(jobs: Namespace, pod: str) -> dict[str, Any]:
    state = jobs.pods()[pod]["status"]["containerStatuses"][0]["state"]
    found: dict[str, Any] = state["terminated"]
    return found


def test_tells_the_exception_in_the_status(jobs):
    jobs.until_phase("Failed", "breaks")
    assert jobs.status("breaks")["reason"] == "exit 1 in trainer-0: KeyError: 'price' (train.py:2)"
    assert "Traceback (most recent call last):" in jobs.kubectl("logs", "breaks-worker-0")
    assert _ended(jobs, "breaks-worker-0")["exitCode"] == 1


def test_tells_the_signal_in_the_status(jobs):
    jobs.until_phase("Failed", "crashes")
    why = "trainer-0 was ended by signal 11: killed by SIGSEGV (segmentation fault)"
    assert jobs.status("crashes")["reason"] == why
    assert _ended(jobs, "crashes-worker-0")["exitCode"] == 139


def test_lets_a_program_save_that_a_shell_runs(jobs):
    until(lambda: "training" in _log(jobs, "saves-worker-0"), "the training")
    jobs.kubectl("annotate", "pdj/saves", "paddlepaddle.org/cancel=enough")
    jobs.until_phase("Terminated", "saves")
    assert jobs.kubectl("logs", "saves-worker-0") == "training\nsaved\n"


def test_ends_a_program_at_once_that_does_not_ask_for_signals(jobs):
    until(lambda: "up" in _log(jobs, "deaf-worker-0"), "the program")
    jobs.kubectl("annotate", "pdj/deaf", "paddlepaddle.org/cancel=enough")
    jobs.until_phase("Terminated", "deaf")  # long before its grace of ten minutes is over
    assert _ended(jobs, "deaf-worker-0")["exitCode"] == 143


def test_answers_what_a_program_asks_and_follows_its_peers(jobs):
    jobs.until_phase("Running", "asks")
    until(lambda: _log(jobs, "asks-worker-1"), "its facts")
    facts = json.loads(_log(jobs, "asks-worker-1").splitlines()[0])
    assert facts == ["trainer", 1, 2, 2, 1]
    jobs.kubectl("scale", "pdj/asks", "--replicas=3")
    until(lambda: "three" in _log(jobs, "asks-worker-0"), "a third peer", MOUNTED_S)
    jobs.kubectl("delete", "pdj/asks", "--timeout=180s")


def test_runs_a_command_as_it_is_where_there_is_no_python(jobs):
    jobs.until_phase("Failed", "poor")
    assert jobs.kubectl("logs", "poor-worker-0") == "/bin/sh is here\n"
    assert jobs.status("poor")["reason"] == "exit 3 in trainer-0"
