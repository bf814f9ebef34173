"""Bytes that are damaged, on the way between the client and a real file service or at rest."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.core.errors import Conflict
from paddlecloud.sdk import Client
from paddlecloud.sdk.transfers import large_uploads
from paddlecloud.sdk.transfers.connections import Lane
from paddlecloud.testing.chaos_proxy import ChaosProxy, Fault
from paddlecloud.wire import routes
from paddlecloud.wire.digests import LEAF_BYTES, leaf_check
from tests.pfs.sdk_fixtures import client, make, own_cache, proxy, service, target_of
from tests.pfs.sdk_service import Service

__all__ = ["client", "own_cache", "proxy", "service"]  # fixtures

SIZE_BYTES = 5 * LEAF_BYTES + 12_345


@pytest.fixture(params=["checks", "digests"])
def means(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What the client compares; a server of an earlier version knows no checks."""
    taken = []

    def counted() -> Any:
        taken.append(leaf_check())
        return taken[-1]

    monkeypatch.setattr(large_uploads, "leaf_check", counted)
    if request.param == "digests":
        call = Lane.call

        def of_an_earlier_server(lane: Lane, method: str, path: str, *more: Any, **how: Any) -> Any:
            answer = call(lane, method, path, *more, **how)
            if (method, path) == ("POST", routes.PFS_UPLOADS):
                del answer["checks"]
            return answer

        monkeypatch.setattr(Lane, "call", of_an_earlier_server)
    yield str(request.param)
    assert bool(taken) == (request.param == "checks")


@pytest.mark.parametrize("at_byte", [LEAF_BYTES - 7, 2 * LEAF_BYTES + 5, 4 * LEAF_BYTES])
def test_a_flipped_bit_on_the_way_up_is_found_and_sent_again(
    client: Client, service: Service, proxy: ChaosProxy, tmp_path: Path, means: str, at_byte: int
) -> None:
    data = make(tmp_path / "f", SIZE_BYTES, at_byte)
    proxy.plan(Fault("flip", "up", at_byte + 2000))
    summary = client.files.copy([str(tmp_path / "f")], target_of(tmp_path) + "/")
    assert not summary.failures
    assert service.stored(f"{tmp_path.name}/f").read_bytes() == data
    assert SIZE_BYTES < summary.sent_bytes <= SIZE_BYTES + LEAF_BYTES


@pytest.mark.parametrize("at_byte", [LEAF_BYTES - 7, 2 * LEAF_BYTES + 5, 4 * LEAF_BYTES])
def test_a_flipped_bit_on_the_way_down_is_found_and_fetched_again(
    client: Client, service: Service, proxy: ChaosProxy, tmp_path: Path, at_byte: int
) -> None:
    data = random.Random(at_byte).randbytes(SIZE_BYTES)
    stored = service.stored(f"{tmp_path.name}/f")
    stored.parent.mkdir(parents=True, exist_ok=True)
    stored.write_bytes(data)
    proxy.plan(Fault("flip", "down", at_byte + 2000))
    summary = client.files.copy([target_of(tmp_path) + "/f"], str(tmp_path / "got"))
    assert not summary.failures
    assert (tmp_path / "got").read_bytes() == data
    assert SIZE_BYTES < summary.sent_bytes <= SIZE_BYTES + LEAF_BYTES


def test_flipped_bits_in_batches_are_found(
    service: Service, proxy: ChaosProxy, tmp_path: Path
) -> None:
    source = tmp_path / "src"
    source.mkdir()
    for number in range(10):
        make(source / f"f{number}", 40_960, number)
    client = service.client()
    proxy.plan(Fault("flip", "up", 200_000))
    summary = client.files.copy([f"{source}/"], target_of(tmp_path), recursive=True)
    assert summary.sent_bytes == 11 * 40_960
    proxy.plan(Fault("flip", "down", 200_000))
    client.files.copy([target_of(tmp_path) + "/"], str(tmp_path / "got"), recursive=True)
    for path in source.iterdir():
        assert service.stored(f"{tmp_path.name}/{path.name}").read_bytes() == path.read_bytes()
        assert (tmp_path / "got" / path.name).read_bytes() == path.read_bytes()


def test_a_network_that_keeps_flipping_stores_nothing_and_is_named(
    client: Client, service: Service, proxy: ChaosProxy, tmp_path: Path
) -> None:
    make(tmp_path / "f", SIZE_BYTES, 10)
    third = 2 * LEAF_BYTES + 5000
    proxy.plan(Fault("flip", "up", third), Fault("flip", "up", SIZE_BYTES + 9000))
    summary = client.files.copy([str(tmp_path / "f")], target_of(tmp_path) + "/")
    [(path, error)] = summary.failures
    assert path == str(tmp_path / "f")
    assert isinstance(error, Conflict)
    assert "damaged on the way" in error.message
    assert not service.stored(f"{tmp_path.name}/f").exists()


def test_a_server_whose_checks_are_others_is_not_believed(
    client: Client, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "f", SIZE_BYTES, 12)

    def of_something_else() -> Any:
        check = leaf_check()
        check.update(b"x")
        return check

    monkeypatch.setattr(large_uploads, "leaf_check", of_something_else)
    [(_, error)] = client.files.copy([str(tmp_path / "f")], target_of(tmp_path) + "/").failures
    assert "damaged on the way" in error.message
    assert not service.stored(f"{tmp_path.name}/f").exists()


@pytest.mark.parametrize("digest", ["ab" * 28, "not hex" * 9, "AB" * 32])
def test_a_digest_that_is_none_is_not_believed(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, digest: str
) -> None:
    make(tmp_path / "f", SIZE_BYTES, 13)
    send = Lane.send

    def told(*args: Any, **more: Any) -> Any:
        answer = send(*args, **more)
        return {**answer, "leaves": [digest for _ in answer["leaves"]]}

    monkeypatch.setattr(Lane, "send", told)
    [(_, error)] = client.files.copy([str(tmp_path / "f")], target_of(tmp_path) + "/").failures
    assert "damaged on the way" in error.message


def test_bit_rot_at_rest_is_told_from_damage_on_the_way(
    client: Client, service: Service, proxy: ChaosProxy, tmp_path: Path
) -> None:
    data = make(tmp_path / "f", SIZE_BYTES, 11)
    client.files.copy([str(tmp_path / "f")], target_of(tmp_path) + "/")
    stored = service.stored(f"{tmp_path.name}/f")
    rot_without_a_write(stored, LEAF_BYTES + 9)
    summary = client.files.copy([target_of(tmp_path) + "/f"], str(tmp_path / "got"))
    if summary.failures:
        [(_, error)] = summary.failures
        assert "damaged where it is stored" in error.message
        assert not (tmp_path / "got").exists()
    else:  # the file system gave the write away, so it counts as a new version
        assert (tmp_path / "got").read_bytes() == stored.read_bytes() != data


def rot_without_a_write(path: Path, at_byte: int) -> None:
    """Change a byte under a live mapping, then put the times back as well as one can."""
    info = path.stat()
    with open(path, "r+b") as file:
        file.seek(at_byte)
        byte = file.read(1)
        file.seek(at_byte)
        file.write(bytes([byte[0] ^ 1]))
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
