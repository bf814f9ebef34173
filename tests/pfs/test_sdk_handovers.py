"""Files that a client gives to the service on its machine, instead of their bytes."""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.sdk import Client
from paddlecloud.sdk.transfers import handing_over, large_uploads
from paddlecloud.sdk.transfers.connections import Lane
from paddlecloud.sdk.transfers.events import Event, Moved
from paddlecloud.sdk.transfers.local_files import leaf_pieces
from paddlecloud.testing.chaos_proxy import ChaosProxy
from paddlecloud.wire import handovers
from paddlecloud.wire.digests import LEAF_BYTES
from tests.patience import PATIENCE_S
from tests.pfs.calls import PFS, begin
from tests.pfs.running import Caller
from tests.pfs.sdk_fixtures import check, client, make, own_cache, proxy, service
from tests.pfs.sdk_service import HOME, Service

__all__ = ["client", "own_cache", "proxy", "service"]  # fixtures

SIZE_BYTES = 5 * LEAF_BYTES + 12_345
LITTLE_BYTES = 100_000  # requests without bodies


@pytest.fixture
def place(tmp_path: Path) -> str:
    return f"{HOME}/{tmp_path.name}"


def test_a_large_file_is_handed_over_and_no_byte_sent(
    client: Client, service: Service, proxy: ChaosProxy, tmp_path: Path, place: str
) -> None:
    data = make(tmp_path / "f", SIZE_BYTES, 1)
    moved: list[int] = []
    summary = client.files.copy(
        [str(tmp_path / "f")],
        f"{place}/",
        on_event=lambda event: moved.append(event.n_bytes) if isinstance(event, Moved) else None,
    )
    assert check(summary).sent_bytes == SIZE_BYTES == sum(moved)
    assert service.stored(f"{tmp_path.name}/f").read_bytes() == data
    assert proxy.sent["up"] < LITTLE_BYTES
    again = client.files.copy([str(tmp_path / "f")], f"{place}/")
    assert check(again).sent_bytes == 0


@pytest.mark.parametrize("size_bytes", [64 << 20, (150 << 20) + 1])
def test_a_larger_one_is_taken_in_parts_on_two_connections(
    client: Client, service: Service, proxy: ChaosProxy, tmp_path: Path, place: str, size_bytes: int
) -> None:
    data = make(tmp_path / "f", size_bytes, 2)
    check(client.files.copy([str(tmp_path / "f")], f"{place}/"))
    assert service.stored(f"{tmp_path.name}/f").read_bytes() == data
    assert proxy.sent["up"] < LITTLE_BYTES


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A file on another filesystem than the store's."""
    path = Path("/dev/shm") / f"paddlecloud-{os.getpid()}"
    yield path
    path.unlink(missing_ok=True)


def test_a_file_of_another_filesystem_is_sent(
    client: Client, service: Service, proxy: ChaosProxy, tmp_path: Path, place: str, elsewhere: Path
) -> None:
    data = make(elsewhere, SIZE_BYTES, 3)
    check(client.files.copy([str(elsewhere)], f"{place}/f"))
    assert service.stored(f"{tmp_path.name}/f").read_bytes() == data
    assert proxy.sent["up"] > SIZE_BYTES


@pytest.mark.parametrize(
    "offer",
    [
        None,
        {"socket": "paddlecloud-pfs-nobody", "ticket": "0" * 32},
        {"socket": "/tmp/.X11-unix/X0", "ticket": "0" * 32},
    ],
)
def test_where_it_cannot_be_handed_over_it_is_sent(
    client: Client,
    service: Service,
    proxy: ChaosProxy,
    tmp_path: Path,
    place: str,
    monkeypatch: pytest.MonkeyPatch,
    offer: dict[str, str] | None,
) -> None:
    data = make(tmp_path / "f", SIZE_BYTES, 4)
    monkeypatch.setattr(
        large_uploads, "hand_over", lambda told, file: handing_over.hand_over(offer, file)
    )
    check(client.files.copy([str(tmp_path / "f")], f"{place}/"))
    assert service.stored(f"{tmp_path.name}/f").read_bytes() == data
    assert proxy.sent["up"] > SIZE_BYTES


