"""Servers for the tests: one shared by all, and ones to break.

What must hold on every database is in the modules of `_ON_EVERY_STORE`: their tests run twice, on
SQLite and on PostgreSQL. All others run on SQLite.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paddlecloud.server.database import NOT_ROWS
from tests.server.postgres import Cluster
from tests.server.running import Caller, Running

_ON_EVERY_STORE = {
    "test_access_keys",
    "test_accounts",
    "test_algorithms",
    "test_clusters",
    "test_crashes",
    "test_groups",
    "test_idempotency",
    "test_job_service",
    "test_jobs",
    "test_lists",
    "test_sharing",
    "test_moving",
    "test_signatures",
    "test_storage_limits",
    "test_waiting",
}
_STORES = ("sqlite", pytest.param("postgres", marks=pytest.mark.needs("postgres")))
_DATABASE = "PADDLECLOUD_DATABASE_URL"
_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "tests/server" in str(item.path) and {"server", "make_server"} & set(fixtures):
            item.add_marker(pytest.mark.e2e)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    module = metafunc.module.__name__.rpartition(".")[2]
    if module in _ON_EVERY_STORE and "store" in metafunc.fixturenames:
        metafunc.parametrize("store", _STORES, indirect=True, scope="module")


@pytest.fixture(scope="module")
def store(request: pytest.FixtureRequest) -> str:
    """The name of the database the test's servers are on."""
    return getattr(request, "param", "sqlite")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A cluster nobody breaks."""
    cluster = Cluster()
    try:
        yield cluster.start()
    finally:
        cluster.remove()


def _shared(state: Path, **env: str) -> Iterator[Running]:
    # All tests call from one address, and some of them are wrong on purpose.
    running = Running(state, PADDLECLOUD_LOGIN_TRIES_PER_ADDRESS="1000000", **env).start()
    yield running
    assert running.stop() == 0, running.log.read_text()
    written = running.log.read_text()
    assert "Traceback" not in written, written
    # Whatever the tests asked for: nobody else had to wait long for the database.
    assert NOT_ROWS not in written, written


@pytest.fixture(scope="session")
def server_on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    yield from _shared(tmp_path_factory.mktemp("server") / "state")


@pytest.fixture(scope="session")
def server_on_postgres(
    tmp_path_factory: pytest.TempPathFactory, postgres: Cluster
) -> Iterator[Running]:
    state = tmp_path_factory.mktemp("server") / "state"
    yield from _shared(state, **{_DATABASE: postgres.new_database()})


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, store: str) -> Running:
    """A server nobody breaks; tests keep apart by using accounts of their own."""
    running: Running = request.getfixturevalue(f"server_on_{store}")
    return running


@pytest.fixture
def user(server: Running) -> Caller:
    """Somebody new."""
    return server.account(f"user{next(_numbers)}")


@pytest.fixture
def make_server(
    request: pytest.FixtureRequest, tmp_path: Path, store: str
) -> Iterator[Callable[..., Running]]:
    """Servers of the test's own, not started yet, ended with it."""
    made: list[Running] = []

    def make(engine: str = "fake", **env: str) -> Running:
        if store == "postgres":
            env.setdefault(_DATABASE, request.getfixturevalue("postgres").new_database())
        made.append(Running(tmp_path / f"state{len(made)}", engine, **env))
        return made[-1]

    yield make
    for running in made:
        if running.process is not None and running.process.poll() is None:
            running.kill_9()
