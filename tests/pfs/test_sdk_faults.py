"""Cuts, resets and stalls between the client and a real file service."""

from __future__ import annotations

import os
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from paddlecloud.core.errors import ServerUnreachable
from paddlecloud.sdk import Client
from paddlecloud.sdk.transfers.events import Event, Moved, Planned
from paddlecloud.testing.chaos_proxy import ChaosProxy, Fault
from paddlecloud.wire.digests import LEAF_BYTES
from tests.patience import PATIENCE_S
from tests.pfs.sdk_fixtures import client, make, own_cache, proxy, service, target_of
from tests.pfs.sdk_service import Service

__all__ = ["client", "own_cache", "proxy", "service"]  # fixtures

SIZE_BYTES = 5 * LEAF_BYTES + 12_345
HEAD_BYTES = 4096  # what a request's head and JSON may take, generously


def impatient(client: Client) -> Client:
    """Gives up at the first cut, as a killed client does."""
    client.files.plane.give_up_s = 0.0
    return client


def at_bytes(size_bytes: int, count: int, seed: int) -> list[int]:
    """Cuts in the first head, around every leaf's end, and anywhere."""
    edges = [n * LEAF_BYTES + d for n in range(1, 4) for d in (-1, 0, 1, 300)]
    anywhere = random.Random(seed).sample(range(size_bytes), count)
    return sorted([1, 150, 900, *edges, *anywhere, size_bytes - 1])


def sent_twice(kind: str, at_byte: int, after_a_cut: int) -> int:
    """A reset takes all that had arrived and was not yet read, which may be everything so far."""
    return (at_byte if kind == "reset" else after_a_cut) + 65536 + 8 * HEAD_BYTES


# --- going on in the same run ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["cut", "reset"])
@pytest.mark.parametrize("at_byte", at_bytes(SIZE_BYTES, 6, seed=1))
def test_a_put_goes_on_after_a_break(
    client: Client, service: Service, proxy: ChaosProxy, tmp_path: Path, kind: str, at_byte: int
) -> None:
    data = make(tmp_path / "f", SIZE_BYTES, at_byte)
    fault = Fault(kind, "up", at_byte)  # type: ignore[arg-type]
    proxy.plan(fault)
    summary = client.files.copy([str(tmp_path / "f")], target_of(tmp_path) + "/")
    assert fault.happened.is_set()
    assert not summary.failures
    assert service.stored(f"{tmp_path.name}/f").read_bytes() == data
    assert proxy.sent["up"] <= SIZE_BYTES + sent_twice(kind, at_byte, 0)


@pytest.mark.parametrize("kind", ["cut", "reset"])
@pytest.mark.parametrize("at_byte", at_bytes(SIZE_BYTES, 6, seed=2))
def test_a_get_goes_on_after_a_break(
    client: Client, service: Service, proxy: ChaosProxy, tmp_path: Path, kind: str, at_byte: int
) -> None:
    data = random.Random(at_byte).randbytes(SIZE_BYTES)
    stored = service.stored(f"{tmp_path.name}/f")
    stored.parent.mkdir(parents=True, exist_ok=True)
    stored.write_bytes(data)
    fault = Fault(kind, "down", at_byte)  # type: ignore[arg-type]
    proxy.plan(fault)
    summary = client.files.copy([target_of(tmp_path) + "/f"], str(tmp_path / "got"))
    assert fault.happened.is_set()
    assert not summary.failures
    assert (tmp_path / "got").read_bytes() == data
    assert [path.name for path in tmp_path.iterdir() if "part" in path.name] == []
    assert proxy.sent["down"] <= SIZE_BYTES + sent_twice(kind, at_byte, LEAF_BYTES)


def test_progress_adds_up_over_breaks(client: Client, proxy: ChaosProxy, tmp_path: Path) -> None:
    make(tmp_path / "f", SIZE_BYTES, 3)
    events: list[Event] = []
    proxy.plan(Fault("cut", "up", 3 * LEAF_BYTES), Fault("cut", "up", 5 * LEAF_BYTES))
    target = target_of(tmp_path) + "/"
    summary = client.files.copy([str(tmp_path / "f")], target, on_event=events.append)
    planned = next(event for event in events if isinstance(event, Planned))
    moved = sum(event.n_bytes for event in events if isinstance(event, Moved))
    assert planned.same_bytes + moved == planned.size_bytes
    assert summary.same_bytes == 0  # what arrived before a break was sent by this command
    assert summary.sent_bytes >= SIZE_BYTES


