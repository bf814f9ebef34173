"""Archiving the log of a pod that has ended: it goes on until the log is stored."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.core.jobspec import Role
from paddlecloud.core.observed import ReplicaKey
from paddlecloud.engines.kubernetes.config import KubernetesConfig
from paddlecloud.engines.kubernetes.logs import Logs
from paddlecloud.kube.refusals import UNREACHABLE, Refused
from paddlecloud.kube.words import LOG_FINALIZER
from tests.patience import PATIENCE_S

KEY = ReplicaKey("job-1", 1, Role.TRAINER, 0, 1)
POD: dict[str, Any] = {
    "metadata": {"namespace": "n", "name": "p", "uid": "u", "finalizers": [LOG_FINALIZER]},
    "spec": {"containers": [{"name": "paddle"}]},
    "status": {
        "phase": "Succeeded",
        "containerStatuses": [
            {"name": "paddle", "state": {"terminated": {"exitCode": 0, "containerID": "c"}}}
        ],
    },
}


class Kubelet:
    """Has one line to tell, after these troubles."""

    def __init__(self, *troubles: Exception) -> None:
        self._troubles = list(troubles)
        self.is_gone = False  # with all it had

    @contextmanager
    def stream(self, path: str, query: dict[str, str], silence_s: float) -> Iterator[Any]:
        if self._troubles:
            raise self._troubles.pop(0)
        if self.is_gone:
            raise Refused(404, "NotFound", "no such pod")
        yield self

    def pieces(self) -> list[bytes]:
        return [b"2026-11-16T18:00:00.000000000Z trained\n"]

    def get(self, path: str) -> dict[str, Any]:
        return POD


def _logs(
    tmp_path: Path,
    kubelet: Kubelet,
    key: ReplicaKey | None,
    pod: dict[str, Any] = POD,
    **more: Any,
) -> Logs:
    return Logs(
        kubelet,  # type: ignore[arg-type]
        KubernetesConfig(tmp_path),
        pod_of=lambda key: pod,
        key_of=lambda pod: key,
        is_over=lambda key: False,
        **more,
    )


@pytest.mark.parametrize(
    "trouble", [Refused(UNREACHABLE, "Unreachable", "no route"), RuntimeError("nobody expected it")]
)
def test_lets_a_pod_go_when_its_log_is_stored_whatever_went_wrong_before(tmp_path: Path, trouble):
    released = threading.Event()
    logs = _logs(
        tmp_path,
        Kubelet(trouble),
        KEY,
        is_forgotten=lambda pod: False,
        release=lambda pod: released.set(),
    )
    try:
        logs.pod_changed(POD)
        assert released.wait(PATIENCE_S)
        assert logs.read(KEY, 0, 100).data == b"trained\n"
    finally:
        logs.close()


@pytest.mark.parametrize("is_forgotten", [True, False])
def test_lets_only_pods_go_that_are_its_own(tmp_path: Path, is_forgotten):
    released: list[Any] = []
    logs = _logs(
        tmp_path,
        Kubelet(),
        None,
        is_forgotten=lambda pod: is_forgotten,
        release=released.append,
    )
    logs.pod_changed(POD)
    logs._archivers.shutdown(wait=True)
    assert released == ([POD] if is_forgotten else [])
    logs.close()


def test_fetches_what_there_is_when_a_pod_that_runs_is_told_to_go(tmp_path: Path):
    leaving = {
        **POD,
        "metadata": {**POD["metadata"], "deletionTimestamp": "2026-11-16T18:00:30Z"},
        "status": {
            "phase": "Running",
            "containerStatuses": [{"name": "paddle", "state": {"running": {"startedAt": "now"}}}],
        },
    }
    kubelet = Kubelet()
    logs = _logs(
        tmp_path, kubelet, KEY, leaving, is_forgotten=lambda pod: False, release=lambda pod: None
    )
    logs.pod_changed(leaving)
    logs._archivers.shutdown(wait=True)
    kubelet.is_gone = True
    found = logs.read(KEY, 0, 100)
    assert (found.data, found.ended) == (b"trained\n", False)
    logs.close()
