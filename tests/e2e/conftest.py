"""Platforms for end-to-end tests: one shared by a module, or one to break."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.platform import Platform


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/e2e" in str(item.path):
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform that no test of the module breaks."""
    started = Platform(tmp_path_factory.mktemp("home"))
    started.up()
    yield started
    started.down()


@pytest.fixture
def breakable(tmp_path: Path) -> Iterator[Platform]:
    """A platform of the test's own."""
    started = Platform(tmp_path)
    started.up()
    yield started
    started.up()
    started.down()