def test_both_halves_of_a_huge_file_go_on(
    client: Client, service: Service, proxy: ChaosProxy, tmp_path: Path
) -> None:
    size_bytes = 68 << 20
    data = make(tmp_path / "f", size_bytes, 4)
    proxy.plan(*(Fault("cut", "up", n << 20) for n in (9, 30, 50, 66)))
    client.files.copy([str(tmp_path / "f")], target_of(tmp_path) + "/")
    assert service.stored(f"{tmp_path.name}/f").read_bytes() == data
    assert proxy.sent["up"] <= size_bytes + 4 * (LEAF_BYTES + (1 << 20)) + 65536
    proxy.plan(*(Fault("reset", "down", n << 20) for n in (9, 30, 50, 66)))
    client.files.copy([target_of(tmp_path) + "/f"], str(tmp_path / "got"))
    assert (tmp_path / "got").read_bytes() == data
    assert proxy.sent["down"] <= size_bytes + 4 * (LEAF_BYTES + (1 << 20)) + 2**20


# --- going on in the next run --------------------------------------------------------------------


@pytest.mark.parametrize("at_byte", at_bytes(SIZE_BYTES, 5, seed=5))
def test_the_same_put_again_goes_on_from_there(
    service: Service, proxy: ChaosProxy, tmp_path: Path, at_byte: int
) -> None:
    data = make(tmp_path / "f", SIZE_BYTES, at_byte)
    first = impatient(service.client())
    first.files.plane.endpoint  # noqa: B018
    proxy.plan(Fault("cut", "up", at_byte))
    with pytest.raises(ServerUnreachable) as caught:
        first.files.copy([str(tmp_path / "f")], target_of(tmp_path) + "/")
    assert "Run the same command again" in caught.value.hint
    assert not service.stored(f"{tmp_path.name}/f").exists()
    service.client().files.copy([str(tmp_path / "f")], target_of(tmp_path) + "/")
    assert service.stored(f"{tmp_path.name}/f").read_bytes() == data
    assert proxy.sent["up"] <= SIZE_BYTES + 65536 + 4 * HEAD_BYTES


@pytest.mark.parametrize("at_byte", at_bytes(SIZE_BYTES, 5, seed=6)[2:])
def test_the_same_get_again_goes_on_from_there(
    service: Service, proxy: ChaosProxy, tmp_path: Path, at_byte: int
) -> None:
    data = random.Random(at_byte).randbytes(SIZE_BYTES)
    stored = service.stored(f"{tmp_path.name}/f")
    stored.parent.mkdir(parents=True, exist_ok=True)
    stored.write_bytes(data)
    proxy.plan(Fault("cut", "down", at_byte))
    with pytest.raises(ServerUnreachable):
        impatient(service.client()).files.copy([target_of(tmp_path) + "/f"], str(tmp_path / "got"))
    assert not (tmp_path / "got").exists()
    service.client().files.copy([target_of(tmp_path) + "/f"], str(tmp_path / "got"))
    assert (tmp_path / "got").read_bytes() == data
    assert proxy.sent["down"] <= SIZE_BYTES + LEAF_BYTES + 65536 + 8 * HEAD_BYTES


@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize("at_byte", [10, 700, 5_000, 40_000, 123_456, 399_000])
def test_a_cut_batch_is_sent_or_fetched_again(
    service: Service, proxy: ChaosProxy, tmp_path: Path, direction: str, at_byte: int
) -> None:
    source = tmp_path / "src"
    source.mkdir()
    for number in range(100):
        make(source / f"f{number}", 4096, number)
    client = service.client()
    if direction == "up":
        proxy.plan(Fault("cut", "up", at_byte))
    client.files.copy([f"{source}/"], target_of(tmp_path), recursive=True)
    if direction == "down":
        proxy.plan(Fault("cut", "down", at_byte))
    client.files.copy([target_of(tmp_path) + "/"], str(tmp_path / "got"), recursive=True)
    assert proxy.connections > 1
    for path in source.iterdir():
        assert service.stored(f"{tmp_path.name}/{path.name}").read_bytes() == path.read_bytes()
        assert (tmp_path / "got" / path.name).read_bytes() == path.read_bytes()
    assert sorted(os.listdir(tmp_path / "got")) == sorted(os.listdir(source))


