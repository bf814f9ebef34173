"""What storages do that a plain disk does not: several devices, odd syncs, copies that stop."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paddlecloud.core.errors import Conflict, NotFound, Unavailable
from paddlecloud.pfs.folder_digests import FolderDigests
from paddlecloud.pfs.shapes import UploadWish
from paddlecloud.pfs.store import Store
from paddlecloud.wire.digests import LEAF_BYTES
from paddlecloud.wire.pfspath import PfsPath
from tests.possible import skip_unless_possible
from tests.storing import ANN, DATACENTER, Bench, at, digest_of

# --- several devices ---------------------------------------------------------------------------


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder on tmpfs, where a write through a mapping never shows in the times."""
    skip_unless_possible("shared-memory")
    folder = Path(tempfile.mkdtemp(prefix="paddlecloud-test-", dir="/dev/shm"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def _public(name: str) -> PfsPath:
    return PfsPath.parse(f"/pfs/{DATACENTER}/public/{name}")


def test_never_believes_the_times_of_a_device_it_has_not_tried(tmp_path: Path, elsewhere: Path):
    root = tmp_path / "pfs"
    root.mkdir()
    (root / "public").symlink_to(elsewhere)
    (elsewhere / "f").write_bytes(b"a" * mmap.PAGESIZE)
    with Store(root, [DATACENTER]) as store, (elsewhere / "f").open("r+b") as file:
        assert os.stat(root).st_dev != os.stat(elsewhere).st_dev
        with mmap.mmap(file.fileno(), mmap.PAGESIZE) as mapping:
            for number in (1, 2, 3):
                mapping[0] = number
                told = store.entry(ANN, _public("f"), digest=True)
                assert told.digest == digest_of(bytes(mapping))
                assert store.digests.known(os.fstat(file.fileno())) is None
                page = store.entries(ANN, _public("").root, digests=True)
                assert [entry.digest for entry in page.entries] == [None]


def test_knows_nothing_of_another_device_whatever_the_index_holds(bench: Bench, elsewhere: Path):
    """Such as rows of a time when this device was the one that was tried."""
    path = elsewhere / "f"
    path.write_bytes(b"data")
    index = bench.store.index
    here = index.device
    index.device = path.stat().st_dev
    index.learn(path.stat(), [digest_of(b"data")])
    tree = bench.store.places.tree(ANN, _public(""))
    fd = os.open(elsewhere, os.O_RDONLY)
    try:
        folders = FolderDigests(tree, index)
        assert folders.of(fd, 1) is not None
        folders.keep()
        if here != index.device:
            index.device = here
            assert index.get(path.stat()) is None
            assert index.digests([path.stat()]) == [None]
            assert FolderDigests(tree, index).of(fd, 1) is None
            index.forget(path.stat())
            index.learn(path.stat(), [digest_of(b"data")])
            index.device = path.stat().st_dev
            assert index.get(path.stat()) is None
    finally:
        index.device = here
        os.close(fd)


def test_an_etag_of_a_device_nobody_tried_is_not_trusted_for_a_while(
    tmp_path: Path, elsewhere: Path
):
    root = tmp_path / "pfs"
    root.mkdir()
    (root / "public").symlink_to(elsewhere)
    (elsewhere / "f").write_bytes(b"data")
    with Store(root, [DATACENTER]) as store:
        tags = set()
        for _ in range(2):
            with store.open_content(ANN, _public("f")) as content:
                tags.add(content.etag)
        assert len(tags) == 2


def test_refuses_homes_on_another_device_and_says_what_to_do(tmp_path: Path, elsewhere: Path):
    root = tmp_path / "pfs"
    root.mkdir()
    (root / "home").symlink_to(elsewhere)
    with pytest.raises(Unavailable, match="lie on different filesystems") as error:
        Store(root, [DATACENTER]).open()
    assert str(root) in error.value.hint
    (root / "home").unlink()
    Store(root, [DATACENTER]).open().close()  # nobody holds its lock


@contextmanager
def _bound(source: Path, point: Path) -> Iterator[None]:
    source.mkdir(parents=True)
    point.mkdir(parents=True)
    subprocess.run(["mount", "--bind", str(source), str(point)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(point)], check=True)


def test_refuses_homes_on_another_mount_of_the_same_device(root: Path):
    skip_unless_possible("loop-mount")
    with (
        _bound(root / "homes", root / "home"),
        pytest.raises(Unavailable, match="lie on different filesystems"),
    ):
        Store(root, [DATACENTER]).open()


def test_says_that_a_folder_is_mounted_into_a_home(bench: Bench):
    skip_unless_possible("loop-mount")
    bench.put("before", b"makes the home")
    with (
        _bound(bench.root / "other", bench.home / "mounted"),
        pytest.raises(Conflict, match="lies on another filesystem"),
    ):
        bench.put("mounted/f", b"data")


# --- syncs of directories ----------------------------------------------------------------------


def _fsync_of_directories(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    real = os.fsync

    def fsync(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(number, os.strerror(number))
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)


def test_works_where_directories_cannot_be_synced(root: Path, monkeypatch: pytest.MonkeyPatch):
    _fsync_of_directories(monkeypatch, errno.EINVAL)
    bench = Bench(root)
    assert not bench.store.promises.directory_sync
    bench.put("a/b/f", b"data")
    bench.batch({"c/f": b"1", "d/e/f": b"2"})
    bench.store.make_directories(ANN, [at("made/deep")])
    bench.store.copy(ANN, at("a"), at("new/copy"), recursive=True)
    bench.store.move(ANN, at("a"), at("other/moved"))
    bench.store.remove(ANN, [at("c")], recursive=True)
    assert bench.get("new/copy/b/f") == bench.get("other/moved/b/f") == b"data"
    bench.store.close()


def test_an_upload_ends_when_it_has_its_name_even_if_the_sync_behind_it_fails(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    bench.put("before", b"makes the home")
    data = b"abc"
    wish = UploadWish(at("f"), len(data), source="x")
    upload = bench.store.begin_upload(ANN, wish)
    upload.receive(0, len(data)).write(data)
    with monkeypatch.context() as patch:
        _fsync_of_directories(patch, errno.EIO)
        with pytest.raises(Unavailable):
            upload.commit(digest_of(data))
    # It is not acknowledged, and nobody can get an answer that says so later on.
    with pytest.raises(NotFound):
        bench.store.upload(ANN, upload.id)
    with pytest.raises(Conflict, match="finished"):
        upload.commit(digest_of(data))
    assert bench.store.uploads(ANN) == []
    assert bench.leftovers() == []
    assert bench.used() == (len(b"makes the home") + len(data), 2)
    # Sending it again is all that is needed.
    assert bench.store.begin_upload(ANN, wish).received() == []
    assert bench.put("f", data).digest == digest_of(data)


def test_an_upload_whose_bytes_were_deleted_begins_anew(bench: Bench):
    data = os.urandom(LEAF_BYTES + 1)
    wish = UploadWish(at("f"), len(data), source="x")
    upload = bench.store.begin_upload(ANN, wish)
    upload.receive(0, LEAF_BYTES).write(data[:LEAF_BYTES])
    (bench.parts / f"up-{upload.id}").unlink()
    again = bench.store.begin_upload(ANN, wish)
    assert again.received() == []
    again.receive(0, len(data)).write(data)
    again.commit(digest_of(data))
    assert bench.get("f") == data
    assert bench.used() == (len(data), 1)


# --- copies that stop --------------------------------------------------------------------------


@pytest.mark.parametrize("after_bytes", [0, 1000])
def test_copies_by_hand_where_the_kernel_stops_before_the_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, after_bytes: int
):
    data = os.urandom(100_000)
    bench.put("f", data)
    real = os.copy_file_range

    def stops(source: int, target: int, count: int, at: int, to: int) -> int:
        return real(source, target, min(count, max(0, after_bytes - at)), at, to) if count else 0

    monkeypatch.setattr(os, "copy_file_range", stops)
    assert bench.store.copy(ANN, at("f"), at("g")).size_bytes == len(data)
    assert bench.get("g") == data
    assert bench.store.entry(ANN, at("g"), verify=True).digest == digest_of(data)


def _shrink(path: Path) -> None:
    os.truncate(path, max(0, path.stat().st_size - 1000))


def _rewrite(path: Path) -> None:
    """With the size it had; the time is set because some storages have coarse ones."""
    number = path.read_bytes()[0] + 1
    path.write_bytes(bytes([number]) * 10_000)
    os.utime(path, ns=(number, number))


@pytest.mark.parametrize("change", [_shrink, _rewrite])
@pytest.mark.parametrize("times", [1, 100])
def test_a_file_that_changes_under_a_copy_is_copied_again_or_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], times: int
):
    bench.put("f", b"a" * 10_000)
    path, real, changes = bench.home / "f", os.copy_file_range, iter(range(times))

    def copy_file_range(*args: int) -> int:
        if next(changes, None) is None:
            return real(*args)
        n_copied = real(args[0], args[1], args[2] // 2, *args[3:])
        change(path)
        return n_copied

    monkeypatch.setattr(os, "copy_file_range", copy_file_range)
    if times == 1:
        told = bench.store.copy(ANN, at("f"), at("copy"))
        assert bench.get("copy") == path.read_bytes() != b"a" * 10_000
        assert told.size_bytes == path.stat().st_size
    else:
        with pytest.raises(Conflict, match=r"/home/ann/f is being written"):
            bench.store.copy(ANN, at("f"), at("copy"))
        assert bench.names() == ["f"]
    assert bench.leftovers() == []
