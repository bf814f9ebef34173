"""A file store on every kind of storage it may stand on."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

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
