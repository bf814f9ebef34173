"""Snapshots: stored by content, written out exactly, forgotten when nobody names them."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from paddlecloud.core.errors import Conflict, NotFound, QuotaExceeded
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.owners import Places
from paddlecloud.pfs.shapes import UploadWish
from paddlecloud.pfs.snapshots import Snapshots
from paddlecloud.wire import snapshots as lists
from paddlecloud.wire.digests import LEAF_BYTES
from tests.patience import PATIENCE_S
from tests.storing import ANN, BOB, Bench, digest_of, leaves_of, owner, send

FOLDER = {"train.py": b"print('hi')", "lib/a.py": b"a", "lib/same.py": b"a", "run.sh": b"#!"}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path / "pfs", sync=False)
    yield bench
    bench.store.close()


def _snapshot(folder: dict[str, bytes], dirs: tuple[str, ...] = ("empty",)) -> lists.Snapshot:
    return lists.make(
        (
            lists.File(path, len(data), path.endswith(".sh"), digest_of(data).hex())
            for path, data in folder.items()
        ),
        dirs,
    )


def _send_blobs(bench: Bench, folder: dict[str, bytes], missing: list[str]) -> None:
    wanted = {digest_of(data).hex(): data for data in folder.values()}
    size_bytes = sum(len(wanted[digest]) for digest in missing)
    batch = bench.store.begin_blobs(bench.who, len(missing), size_bytes)
    for digest in missing:
        send(batch, digest, wanted[digest])
    assert batch.commit().refused == []


def _store(bench: Bench, folder: dict[str, bytes]) -> str:
    wish = lists.whole(_snapshot(folder))
    answer = bench.store.put_snapshot(bench.who, wish)
    if answer.missing:
        _send_blobs(bench, folder, answer.missing)
        answer = bench.store.put_snapshot(bench.who, wish)
    assert answer.missing == []
    assert answer.files == len(folder)
    return wish.digest


def _read(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_asks_for_what_is_missing_and_then_keeps_it(bench: Bench):
    wish = lists.whole(_snapshot(FOLDER))
    answer = bench.store.put_snapshot(ANN, wish)
    assert sorted(answer.missing) == sorted({digest_of(data).hex() for data in FOLDER.values()})
    with pytest.raises(NotFound):
        bench.store.snapshot(1, wish.digest)
    _store(bench, FOLDER)
    bench.reopen()
    assert bench.store.snapshot(1, wish.digest) == _snapshot(FOLDER)


def test_writes_out_exactly_what_was_sent(bench: Bench, tmp_path: Path):
    digest = _store(bench, FOLDER)
    (tmp_path / "job").mkdir()
    # From another process, which knows nothing but the root.
    other = Snapshots(Places(bench.root, None))
    for _ in range(2):
        other.materialise(1, digest, Tree(tmp_path / "job", ANN.uid), ("run", "1"))
        assert _read(tmp_path / "job" / "run" / "1") == FOLDER
    assert (tmp_path / "job/run/1/empty").is_dir()
    modes = {name: stat.S_IMODE((tmp_path / "job/run/1" / name).stat().st_mode) for name in FOLDER}
    assert modes == {name: 0o700 if name == "run.sh" else 0o600 for name in FOLDER}


def test_never_writes_through_a_link(bench: Bench, tmp_path: Path):
    digest = _store(bench, FOLDER)
    job, outside = tmp_path / "job", tmp_path / "outside"
    job.mkdir()
    outside.mkdir()
    (job / "lib").symlink_to(outside)
    with pytest.raises(NotFound):
        bench.store.materialise(1, digest, Tree(job, ANN.uid), ())
    (job / "lib").unlink()
    (outside / "victim").write_bytes(b"precious")
    (job / "train.py").unlink(missing_ok=True)
    (job / "train.py").symlink_to(outside / "victim")
    bench.store.materialise(1, digest, Tree(job, ANN.uid), ())
    assert (outside / "victim").read_bytes() == b"precious"
    assert _read(job) == FOLDER


def test_a_change_sends_the_change(bench: Bench):
    digest = _store(bench, FOLDER)
    changed = {**FOLDER, "train.py": b"print('ho')"}
    wish = lists.difference(_snapshot(FOLDER), _snapshot(changed))
    assert wish.base == digest
    assert len(wish.files) == 1
    answer = bench.store.put_snapshot(ANN, wish)
    assert answer.missing == [digest_of(b"print('ho')").hex()]
    _send_blobs(bench, changed, answer.missing)
    assert bench.store.put_snapshot(ANN, wish).missing == []
    with pytest.raises(NotFound):
        bench.store.put_snapshot(BOB, wish)


def test_accounts_share_nothing(bench: Bench):
    digest = _store(bench, FOLDER)
    answer = bench.store.put_snapshot(BOB, lists.whole(_snapshot(FOLDER)))
    assert len(answer.missing) == 3
    with pytest.raises(NotFound):
        bench.store.snapshot(2, digest)


def test_large_blobs_come_by_upload(bench: Bench, tmp_path: Path):
    data = os.urandom(LEAF_BYTES + 5)
    digest = digest_of(data)
    upload = bench.store.begin_upload(
        ANN, UploadWish(None, len(data), source="x", blob=digest.hex())
    )
    receiver = upload.receive(0, len(data))
    receiver.write(data)
    assert receiver.finish() == leaves_of(data)
    upload.commit(digest)
    snapshot = _store(bench, {"large": data})
    (tmp_path / "job").mkdir()
    bench.store.materialise(1, snapshot, Tree(tmp_path / "job"), ())
    assert (tmp_path / "job" / "large").read_bytes() == data


@pytest.mark.parametrize("size_bytes", [11, LEAF_BYTES + 5])
def test_finds_a_rotten_blob_and_has_it_sent_again(bench: Bench, tmp_path: Path, size_bytes: int):
    data = b"x" * size_bytes
    name = digest_of(data).hex()
    if size_bytes > LEAF_BYTES:
        upload = bench.store.begin_upload(ANN, UploadWish(None, size_bytes, blob=name))
        upload.receive(0, size_bytes).write(data)
        upload.commit(digest_of(data))
    digest = _store(bench, {"f": data})
    blob = bench.root / ".paddlefs" / "blobs" / "1" / name[:2] / name
    with blob.open("r+b") as file:
        file.write(b"y")
    (tmp_path / "job").mkdir()
    with pytest.raises(Conflict, match="bit rot"):
        bench.store.materialise(1, digest, Tree(tmp_path / "job"), ())
    assert os.listdir(tmp_path / "job") == ["empty"]
    assert bench.store.put_snapshot(ANN, lists.whole(_snapshot({"f": data}))).missing == [name]


def test_a_rotten_list_is_as_good_as_none(bench: Bench):
    digest = _store(bench, FOLDER)
    path = bench.root / ".paddlefs" / "snapshots" / "1" / digest
    path.write_bytes(path.read_bytes().replace(b"train", b"brain"))
    with pytest.raises(NotFound):
        bench.store.snapshot(1, digest)
    assert _store(bench, FOLDER) == digest


def _forget(bench: Bench, digest: str) -> None:
    """As the cloud server does, from another process."""
    Snapshots(Places(bench.root, None)).forget(1, digest)


def test_sweeps_what_no_snapshot_names(bench: Bench):
    keep = _store(bench, {"a": b"kept", "b": b"shared"})
    drop = _store(bench, {"a": b"dropped", "b": b"shared"})
    assert bench.store.sweep_blobs(unnamed_s=-1) == 0
    _forget(bench, drop)
    assert bench.store.sweep_blobs() == 0  # younger than an hour
    assert bench.store.sweep_blobs(unnamed_s=-1) == 1
    assert (
        bench.store.put_snapshot(
            ANN, lists.whole(_snapshot({"a": b"kept", "b": b"shared"}))
        ).missing
        == []
    )
    assert bench.store.snapshot(1, keep)


def test_counts_against_the_limit(bench: Bench):
    bench.who = owner(limit_bytes=10_000)
    data = os.urandom(4000)
    _store(bench, {"f": data})
    used_bytes, used_files = bench.used()
    assert used_bytes > 4000
    assert used_files == 2
    with pytest.raises(QuotaExceeded):
        bench.store.begin_blobs(bench.who, 1, 6000)


def test_room_is_free_as_soon_as_it_was_swept(bench: Bench):
    bench.who = owner(limit_bytes=20_000)
    data = os.urandom(4000)
    assert bench.used() == (0, 0)
    digest = _store(bench, {"f": data})
    before = bench.used()
    assert before[1] == 2
    _forget(bench, digest)
    assert bench.store.sweep_blobs(unnamed_s=-1) == 1
    assert bench.used() == (before[0] - 4000, 1)  # the list, which went behind the store's back
    bench.store.sweep()
    assert bench.used() == (0, 0)
    _forget(bench, digest)
    assert bench.used() == (0, 0)


def test_an_account_does_not_wait_for_another(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    """Were it to wait, the test would hang: only its end lets the sync go on."""
    for who in (ANN, BOB):
        bench.who = who
        wish = lists.whole(_snapshot(FOLDER))
        _send_blobs(bench, FOLDER, bench.store.put_snapshot(who, wish).missing)
    is_syncing, may_go_on = threading.Event(), threading.Event()
    snapshots = Snapshots(Places(bench.root, None))
    real = os.fsync

    def fsync(fd: int) -> None:
        if not is_syncing.is_set():
            is_syncing.set()
            assert may_go_on.wait(PATIENCE_S)
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    slow = threading.Thread(target=snapshots.put, args=[ANN, wish])
    slow.start()
    assert is_syncing.wait(PATIENCE_S)
    assert snapshots.put(BOB, wish).missing == []
    may_go_on.set()
    slow.join(PATIENCE_S)
    assert snapshots.get(1, wish.digest) == snapshots.get(2, wish.digest)


def test_a_list_or_blob_that_goes_meanwhile_does_not_end_a_sweep(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    keep = _store(bench, {"a": b"kept"})
    drop = _store(bench, {"a": b"dropped", "b": b"rotten"})
    blobs = bench.root / ".paddlefs" / "blobs" / "1"
    rotten = digest_of(b"rotten").hex()
    (blobs / "stray").write_bytes(b"no shelf")
    real_open, real_listdir = Path.open, os.listdir

    def open_late(path: Path, *args: str) -> IO[bytes]:
        if path.name == drop:
            path.unlink()
        return real_open(path, *args)  # type: ignore[call-overload,no-any-return]

    def listdir(path: Path) -> list[str]:
        names = real_listdir(path)
        if rotten in names:
            (Path(path) / rotten).unlink()
        return names

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", open_late)
        patch.setattr(os, "listdir", listdir)
        assert bench.store.sweep_blobs(unnamed_s=-1) == 1
    assert bench.store.snapshot(1, keep)
    bench.store.materialise(1, keep, Tree(bench.root), ("out",))
    assert (bench.root / "out" / "a").read_bytes() == b"kept"


def test_what_cannot_be_read_is_not_swept(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    digest = _store(bench, FOLDER)
    bench.who = BOB
    _send_blobs(bench, {"b": b"unnamed"}, [digest_of(b"unnamed").hex()])

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    real = Path.open
    with monkeypatch.context() as patch:
        patch.setattr(
            Path, "open", lambda path, *a: (fail if path.name == digest else real)(path, *a)
        )
        assert bench.store.sweep_blobs(unnamed_s=-1) == 1  # only the other account's
    assert bench.store.put_snapshot(ANN, lists.whole(_snapshot(FOLDER))).missing == []
