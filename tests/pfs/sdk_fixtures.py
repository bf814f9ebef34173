"""What the tests of the SDK against a real file service share; each file imports what it uses."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.sdk import Client
from paddlecloud.sdk.pfs import Files
from paddlecloud.sdk.transfers.events import Event, FileDone, Summary
from paddlecloud.testing.chaos_proxy import ChaosProxy
from paddlecloud.wire.digests import LEAF_BYTES
from tests.pfs.sdk_service import HOME, Service


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    started = Service(tmp_path_factory.mktemp("service"))
    yield started
    started.close()


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def proxy(service: Service) -> Iterator[ChaosProxy]:
    """Where clients find the service: a proxy that faults can be asked of."""
    with ChaosProxy(service.port) as started:
        service.told_port = started.port
        yield started
    service.told_port = 0


@pytest.fixture
def client(service: Service, proxy: ChaosProxy) -> Client:
    return service.client()


@pytest.fixture
def files(service: Service) -> Files:
    return service.client().files


@pytest.fixture
def base(files: Files, tmp_path: Path) -> str:
    """A directory of the test's own on the server."""
    path = f"{HOME}/{tmp_path.name}"
    files.make_directories([path])
    return path


@pytest.fixture
def stored(service: Service, base: str) -> Path:
    return service.stored(base.rpartition("/")[2])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Small, empty, hidden, executable, oddly named and large files; an empty folder."""
    root = tmp_path / "tree"
    source = random.Random(1)
    contents = {
        "a.txt": 10,
        ".hidden": 3,
        "empty": 0,
        "sub/deep/er/x": 5000,
        "sub/run.sh": 20,
        "a name with blanks % and ?": 7,
        "ünï/ço∂é": 9,
        "n" * 255: 4,
        "leaf": LEAF_BYTES,
        "more": 2 * LEAF_BYTES + 1,
    }
    for name, size_bytes in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.randbytes(size_bytes))
    (root / "sub/run.sh").chmod(0o755)
    (root / "nothing" / "here").mkdir(parents=True)
    return root


def make(path: Path, size_bytes: int, seed: int) -> bytes:
    data = random.Random(seed).randbytes(size_bytes)
    path.write_bytes(data)
    return data


def target_of(tmp_path: Path) -> str:
    return f"{HOME}/{tmp_path.name}"


def listing(root: Path) -> dict[str, bytes | None]:
    """Everything below: the bytes of files, None for directories."""
    return {
        str(path.relative_to(root)): None if path.is_dir() else path.read_bytes()
        for path in root.rglob("*")
    }


def done(events: list[Event]) -> list[tuple[str, str]]:
    return sorted((e.action, e.target or e.source) for e in events if isinstance(e, FileDone))


def check(summary: Summary) -> Summary:
    assert summary.failures == []
    return summary
