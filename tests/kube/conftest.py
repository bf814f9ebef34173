"""One control plane for all tests of this folder, one namespace for each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.controller import manifests
from tests.kube import running
from tests.kube.running import Cluster, Namespace, OperatorProcess

_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    state = tmp_path_factory.mktemp("cluster")
    try:
        made = running.start(state, nodes=8)
        made.kubectl("apply", "-f", "-", text=manifests.as_yaml(manifests.definitions()))
        made.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        yield made
    finally:
        running.run_tool("stop", "--state", state)


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
