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

    @contextmanager
    def stream(self, path: str, query: dict[str, str], silence_s: float) -> Iterator[Any]:
        if self._troubles:
            raise self._troubles.pop(0)
        yield self

    def pieces(self) -> list[bytes]:
        return [b"2026-11-16T18:00:00.000000000Z trained\n"]

    def get(self, path: str) -> dict[str, Any]:
        return POD


@pytest.mark.parametrize(
    "trouble", [Refused(UNREACHABLE, "Unreachable", "no route"), RuntimeError("nobody expected it")]
)
def test_lets_a_pod_go_when_its_log_is_stored_whatever_went_wrong_before(tmp_path: Path, trouble):
    released = threading.Event()
    logs = Logs(
        Kubelet(trouble),  # type: ignore[arg-type]
        KubernetesConfig(tmp_path),
        pod_of=lambda key: POD,
        key_of=lambda pod: KEY,
        is_over=lambda key: False,
        release=lambda pod: released.set(),
    )
    try:
        logs.pod_changed(POD)
        assert released.wait(20)
        assert logs.read(KEY, 0, 100).data == b"trained\n"
    finally:
        logs.close()