def test_nothing_is_given_to_another_user(
    client: Client,
    service: Service,
    proxy: ChaosProxy,
    tmp_path: Path,
    place: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who may only have taken the name where the service is not."""
    data = make(tmp_path / "f", SIZE_BYTES, 11)
    monkeypatch.setattr(handovers, "user_of", lambda credentials: os.geteuid() + 1)
    monkeypatch.setattr(socket, "send_fds", None)
    check(client.files.copy([str(tmp_path / "f")], f"{place}/"))
    assert service.stored(f"{tmp_path.name}/f").read_bytes() == data
    assert proxy.sent["up"] > SIZE_BYTES


def test_the_beginning_of_a_leaf_that_was_cut_is_not_believed(
    client: Client, service: Service, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make(tmp_path / "f", SIZE_BYTES, 12)

    def damaged_and_cut(*args: Any, **more: Any) -> Iterator[memoryview]:
        for number, piece in enumerate(leaf_pieces(*args, **more)):
            yield memoryview(bytes(len(piece)))
            if number == 2:
                raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(large_uploads, "hand_over", lambda told, file: None)
        patched.setattr(large_uploads, "leaf_pieces", damaged_and_cut)
        with pytest.raises(KeyboardInterrupt):
            client.files.copy([str(tmp_path / "f")], f"{place}/")
    until_s = time.monotonic() + PATIENCE_S
    while not (received := sum(row["received_bytes"] for row in client.files.uploads())):
        assert time.monotonic() < until_s  # the service has yet to notice the cut
    assert received < LEAF_BYTES
    check(client.files.copy([str(tmp_path / "f")], f"{place}/"))
    assert service.stored(f"{tmp_path.name}/f").read_bytes() == data


def test_what_the_service_lost_is_sent(
    client: Client,
    service: Service,
    proxy: ChaosProxy,
    tmp_path: Path,
    place: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = make(tmp_path / "f", SIZE_BYTES, 5)

    class Gone:
        def close(self) -> None:
            pass

    monkeypatch.setattr(large_uploads, "hand_over", lambda told, file: Gone())
    summary = client.files.copy([str(tmp_path / "f")], f"{place}/")
    assert check(summary).sent_bytes == SIZE_BYTES
    assert service.stored(f"{tmp_path.name}/f").read_bytes() == data
    assert proxy.sent["up"] > SIZE_BYTES


def test_a_killed_service_is_handed_the_file_again(
    service: Service, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    size_bytes = 200 << 20
    data = make(tmp_path / "f", size_bytes, 6)
    is_killed, progress = threading.Event(), 0

    def kill_in_the_middle(event: Event) -> None:
        nonlocal progress
        if isinstance(event, Moved):
            progress += event.n_bytes
            if not is_killed.is_set():
                os.kill(service.pid, signal.SIGKILL)
                is_killed.set()

    monkeypatch.setattr(large_uploads, "leaf_pieces", None)  # no byte is sent
    files = service.client().files
    with ThreadPoolExecutor(1) as pool:
        source = str(tmp_path / "f")
        going = pool.submit(files.copy, [source], f"{place}/", on_event=kill_in_the_middle)
        assert is_killed.wait(PATIENCE_S)
        service.stop(hard=True)
        service.start()
        summary = check(going.result(60))
    assert (progress, summary.sent_bytes, summary.same_bytes) == (size_bytes, size_bytes, 0)
    assert service.stored(f"{tmp_path.name}/f").read_bytes() == data


def test_a_file_that_changes_while_it_is_read_is_handed_over_again(
    client: Client,
    service: Service,
    proxy: ChaosProxy,
    tmp_path: Path,
    place: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make(tmp_path / "f", SIZE_BYTES, 7)
    final = random.Random(8).randbytes(SIZE_BYTES + LEAF_BYTES)
    call, changes = Lane.call, iter([final])

    def meddling(lane: Lane, method: str, path: str, *more: Any, **how: Any) -> Any:
        answer = call(lane, method, path, *more, **how)
        if "/take" in path and (data := next(changes, None)) is not None:
            (tmp_path / "f").write_bytes(data)
        return answer

    monkeypatch.setattr(Lane, "call", meddling)
    check(client.files.copy([str(tmp_path / "f")], f"{place}/"))
    assert service.stored(f"{tmp_path.name}/f").read_bytes() == final
    assert client.files.uploads() == []


def test_a_file_that_becomes_shorter_is_named(
    client: Client, service: Service, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "f", SIZE_BYTES, 9)
    call = Lane.call

    def meddling(lane: Lane, method: str, path: str, *more: Any, **how: Any) -> Any:
        if "/take" in path:
            os.truncate(tmp_path / "f", os.stat(tmp_path / "f").st_size - 1)
        return call(lane, method, path, *more, **how)

    monkeypatch.setattr(Lane, "call", meddling)
    [(path, error)] = client.files.copy([str(tmp_path / "f")], f"{place}/").failures
    assert path == str(tmp_path / "f")
    assert "changed while it was sent" in error.message
    assert not service.stored(f"{tmp_path.name}/f").exists()


# --- by raw HTTP -------------------------------------------------------------------------------


def test_nothing_is_taken_before_it_is_handed_over(alice: Caller, home: str) -> None:
    upload = begin(alice, f"{home}/f", b"12345")
    assert upload["handover"]["socket"].startswith("paddlecloud-pfs-")
    refused = alice.post(f"{PFS}/uploads/{upload['id']}/take?offset=0&length=5")
    assert (refused.status, refused.json["code"]) == (409, "conflict")
    assert "handed over" in refused.json["message"]


def test_nobody_takes_for_another(alice: Caller, server: Any, home: str) -> None:
    upload = begin(alice, f"{home}/f", b"12345")
    other = server.as_user("bob").post(f"{PFS}/uploads/{upload['id']}/take?offset=0&length=5")
    assert other.status == 404


@pytest.mark.parametrize("query", ["", "offset=0", "length=5", "offset=x&length=5"])
def test_says_which_part_is_missing(alice: Caller, home: str, query: str) -> None:
    upload = begin(alice, f"{home}/f", b"12345")
    assert alice.post(f"{PFS}/uploads/{upload['id']}/take?{query}").status == 400


def test_takes_no_more_than_it_would_let_go_of_soon(alice: Caller, home: str) -> None:
    body = {"path": f"{home}/f", "size": 200 << 20, "source": "test"}
    upload = alice.post(f"{PFS}/uploads", body).json["id"]
    path = f"{PFS}/uploads/{upload}/take?offset=0&length="
    assert alice.post(f"{path}{64 << 20}").status == 409
    refused = alice.post(f"{path}{(64 << 20) + 1}")
    assert (refused.status, refused.json["field"]) == (400, "length")


def test_offers_nothing_when_told_not_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    monkeypatch.setenv("PADDLECLOUD_PFS_HANDOVER", "0")
    own = Service(tmp_path)
    try:
        answers: list[Any] = []
        monkeypatch.setattr(large_uploads, "hand_over", lambda told, file: answers.append(told))
        make(tmp_path / "f", SIZE_BYTES, 10)
        check(own.client().files.copy([str(tmp_path / "f")], f"{HOME}/"))
        assert answers == [None]
    finally:
        own.close()
