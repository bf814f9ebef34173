"""What only a database of its own process can do: be absent, refuse, go away and come back.

That the platform does the same on it as on SQLite is proven by running the other modules on both
(conftest.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.server.postgres import Cluster
from tests.server.running import Running

VARIABLE = "PADDLECLOUD_DATABASE_URL"
PASSWORD = "s3cret-word"
pytestmark = pytest.mark.needs("postgres")


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """A cluster to break."""
    cluster = Cluster()
    try:
        yield cluster.start()
    finally:
        cluster.remove()


def _said_at_start(server: Running) -> str:
    """What a server that must not start says; never a traceback, never the password."""
    assert server.launch().wait(PATIENCE_S) == 1
    said = server.log.read_text()
    assert VARIABLE in said
    assert "Traceback" not in said
    assert PASSWORD not in said
    return said


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://u:{PASSWORD}@h/db",
        f"postgres://u:{PASSWORD}@h",
        f"postgres://u:pw@h:{PASSWORD}/db",
        f"postgres://u:{PASSWORD}@[h/db",
        f"postgres://u:x/{PASSWORD}@h/db",
    ],
)
def test_refuses_what_is_no_address_without_repeating_it(
    make_server: Callable[..., Running], url: str
) -> None:
    server = make_server(**{VARIABLE: url})
    assert server.launch().wait(PATIENCE_S) == 2
    said = server.log.read_text()
    assert f"{VARIABLE} must look like postgres://" in said
    assert PASSWORD not in said
    assert "Traceback" not in said


def test_says_that_nobody_listens(make_server: Callable[..., Running]) -> None:
    # Port 1 of the loopback: nothing a test could meet is there.
    server = make_server(**{VARIABLE: f"postgres://u:{PASSWORD}@127.0.0.1:1/db"})
    assert "the database db at 127.0.0.1 cannot be used" in _said_at_start(server)


def test_says_that_the_password_is_wrong(
    make_server: Callable[..., Running], postgres: Cluster
) -> None:
    server = make_server(**{VARIABLE: postgres.url("postgres", password=PASSWORD)})
    assert "password authentication failed" in _said_at_start(server)


def test_says_that_the_account_may_not_make_tables(
    make_server: Callable[..., Running], postgres: Cluster
) -> None:
    postgres.execute(f"CREATE ROLE guest LOGIN PASSWORD '{PASSWORD}'")
    postgres.execute("CREATE DATABASE closed")
    postgres.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC", "closed")
    url = postgres.url("closed").replace(f"paddle:{postgres.password}", f"guest:{PASSWORD}")
    server = make_server(**{VARIABLE: url})
    assert "permission denied" in _said_at_start(server)


def test_says_that_the_driver_is_missing(
    make_server: Callable[..., Running], tmp_path: Path
) -> None:
    (tmp_path / "psycopg.py").write_text("raise ImportError('no pq wrapper available')\n")
    server = make_server(
        PYTHONPATH=str(tmp_path), **{VARIABLE: f"postgres://u:{PASSWORD}@127.0.0.1:1/db"}
    )
    said = _said_at_start(server)
    assert "psycopg cannot be imported: no pq wrapper available" in said
    assert "pip install" in said


def test_keeps_its_rows_in_the_database_alone(
    make_server: Callable[..., Running], postgres: Cluster
) -> None:
    server = make_server(**{VARIABLE: postgres.new_database()}).start()
    server.account("kept")
    assert server.stop() == 0
    assert not list(server.state.glob("server.db*"))
    assert PASSWORD not in server.log.read_text()
    server.start()
    names = [item["name"] for item in server.admin.get("/api/v2/accounts").json["items"]]
    assert names == ["kept", "root"]


def test_goes_on_when_the_database_comes_back(
    make_server: Callable[..., Running], own_cluster: Cluster
) -> None:
    server = make_server(**{VARIABLE: own_cluster.new_database()}).start()
    admin = server.admin
    admin.submit("before", "fake hold=1")
    admin.wait("before", "running")
    own_cluster.stop("immediate")
    refused = admin.get("/api/v2/jobs")
    assert (refused.status, refused.json["code"]) == (503, "unavailable")
    own_cluster.start()
    listed = admin.get("/api/v2/jobs")
    assert [job["name"] for job in listed.json["items"]] == ["before"], listed.body
    # A thread finds out that its connection is dead by using it: a change is refused once each.
    statuses = [admin.post("/api/v2/jobs/before/cancel").status for _ in range(5)]
    assert set(statuses) <= {202, 503}, statuses
    assert statuses[-1] == 202
    assert admin.wait("before", timeout_s=30)["phase"] == "Killed"
