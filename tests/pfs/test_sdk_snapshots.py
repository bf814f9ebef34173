"""Packages as snapshots, with a real file service: what travels, and what does not."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from paddlecloud.core.errors import Conflict
from paddlecloud.sdk import Client, snapshots
from paddlecloud.sdk.transfers import digest_cache, settling
from paddlecloud.sdk.transfers.events import Event, Planned
from paddlecloud.testing.chaos_proxy import ChaosProxy
from paddlecloud.wire.digests import LEAF_BYTES
from tests.pfs.sdk_fixtures import client, own_cache, proxy, service
from tests.pfs.sdk_service import Service

__all__ = ["client", "own_cache", "proxy", "service"]  # fixtures


def package(folder: Path, files: int, size_bytes: int, seed: int) -> Path:
    """A folder whose files have been still for long enough to be remembered."""
    root = folder / "package"
    source = random.Random(seed)
    long_ago = time.time() - 3600
    for number in range(files):
        path = root / f"part{number % 50}" / f"module_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.randbytes(size_bytes))
        os.utime(path, (long_ago, long_ago))
    return root


def test_a_snapshot_is_stored_and_named_by_its_content(
    client: Client, service: Service, tmp_path: Path
) -> None:
    root = package(tmp_path, 30, 500, seed=1)
    (root / "large").write_bytes(random.Random(2).randbytes(LEAF_BYTES + 9))
    (root / "empty").mkdir()
    (root / ".git").mkdir()
    (root / ".git" / "x").write_text("x")
    collected = snapshots.collect(str(root))
    assert collected.files == 31
    assert collected.skipped == [".git"]
    assert client.files.put_snapshot(collected) == collected.digest
    again = snapshots.collect(str(root))
    assert again.digest == collected.digest


def test_a_one_line_edit_of_a_large_package_sends_little(
    client: Client, proxy: ChaosProxy, tmp_path: Path
) -> None:
    root = package(tmp_path, 5_000, 400, seed=3)
    client.files.put_snapshot(snapshots.collect(str(root)))
    before = dict(proxy.sent)
    with open(root / "part7" / "module_7.py", "ab") as file:
        file.write(b"one more line\n")
    events: list[Event] = []
    collected = snapshots.collect(str(root))
    assert client.files.put_snapshot(collected, events.append) == collected.digest
    [planned] = [event for event in events if isinstance(event, Planned)]
    assert planned.files - planned.same_files == 1
    # It does not grow with the number of files: 20,000 send as little.
    assert proxy.sent["up"] - before["up"] < 5_000
    assert proxy.sent["down"] - before["down"] < 5_000


def test_an_unchanged_package_is_not_read_again(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = package(tmp_path, 20, 300, seed=4)
    monkeypatch.setattr(settling, "is_settled", lambda *_: True)
    first = snapshots.collect(str(root))
    monkeypatch.setattr(digest_cache, "hash_file", None)
    assert snapshots.collect(str(root)).digest == first.digest


def test_a_forgotten_base_means_the_whole_list_and_nothing_else(
    client: Client, service: Service, proxy: ChaosProxy, tmp_path: Path
) -> None:
    root = package(tmp_path, 200, 2_000, seed=5)
    collected = snapshots.collect(str(root))
    client.files.put_snapshot(collected)
    (root / "new").write_text("new")
    for path in (service.root / ".paddlefs" / "snapshots").rglob(collected.digest):
        path.unlink()
    before = proxy.sent["up"]
    changed = snapshots.collect(str(root))
    assert client.files.put_snapshot(changed) == changed.digest
    assert proxy.sent["up"] - before < 60_000  # the list, not the 400 kB


def test_the_same_contents_twice_travel_once(
    client: Client, proxy: ChaosProxy, tmp_path: Path
) -> None:
    root = tmp_path / "package"
    root.mkdir()
    data = random.Random(6).randbytes(1 << 20)
    for name in "abc":
        (root / name).write_bytes(data)
    client.files.put_snapshot(snapshots.collect(str(root)))
    assert proxy.sent["up"] < (1 << 20) + 20_000


def test_a_file_that_changes_after_it_was_collected_is_refused_by_name(
    client: Client, tmp_path: Path
) -> None:
    root = tmp_path / "package"
    root.mkdir()
    (root / "train.py").write_bytes(random.Random(7).randbytes(100))
    collected = snapshots.collect(str(root))
    (root / "train.py").write_bytes(random.Random(8).randbytes(100))
    with pytest.raises(Conflict, match=r"train\.py changed"):
        client.files.put_snapshot(collected)
