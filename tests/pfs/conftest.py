from __future__ import annotations

from collections.abc import Iterator

import pytest

from paddlecloud.sdk.transfers import large_uploads, sessions
from tests.pfs.running import TOKENS, Caller, FakeCloud, Running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/pfs" in str(item.path):
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(autouse=True)
def four_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that large files are sent on two connections, which is harder, on every machine."""
    monkeypatch.setattr(sessions, "processors", lambda: 4)


@pytest.fixture(autouse=True)
def bytes_are_sent(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As to another machine. `test_sdk_handovers` is about files handed over on one."""
    if request.module.__name__.rpartition(".")[2] != "test_sdk_handovers":
        monkeypatch.setattr(large_uploads, "hand_over", lambda offer, file: None)


@pytest.fixture(scope="session")
def shared_cloud() -> Iterator[FakeCloud]:
    cloud = FakeCloud()
    yield cloud
    cloud.close()


@pytest.fixture
def cloud(shared_cloud: FakeCloud) -> Iterator[FakeCloud]:
    """One that a test may change."""
    yield shared_cloud
    shared_cloud.tokens = dict(TOKENS)
    shared_cloud.is_old = False


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, shared_cloud: FakeCloud) -> Iterator[Running]:
    """One process for all tests that only talk to it; each uses a folder of its own."""
    running = Running(tmp_path_factory.mktemp("pfs") / "root", shared_cloud.url).start()
    yield running
    running.stop()
    assert "Traceback" not in running.log, running.log


@pytest.fixture
def own_server(tmp_path_factory: pytest.TempPathFactory, cloud: FakeCloud) -> Iterator[Running]:
    """A process that a test may kill."""
    running = Running(tmp_path_factory.mktemp("own") / "root", cloud.url).start()
    yield running
    running.stop()


@pytest.fixture
def alice(server: Running) -> Caller:
    return server.as_user("alice")


@pytest.fixture
def home(request: pytest.FixtureRequest, server: Running, alice: Caller) -> str:
    """A folder of this test alone, which is there."""
    name = request.node.name.replace("[", "-").replace("]", "").replace("/", "-")[:100]
    name = "".join(char for char in name if char.isalnum() or char in "-_.") or "t"
    path = f"/pfs/local/home/alice/{name}"
    assert alice.post("/api/v2/pfs/directories", {"paths": [path]}).status == 200
    return path
