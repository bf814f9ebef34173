"""A file store on every kind of storage it may stand on; a cluster for the engine of one."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.at_once import AtOnce, is_at_once
from tests.kube import running
from tests.possible import skip_unless_possible
from tests.storing import Bench, little_disk


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Here and in tests/engines real processes run and end: not for `make check`."""
    for item in items:
        if "tests/contracts" in str(item.path) or "tests/engines" in str(item.path):
            item.add_marker(pytest.mark.slow)


_OTHERS = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("memory", "own disk")]


@pytest.fixture(params=["disk", *_OTHERS])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    if request.param == "disk":
        yield tmp_path / "pfs"
    elif request.param == "memory":
        skip_unless_possible("shared-memory")
        folder = Path(tempfile.mkdtemp(prefix="paddlecloud-test-", dir="/dev/shm"))
        yield folder
        shutil.rmtree(folder)
    else:
        skip_unless_possible("loop-mount")
        with little_disk(tmp_path, 64 << 20) as folder:
            yield folder


@pytest.fixture
def bench(root: Path) -> Iterator[Bench]:
    bench = Bench(root)
    yield bench
    bench.store.close()


@pytest.fixture(scope="package")
def operated_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AtOnce]:
    """A cluster with one real node that says it has four cards, and one operator for all of it."""
    with running.real_cluster(lambda: tmp_path_factory.mktemp("real")) as cluster:
        cards = {"nvidia.com/gpu": "4"}
        cluster.client().patch(
            f"/api/v1/nodes/{cluster.node}/status",
            {"status": {"capacity": cards, "allocatable": cards}},
        )
        log = tmp_path_factory.mktemp("operator") / "operator.log"
        with running.operator(cluster, log) as operator:
            made = AtOnce(cluster, request.session.items, lambda: tmp_path_factory.mktemp("bench"))
            yield made
            made.close()
        assert [row for row in operator.lines if row["level"] == "error"] == []


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Ask for the outcome of a test that runs at once with others instead of running it."""
    if not is_at_once(pyfuncitem):
        return None
    ground: AtOnce = pyfuncitem._request.getfixturevalue("operated_cluster")
    ground.outcome(pyfuncitem)
    return True
