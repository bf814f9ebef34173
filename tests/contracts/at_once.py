"""Tests of the engine on a cluster, many at the same time: a pod takes seconds, mostly waiting.

The first such test starts all of them in a few threads, each with an engine and an account of its
own; pytest then asks for the outcome of one after the other, so each still passes or fails by its
own name. A test that needs the cluster for itself is marked `alone` and waits for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.engine_bench import Bench, on_cluster, on_this_machine
from tests.kube.running import RealCluster

AT_ONCE = 5


def is_on_cluster(item: pytest.Item) -> bool:
    spec = getattr(item, "callspec", None)
    return spec is not None and spec.params.get("bench") == "kubernetes"


def is_at_once(item: pytest.Item) -> bool:
    return is_on_cluster(item) and item.get_closest_marker("alone") is None


class AtOnce:
    def __init__(
        self, cluster: RealCluster, items: Iterable[pytest.Item], folder: Callable[[], Path]
    ) -> None:
        self.cluster = cluster
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="test")
        self._runs: dict[str, Future[None]] = {
            item.nodeid: self._pool.submit(self._run, item.function, folder())
            for item in items
            if isinstance(item, pytest.Function) and is_at_once(item)
        }

    def _run(self, test: Callable[..., None], folder: Path) -> None:
        with on_cluster(self.cluster, folder) as bench:
            test(bench=bench)

    def outcome(self, item: pytest.Item) -> None:
        """Raises what the test raised."""
        self._runs[item.nodeid].result()

    def wait(self) -> None:
        wait(self._runs.values())

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


@contextmanager
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """An engine of the kind the test was asked for."""
    if request.param != "kubernetes":
        with on_this_machine(request.param, tmp_path) as bench:
            yield bench
        return
    ground: AtOnce = request.getfixturevalue("operated_cluster")
    if is_at_once(request.node):
        yield None  # type: ignore[misc]  # it runs, or has run, with one of its own
        return
    ground.wait()
    with on_cluster(ground.cluster, tmp_path) as bench:
        yield bench