@pytest.mark.parametrize("at_byte", range(0, 700, 60))
def test_a_lost_answer_to_any_request_does_no_harm(
    service: Service, proxy: ChaosProxy, tmp_path: Path, at_byte: int
) -> None:
    """The answers of a put are a few hundred bytes: of compare, begin, the leaves, commit."""
    data = make(tmp_path / "f", LEAF_BYTES + 5, at_byte)
    proxy.plan(Fault("cut", "down", at_byte))
    summary = service.client().files.copy([str(tmp_path / "f")], target_of(tmp_path) + "/")
    assert not summary.failures
    assert service.stored(f"{tmp_path.name}/f").read_bytes() == data
    assert proxy.sent["up"] <= LEAF_BYTES + 5 + LEAF_BYTES + 65536 + 8 * HEAD_BYTES


def test_a_stalled_connection_is_given_up(
    service: Service, proxy: ChaosProxy, tmp_path: Path
) -> None:
    data = make(tmp_path / "f", SIZE_BYTES, 8)
    client = service.client()
    client.files.plane.stall_timeout_s = 0.3
    proxy.plan(Fault("stall", "up", 2 * LEAF_BYTES + 77))
    client.files.copy([str(tmp_path / "f")], target_of(tmp_path) + "/")
    assert service.stored(f"{tmp_path.name}/f").read_bytes() == data
    proxy.plan(Fault("stall", "down", 2 * LEAF_BYTES + 77))
    client.files.copy([target_of(tmp_path) + "/f"], str(tmp_path / "got"))
    assert (tmp_path / "got").read_bytes() == data


def test_a_service_that_restarts_is_waited_for(
    service: Service, proxy: ChaosProxy, tmp_path: Path
) -> None:
    data = make(tmp_path / "f", SIZE_BYTES, 9)
    fault = Fault("cut", "up", 2 * LEAF_BYTES + 1)
    proxy.plan(fault)
    files = service.client().files
    # The service ends with the thread that started it: that must be this one.
    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(files.copy, [str(tmp_path / "f")], target_of(tmp_path) + "/")
        assert fault.happened.wait(PATIENCE_S)
        service.stop(hard=True)
        service.start()
        assert not going.result(60).failures
    assert service.stored(f"{tmp_path.name}/f").read_bytes() == data


@pytest.mark.parametrize("at_mib", [40, 75, 120])
def test_a_killed_service_costs_little_more_than_what_was_on_the_way(
    service: Service, tmp_path: Path, at_mib: int
) -> None:
    """How much that is, the kernel decides: in a slow hour it takes the two for far apart."""
    size_bytes = 160 << 20
    data = make(tmp_path / "f", size_bytes, at_mib)
    moved_bytes, is_killed = 0, threading.Event()

    def kill_in_the_middle(event: Event) -> None:
        nonlocal moved_bytes
        moved_bytes += event.n_bytes if isinstance(event, Moved) else 0
        if moved_bytes > at_mib << 20 and not is_killed.is_set():
            os.kill(service.pid, signal.SIGKILL)
            is_killed.set()

    files = service.client().files
    with ThreadPoolExecutor(1) as pool:
        target = target_of(tmp_path) + "/"
        going = pool.submit(files.copy, [str(tmp_path / "f")], target, on_event=kill_in_the_middle)
        assert is_killed.wait(PATIENCE_S)
        service.stop(hard=True)
        service.start()
        summary = going.result(60)
    assert not summary.failures
    assert service.stored(f"{tmp_path.name}/f").read_bytes() == data
    assert summary.sent_bytes - size_bytes <= 4 * LEAF_BYTES
