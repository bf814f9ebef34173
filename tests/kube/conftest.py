"""One control plane for all tests of this folder, one namespace for each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.controller import manifests
from tests import possible
from tests.kube import running
from tests.kube.running import Cluster, Namespace, OperatorProcess, RealCluster

_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    state = tmp_path_factory.mktemp("cluster")
    try:
        made = running.start(state, nodes=8)
        made.kubectl("apply", "-f", "-", text=manifests.as_yaml(manifests.definitions()))
        made.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=180s")
        yield made
    finally:
        running.run_tool("stop", "--state", state)


@pytest.fixture(scope="package")
def bare_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes and nothing of ours: for tests that install things and take them away again."""
    state = tmp_path_factory.mktemp("bare")
    try:
        yield running.start(state, nodes=2)
    finally:
        running.run_tool("stop", "--state", state)


@pytest.fixture(scope="session")
def real_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """The one cluster of the test session whose pods really run."""
    possible.skip_unless_possible("kube", "node")
    with running.real_cluster(lambda: tmp_path_factory.mktemp("real")) as made:
        yield made


@pytest.fixture
def real_namespace(real_cluster: RealCluster) -> Iterator[Namespace]:
    made = Namespace(real_cluster, f"real-{next(_numbers)}")
    yield made
    made.remove()


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[Namespace]:
    made = Namespace(cluster, f"test-{next(_numbers)}")
    yield made
    made.remove()


@pytest.fixture
def operator(cluster: Cluster, namespace: Namespace, tmp_path: Path) -> Iterator[OperatorProcess]:
    """An operator for the test's own namespace."""
    log = tmp_path / "operator.log"
    words = ("--namespace", namespace.name)
    with running.operator(cluster, log, *words) as one:
        yield one
    troubles = [row for row in one.lines if row["level"] == "error"]
    assert not troubles, troubles
