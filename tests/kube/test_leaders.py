"""Several operators of which the leading one is paused in the middle of its work, and comes back.

A paused process knows nothing of its pause: when it goes on, its lease is another's, what it was
about to write is old, and nobody has told it.
"""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from paddlecloud.kube.leases import LeaseTimes
from tests.kube.fault_lanes import Lane, slowness
from tests.kube.running import Cluster, OperatorProcess
from tests.kube.test_jobs import role

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.needs("kube")]

TAKEOVER_S = 10.0


def _leads(one: OperatorProcess) -> bool:
    try:
        return "not yet" not in one.ask("/readyz")
    except OSError:
        return False


def _leader(lane: Lane, operators: list[OperatorProcess], within_s: float) -> OperatorProcess:
    found: list[OperatorProcess] = []

    def one_leads() -> bool:
        found[:] = [one for one in operators if _leads(one)]
        return bool(found)

    lane.until(one_leads, "a leader", within_s * slowness())
    assert len(found) == 1
    return found[0]


def _live(cluster: Cluster, folder: Path, count: int) -> None:
    """Leaders are paused in turn, with jobs half made."""
    lane = Lane(cluster, f"leaders-{count}", folder)
    words = ("--namespace", lane.name)
    operators = [lane.operator] + [
        OperatorProcess(cluster.kubeconfig, folder / f"{lane.name}-{number}.log", *words)
        for number in range(1, count)
    ]
    waiting = list(operators)
    asked: set[str] = set()
    try:
        for turn in range(count - 1):
            leader = _leader(lane, waiting, TAKEOVER_S)
            waiting.remove(leader)
            jobs = [f"job-{turn}-{number}" for number in range(4)]
            asked |= {f"{job}-worker-{index}" for job in jobs for index in range(4)}
            failing = role(2, {"pretend/fail-after": "300ms"})
            lane.submit(f"fails-{turn}", worker=failing, backoffLimit=2, cleanPodPolicy="Never")
            asked |= {f"fails-{turn}-worker-{index}" for index in range(2)}
            for job in jobs:
                lane.submit(job, worker=role(4))
            lane.until(lambda jobs=jobs: lane.pods(jobs[1]), "the work to have begun")
            leader.process.send_signal(signal.SIGSTOP)
            paused_at = time.monotonic()
            lane.scale(jobs[2], 2)
            lane.scale(jobs[3], 2)
            _leader(lane, waiting, TAKEOVER_S)
            took_s = time.monotonic() - paused_at
            print(f"{lane.name}: another leads after {took_s:.1f} s")
            assert took_s < TAKEOVER_S * slowness()
            assert took_s > 0.8 * LeaseTimes().duration_s, "the lease was not waited for"
            leader.process.send_signal(signal.SIGCONT)
            waiting.append(leader)  # it may lead again, after the others
            for job, size in zip(jobs, (4, 4, 2, 2), strict=True):
                lane.until(
                    lambda job=job, size=size: (
                        lane.status(job).get("ready") == f"{size}/{size}"
                        and len(lane.pods(job)) == size
                    ),
                    f"{job} with {size} workers",
                )
            lane.until(lambda turn=turn: lane.status(f"fails-{turn}").get("phase") == "Failed", "x")
            rows = lane.status(f"fails-{turn}")["failures"]
            told = [(row["index"], row["attempt"]) for row in rows]
            assert len(told) == len(set(told)), told
            assert {attempt for _, attempt in told} == {1, 2}, told
            assert sum(map(_leads, operators)) == 1
        assert lane.history.names <= asked, lane.history.names - asked
        assert all(one.process.poll() is None for one in operators)
    finally:
        for one in operators:
            one.process.kill()
            one.process.wait()
        lane.close()


def test_a_paused_leader_does_no_harm(cluster, tmp_path):
    with ThreadPoolExecutor(2) as pool:
        lives = [pool.submit(_live, cluster, tmp_path, count) for count in (2, 3)]
        for one in lives:
            one.result()
