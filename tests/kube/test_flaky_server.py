"""Jobs run and end as they should although a third of all calls and every watch go wrong."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from paddlecloud.controller.operator import Operator, Settings
from paddlecloud.kube import kubeconfig
from paddlecloud.kube.client import Client
from paddlecloud.kube.refusals import Refused
from tests.kube.running import PodHistory
from tests.kube.test_jobs import paddle_job, role

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.needs("kube")]

JOBS = 5
FAULTS = 0.3  # of all calls


class FlakyClient(Client):
    """Loses answers and requests, and cuts watches, with a dice of its own."""

    def __init__(self, access: kubeconfig.Access) -> None:
        super().__init__(access)
        self._dice = random.Random(7)
        self._lock = threading.Lock()
        self.faults = 0

    def _throw(self) -> float:
        with self._lock:
            return self._dice.random()

    def _refuse(self) -> Refused:
        self.faults += 1
        return (
            Refused(0, "Unreachable", "reset"),
            Refused(429, "TooManyRequests", "", 0.05),
            Refused(500, "InternalError", ""),
            Refused(503, "ServiceUnavailable", ""),
        )[int(self._throw() * 4)]

    def call(self, method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        fate = self._throw()
        if fate < FAULTS / 2:
            raise self._refuse()  # it never came there
        answer = super().call(method, path, body, **more)
        if fate < FAULTS:
            raise self._refuse()  # it was done, and nobody heard
        return answer

    @contextmanager
    def stream(self, path: str, query: Any, silence_s: float) -> Iterator[Any]:
        with super().stream(path, query, silence_s) as stream:
            yield _Cut(stream, self)


class _Cut:
    """A watch that repeats events, forgets its history and breaks off."""

    def __init__(self, stream: Any, client: FlakyClient) -> None:
        self._stream = stream
        self._client = client
        self.interrupt = stream.interrupt

    def lines(self) -> Iterator[dict[str, Any]]:
        seen: list[dict[str, Any]] = []
        for event in self._stream.lines():
            fate = self._client._throw()
            if fate < 0.05:
                raise Refused(410, "Expired", "")
            if fate < 0.1:
                yield {"type": "ERROR", "object": {"code": 410}}
            if fate < 0.2:
                return
            yield event
            if fate < 0.4 and seen:
                yield seen[int(self._client._throw() * len(seen))]  # old news again
            seen.append(event)


def test_everything_ends_well_in_the_end(cluster, namespace):
    client = FlakyClient(kubeconfig.from_file(cluster.kubeconfig))
    operator = Operator(client, Settings(namespace=namespace.name, resync_s=2.0))
    history = PodHistory(cluster, namespace.name)
    thread = threading.Thread(target=operator.run)
    thread.start()
    try:
        workers = role(2, {"pretend/complete-after": "1s"})
        for number in range(JOBS):
            job = paddle_job(f"job-{number}", worker=workers, ps=role(1), cleanPodPolicy="Always")
            namespace.apply(job)
        for number in range(JOBS):
            namespace.until_phase("Completed", f"job-{number}")
        namespace.kubectl("wait", "--for=delete", "pods", "--all", "--timeout=60s")
    finally:
        operator.stop()
        thread.join(60)
        history.stop()
    assert client.faults > 20
    assert history.names == {
        f"job-{number}-{name}"
        for number in range(JOBS)
        for name in ("worker-0", "worker-1", "ps-0")
    }
    assert history.most <= 3 * JOBS
    for number in range(JOBS):
        assert "failures" not in namespace.status(f"job-{number}")
