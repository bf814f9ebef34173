"""Syncing, and what can go wrong on the way: full accounts, meddling, interrupts."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.core.errors import (
    Conflict,
    NotFound,
    OutOfSpace,
)
from paddlecloud.sdk.pfs import Files
from paddlecloud.sdk.transfers import large_uploads
from paddlecloud.sdk.transfers.events import Event, Moved, Note, Planned
from paddlecloud.sdk.transfers.local_files import leaf_pieces
from paddlecloud.sdk.transfers.sessions import LANE
from paddlecloud.wire.digests import LEAF_BYTES
from tests.patience import PATIENCE_S
from tests.pfs.sdk_fixtures import (
    base,
    check,
    done,
    files,
    listing,
    own_cache,
    service,
    stored,
    tree,
)
from tests.pfs.sdk_service import TOKEN, Service

__all__ = ["base", "files", "own_cache", "service", "stored", "tree"]  # fixtures


# --- sync ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["up", "down", "within"])
def test_sync_with_delete_makes_the_target_the_same(
    files: Files, base: str, service: Service, tree: Path, tmp_path: Path, way: str
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    if way != "up":
        one = service.stored(base.rpartition("/")[2]) / "one"
    if way != "down":
        other = service.stored(base.rpartition("/")[2]) / "other"
    shown = {True: f"{base}/{{}}", False: str(tmp_path / "{}")}
    source, target = shown[way != "up"].format("one"), shown[way != "down"].format("other")
    os.system(f"cp -r {tree} {one}")
    os.system(f"cp -r {tree} {other}")
    (other / "surplus").mkdir()
    (other / "surplus/x").write_text("x")
    (other / "a.txt").write_text("old")
    (other / "sub/deep/er/extra").write_text("x")
    before = listing(other)
    events: list[Event] = []
    summary = files.sync(f"{source}/", target, delete=True, dry_run=True, on_event=events.append)
    assert listing(other) == before
    assert done(events) == [
        ("would remove", f"{target}/sub/deep/er/extra"),
        ("would remove", f"{target}/surplus"),
        ("would send", f"{target}/a.txt"),
    ]
    assert summary.removed_files == 2
    summary = check(files.sync(f"{source}/", target))
    assert (other / "surplus/x").exists()
    events.clear()
    summary = check(files.sync(f"{source}/", target, delete=True, on_event=events.append))
    assert listing(other) == listing(tree)
    assert summary.removed_files == 2
    assert ("removed", f"{target}/surplus") in done(events)


def test_nothing_is_removed_after_a_failure(
    files: Files, base: str, stored: Path, tmp_path: Path
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/taken").write_text("x")
    (stored / "taken").mkdir()
    (stored / "surplus").write_text("x")
    events: list[Event] = []
    summary = files.sync(f"{tmp_path}/src/", base, delete=True, on_event=events.append)
    assert len(summary.failures) == 1
    assert (stored / "surplus").exists()
    assert any("nothing was removed" in event.text for event in events if isinstance(event, Note))


def test_what_the_source_has_but_cannot_send_is_not_removed(
    files: Files, base: str, stored: Path, tmp_path: Path
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/link").symlink_to("elsewhere")
    (stored / "link").write_text("an older copy")
    check(files.sync(f"{tmp_path}/src/", base, delete=True))
    assert (stored / "link").exists()


@pytest.mark.parametrize("way", ["down", "within"])
def test_where_the_source_has_a_link_that_nobody_names_nothing_is_removed(
    files: Files, base: str, stored: Path, tmp_path: Path, way: str
) -> None:
    """The server counts links without naming them: each name may be the one."""
    (stored / "one/sub").mkdir(parents=True)
    (stored / "one/other").mkdir()
    (stored / "one/sub/f").write_text("f")
    (stored / "one/sub/latest").symlink_to("f")
    other = tmp_path / "two" if way == "down" else stored / "two"
    for name in ("sub/latest", "sub/run/kept", "other/surplus", "top"):
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text("precious")
    target = str(other) if way == "down" else f"{base}/two"
    events: list[Event] = []
    summary = check(files.sync(f"{base}/one/", target, delete=True, on_event=events.append))
    assert {name for name, data in listing(other).items() if data is not None} == {
        *("sub/f", "sub/latest", "sub/run/kept")
    }
    assert summary.removed_files == 2
    [note] = [event.text for event in events if isinstance(event, Note)]
    assert note.startswith("nothing was removed from sub")


# --- trouble -------------------------------------------------------------------------------------


def test_a_full_account_stops_everything_with_the_servers_words(
    files: Files, service: Service, base: str, stored: Path, tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(bytes(LEAF_BYTES + 1))
    (tmp_path / "g").write_bytes(bytes(1000))
    service.storage = {"bytes": 10, "files": None}
    time.sleep(1.1)  # the service remembers a caller for a second
    try:
        for name in "fg":
            with pytest.raises(OutOfSpace):
                files.copy([str(tmp_path / name)], f"{base}/")
        assert os.listdir(stored) == []
    finally:
        service.storage = {"bytes": None, "files": None}
        time.sleep(1.1)
    check(files.copy([str(tmp_path / "f"), str(tmp_path / "g")], base))


def test_a_file_that_changes_while_it_is_sent_is_sent_again(
    files: Files, base: str, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    path.write_bytes(random.Random(5).randbytes(3 * LEAF_BYTES))
    final = random.Random(6).randbytes(3 * LEAF_BYTES)
    changes = iter([final])

    def meddling(*args: Any, **more: Any) -> Iterator[memoryview]:
        for piece in leaf_pieces(*args, **more):
            yield piece
            if (data := next(changes, None)) is not None:
                path.write_bytes(data)

    monkeypatch.setattr(large_uploads, "leaf_pieces", meddling)
    check(files.copy([str(path)], f"{base}/"))
    assert (stored / "f").read_bytes() == final
    assert files.uploads() == []


def test_a_file_that_keeps_changing_is_reported_by_name(
    files: Files, base: str, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    path.write_bytes(bytes(2 * LEAF_BYTES))
    numbers = iter(range(1, 1000))

    def always_new(*args: Any, **more: Any) -> Iterator[memoryview]:
        for piece in leaf_pieces(*args, **more):
            yield piece
            stamp = next(numbers)
            os.utime(path, (stamp, stamp))

    monkeypatch.setattr(large_uploads, "leaf_pieces", always_new)
    summary = files.copy([str(path)], f"{base}/")
    [(failed, error)] = summary.failures
    assert failed == str(path)
    assert "changed while it was sent" in error.message
    assert os.listdir(stored) == []


class Stop(Exception):
    """Stands for an interrupt, which also comes out of wherever the program is."""


def test_an_interrupted_put_goes_on_later(
    files: Files, service: Service, base: str, stored: Path, tmp_path: Path
) -> None:
    size_bytes = 80 << 20
    (tmp_path / "f").write_bytes(random.Random(7).randbytes(size_bytes))
    moved = 0

    def interrupt(event: Event) -> None:
        nonlocal moved
        if isinstance(event, Moved):
            moved += event.n_bytes
            if moved > 40 << 20:
                raise Stop

    with pytest.raises(Stop):
        files.copy([str(tmp_path / "f")], f"{base}/", on_event=interrupt)
    assert LANE not in {thread.name for thread in threading.enumerate()}
    assert os.listdir(stored) == []
    summary = check(service.client().files.copy([str(tmp_path / "f")], f"{base}/"))
    assert summary.sent_bytes <= size_bytes - (40 << 20) + 4 * LEAF_BYTES
    assert (stored / "f").read_bytes() == (tmp_path / "f").read_bytes()


@pytest.mark.parametrize("is_up", [True, False])
def test_an_interrupt_leaves_at_once_and_keeps_what_was_moved(
    service: Service, files: Files, base: str, stored: Path, tmp_path: Path, is_up: bool
) -> None:
    """A real SIGINT to a real program, in the middle of a huge file."""
    size_bytes = 200 << 20
    data = random.Random(9).randbytes(size_bytes)
    source, target = str(tmp_path / "f"), f"{base}/f"
    (tmp_path / "f" if is_up else stored / "f").write_bytes(data)
    if not is_up:
        source, target = target, str(tmp_path / "got")
    program = (
        "import sys\n"
        "from paddlecloud.sdk import Client, Profile\n"
        "from paddlecloud.sdk.transfers.events import Moved\n"
        "moved = 0\n"
        "def told(event):\n"
        "    global moved\n"
        "    if isinstance(event, Moved):\n"
        "        moved += event.n_bytes\n"
        "        if moved > 60 << 20 and sys.stdout.writable():\n"
        "            print('go', flush=True)\n"
        f"client = Client(profile=Profile('local', {service.cloud.url!r}, token={TOKEN!r}))\n"
        f"client.files.copy([{source!r}], {target!r}, on_event=told)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"go\n"
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=PATIENCE_S)
    assert stderr.rstrip().endswith(b"KeyboardInterrupt"), stderr
    summary = check(files.copy([source], target))
    assert summary.sent_bytes <= size_bytes - (60 << 20) + 2 * LEAF_BYTES
    assert (stored / "f" if is_up else tmp_path / "got").read_bytes() == data


def test_a_data_port_that_cannot_be_reached_is_noted_and_gone_around(
    service: Service, tmp_path: Path, base: str
) -> None:
    """The cloud server here relays nothing, so its 404 shows who was asked."""
    client = service.client()
    service.told_port = 1  # nobody listens there
    try:
        with pytest.raises(NotFound):
            client.files.entry(base)
        assert any(r.path == "/api/v2/pfs/entry" for r in service.cloud.requests)
        [note] = client.files.plane.take_notes()
        assert "going through" in note
    finally:
        service.told_port = 0


def test_reading_a_part_of_a_file(files: Files, base: str, stored: Path) -> None:
    data = random.Random(8).randbytes(3 << 20)
    (stored / "f").write_bytes(data)
    assert b"".join(files.read(f"{base}/f")) == data
    assert b"".join(files.read(f"{base}/f", 1000, 5000)) == data[1000:6000]
    assert b"".join(files.read(f"{base}/f", len(data) - 3)) == data[-3:]
    assert b"".join(files.read(f"{base}/f", len(data) + 3)) == b""
    (stored / "empty").write_bytes(b"")
    assert b"".join(files.read(f"{base}/empty")) == b""


def test_the_small_calls(files: Files, base: str, stored: Path) -> None:
    files.make_directories([f"{base}/a/b"])
    (stored / "a/f").write_text("xyz")
    assert [entry["name"] for entry in files.entries(base, recursive=True)] == ["a", "a/b", "a/f"]
    assert files.entry(f"{base}/a/f")["size"] == 3
    files.move(f"{base}/a/f", f"{base}/a/g")
    assert files.usage(base)["bytes"] == 3
    with pytest.raises(Conflict):
        files.remove([f"{base}/a"])
    files.remove([f"{base}/a"], recursive=True)
    with pytest.raises(NotFound):
        files.entry(f"{base}/a")


def test_planned_comes_first(files: Files, base: str, tree: Path) -> None:
    events: list[Event] = []
    files.copy([str(tree)], base, recursive=True, on_event=events.append)
    told = [event for event in events if not isinstance(event, Note)]
    assert isinstance(told[0], Planned)
    assert sum(isinstance(event, Planned) for event in events) == 1
