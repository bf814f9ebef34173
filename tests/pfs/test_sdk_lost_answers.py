"""What was done although its answer was lost is no error, and is not done twice."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pytest

from paddlecloud.core.errors import NotFound
from paddlecloud.sdk import Client, snapshots
from paddlecloud.sdk.transfers.connections import Lane
from paddlecloud.sdk.transfers.events import Event
from paddlecloud.testing.chaos_proxy import ChaosProxy, Fault
from paddlecloud.wire.digests import LEAF_BYTES
from tests.pfs.sdk_fixtures import check, client, done, own_cache, proxy, service
from tests.pfs.sdk_service import HOME, Service

__all__ = ["client", "own_cache", "proxy", "service"]  # fixtures


@pytest.fixture
def base(client: Client, tmp_path: Path) -> str:
    path = f"{HOME}/{tmp_path.name}"
    client.files.make_directories([path])
    return path


@pytest.fixture
def stored(service: Service, tmp_path: Path, base: str) -> Path:
    return service.stored(tmp_path.name)


def lose_an_answer(proxy: ChaosProxy, kind: str = "cut") -> Fault:
    """Of the next request: the server has done it, and not one byte of its answer comes."""
    fault = Fault(kind, "down", 0)  # type: ignore[arg-type]
    proxy.plan(fault)
    return fault


def lose_answers_to(monkeypatch: pytest.MonkeyPatch, proxy: ChaosProxy, call: str) -> Fault:
    """The same, of the first request whose path ends so."""
    fault = Fault("cut", "down", 0)
    waiting, send = [fault], Lane.call

    def planning(lane: Lane, method: str, path: str, *args: Any, **options: Any) -> Any:
        if waiting and path.endswith(call):
            proxy.plan(waiting.pop())
        return send(lane, method, path, *args, **options)

    monkeypatch.setattr(Lane, "call", planning)
    return fault


# --- removing and moving -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["cut", "reset"])
def test_a_removal_whose_answer_was_lost_is_done(
    client: Client, proxy: ChaosProxy, base: str, stored: Path, kind: str
) -> None:
    (stored / "a").write_text("a")
    (stored / "b").mkdir()
    fault = lose_an_answer(proxy, kind)
    rows = client.files.remove([f"{base}/a", f"{base}/b"], recursive=True)
    assert fault.happened.is_set()
    assert [row["path"] for row in rows] == [f"{base}/a", f"{base}/b"]
    assert list(stored.iterdir()) == []


def test_a_removal_of_what_was_never_there_is_an_error(client: Client, base: str) -> None:
    with pytest.raises(NotFound):
        client.files.remove([f"{base}/a"])


@pytest.mark.parametrize("kind", ["cut", "reset"])
@pytest.mark.parametrize("replace", [True, False])
def test_a_move_whose_answer_was_lost_is_done(
    client: Client, proxy: ChaosProxy, base: str, stored: Path, kind: str, replace: bool
) -> None:
    (stored / "a").write_text("abc")
    fault = lose_an_answer(proxy, kind)
    entry = client.files.move(f"{base}/a", f"{base}/b", replace=replace)
    assert fault.happened.is_set()
    assert (entry["name"], entry["type"], entry["size"]) == ("b", "file", 3)
    assert [path.name for path in stored.iterdir()] == ["b"]


def test_a_move_of_what_was_never_there_is_an_error_after_a_cut_too(
    client: Client, proxy: ChaosProxy, base: str
) -> None:
    fault = lose_an_answer(proxy)
    with pytest.raises(NotFound):
        client.files.move(f"{base}/a", f"{base}/b")
    assert fault.happened.is_set()


def test_a_sync_tells_what_it_removed_although_the_answer_was_lost(
    client: Client,
    proxy: ChaosProxy,
    base: str,
    stored: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "src").mkdir()
    (stored / "old").mkdir()
    for name in ("old/x", "old/y", "z"):
        (stored / name).write_text("12345")
    events: list[Event] = []
    fault = lose_answers_to(monkeypatch, proxy, "/remove")
    summary = check(
        client.files.sync(f"{tmp_path}/src/", base, delete=True, on_event=events.append)
    )
    assert fault.happened.is_set()
    assert summary.removed_files == 3
    assert done(events) == [("removed", f"{base}/old"), ("removed", f"{base}/z")]
    assert list(stored.iterdir()) == []


# --- the commit of a large file ------------------------------------------------------------------

SIZE_BYTES = 3 * LEAF_BYTES + 77


@pytest.mark.parametrize("replace", ["changed", "always"])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_file_whose_commit_has_no_answer_is_sent_once(
    client: Client,
    proxy: ChaosProxy,
    base: str,
    stored: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    replace: Literal["changed", "always"],
    is_new: bool,
) -> None:
    data = random.Random(1).randbytes(SIZE_BYTES)
    (tmp_path / "f").write_bytes(data)
    if not is_new:
        (stored / "f").write_bytes(b"old")
    fault = lose_answers_to(monkeypatch, proxy, "/commit")
    summary = check(client.files.copy([str(tmp_path / "f")], f"{base}/", replace=replace))
    assert fault.happened.is_set()
    assert summary.sent_bytes == SIZE_BYTES
    assert (stored / "f").read_bytes() == data
    assert client.files.uploads() == []


@pytest.fixture
def killable(tmp_path: Path) -> Iterator[Service]:
    """A service of the test's own."""
    started = Service(tmp_path)
    yield started
    started.close()


