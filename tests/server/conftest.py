"""Servers for the tests: one shared by all, and ones to break."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.server.running import Caller, Running

_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "tests/server" in str(item.path) and {"server", "make_server"} & set(fixtures):
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server nobody breaks; tests keep apart by using accounts of their own."""
    running = Running(tmp_path_factory.mktemp("server") / "state").start()
    yield running
    assert running.stop() == 0, running.log.read_text()
    assert "Traceback" not in running.log.read_text(), running.log.read_text()


@pytest.fixture
def user(server: Running) -> Caller:
    """Somebody new."""
    return server.account(f"user{next(_numbers)}")


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Servers of the test's own, not started yet, ended with it."""
    made: list[Running] = []

    def make(engine: str = "fake", **env: str) -> Running:
        made.append(Running(tmp_path / f"state{len(made)}", engine, **env))
        return made[-1]

    yield make
    for running in made:
        if running.process is not None and running.process.poll() is None:
            running.kill_9()
