"""Fixtures for tests of replicas. See bench.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.engines.local.bench import Bench


@pytest.fixture
def make_bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Makes benches on one state directory per name, and leaves nothing running."""
    made: list[Bench] = []

    def make(way: str, name: str = "bench", **settings: object) -> Bench:
        root = tmp_path / name
        root.mkdir(exist_ok=True)
        for path in (tmp_path, *tmp_path.parents[:2]):
            found = path.stat()
            if found.st_mode & 0o055 != 0o055 and found.st_uid == Path.home().stat().st_uid:
                path.chmod(0o755)
        bench = Bench(root, way, settings)
        made.append(bench)
        return bench

    yield make
    for bench in made:
        bench.close()