@pytest.mark.parametrize("preserve_times", [False, True])
@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_file_whose_server_is_killed_after_the_commit_is_sent_once(
    killable: Service,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    preserve_times: bool,
    is_replaced: bool,
) -> None:
    data = random.Random(4).randbytes(SIZE_BYTES)
    (tmp_path / "f").write_bytes(data)
    stored = killable.stored("f")
    kills, send = iter([True]), Lane.call

    def killing(lane: Lane, method: str, path: str, *args: Any, **options: Any) -> Any:
        answer = send(lane, method, path, *args, **options)
        if path.endswith("/commit") and next(kills, False):
            killable.stop(hard=True)
            if is_replaced:
                stored.write_bytes(data[:-1] + b"?")
            # A service ends with the thread that started it.
            starter.submit(killable.start).result()
            raise ConnectionResetError
        return answer

    monkeypatch.setattr(Lane, "call", killing)
    with ThreadPoolExecutor(1) as starter:
        copied = killable.client().files.copy(
            [str(tmp_path / "f")], f"{HOME}/", replace="always", preserve_times=preserve_times
        )
    assert check(copied).sent_bytes == SIZE_BYTES * (1 + is_replaced)
    assert stored.read_bytes() == data


def test_a_large_file_of_a_package_whose_commit_has_no_answer_is_sent_once(
    client: Client, proxy: ChaosProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package/f").write_bytes(random.Random(2).randbytes(SIZE_BYTES))
    collected = snapshots.collect(str(tmp_path / "package"))
    fault = lose_answers_to(monkeypatch, proxy, "/commit")
    before = proxy.sent["up"]
    assert client.files.put_snapshot(collected) == collected.digest
    assert fault.happened.is_set()
    assert proxy.sent["up"] - before < SIZE_BYTES + LEAF_BYTES


def test_a_commit_that_never_arrived_is_made_after_all(
    client: Client, base: str, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = random.Random(3).randbytes(SIZE_BYTES)
    (tmp_path / "f").write_bytes(data)
    cuts, send = iter([True]), Lane.call

    def breaking(lane: Lane, method: str, path: str, *args: Any, **options: Any) -> Any:
        if path.endswith("/commit") and next(cuts, False):
            raise ConnectionResetError
        return send(lane, method, path, *args, **options)

    monkeypatch.setattr(Lane, "call", breaking)
    summary = check(client.files.copy([str(tmp_path / "f")], f"{base}/", replace="always"))
    assert summary.sent_bytes == SIZE_BYTES
    assert (stored / "f").read_bytes() == data
