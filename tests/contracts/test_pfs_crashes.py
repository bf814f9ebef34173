"""A store that is killed, or whose disk is full: nothing acknowledged is lost, nothing is torn.

The killed process is a fork that kills itself right before or after one of its calls of the kernel;
the cases go through all of its life, from the first call to the last.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paddlecloud.core.errors import OutOfSpace
from paddlecloud.pfs import syscalls
from paddlecloud.pfs.shapes import UploadWish
from paddlecloud.wire.digests import LEAF_BYTES
from tests.possible import skip_unless_possible
from tests.storing import ANN, Bench, at, digest_of, fill, little_disk

_CALLS = ("open", "close", "rename", "fsync", "write", "pwrite", "unlink", "mkdir", "rmdir")
_CALLS += ("fchown", "fchmod", "stat", "fstat")
_OLD = {"f": b"old f", "sub/a": b"old a"}
_NEW = {"f": b"new f" * 1000, "sub/a": b"new a", "sub/b": b"b", "other/c": b"c" * 9000}
_LARGE = os.urandom(LEAF_BYTES + 17)


def _count_down(n: int) -> Callable[[], None]:
    left = n

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return count


def _arm(n: int) -> None:
    """From now on the n-th call ends this process, before or after it is done."""
    count = _count_down(n)

    def wrap(call: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*args: object, **keywords: object) -> object:
            count()
            result = call(*args, **keywords)
            count()
            return result

        return wrapped

    for name in _CALLS:
        setattr(os, name, wrap(getattr(os, name)))
    syscalls.syncfs = wrap(syscalls.syncfs)  # type: ignore[assignment]


def _work(root: Path, tell: int, n: int) -> None:
    write = os.write
    bench = Bench(root)
    _arm(n)
    bench.batch(_NEW)
    write(tell, b"batch\n")
    bench.put("large", _LARGE)
    write(tell, b"large\n")
    bench.put("f", b"last")
    write(tell, b"last\n")
    bench.store.remove(ANN, [at("other")], recursive=True)
    write(tell, b"removed\n")
    write(tell, b"end\n")


def _killed_at(root: Path, n: int) -> list[str]:
    """What the process acknowledged before its n-th call."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            _work(root, writing, n)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read().split()
    os.waitpid(child, 0)
    return told


def _check(bench: Bench, told: list[str]) -> None:
    assert bench.get("f") in {_OLD["f"], _NEW["f"], b"last"}
    assert bench.get("sub/a") in {_OLD["sub/a"], _NEW["sub/a"]}
    visible = {name: bench.get(name) for name in bench.names() if _is_file(bench, name)}
    whole = {**_NEW, "large": _LARGE}
    for name, data in visible.items():
        if name not in _OLD:
            assert data == whole[name]
    if "batch" in told:
        kept = {name for name in _NEW if not name.startswith("other/") and name != "f"}
        assert {name: visible[name] for name in kept} == {name: _NEW[name] for name in kept}
    if "large" in told:
        assert visible["large"] == _LARGE
    if "last" in told:
        assert visible["f"] == b"last"
    if "removed" in told:
        assert "other/c" not in visible


def _is_file(bench: Bench, name: str) -> bool:
    return bench.store.entry(ANN, at(name)).type == "file"


@pytest.mark.slow
@pytest.mark.needs("linux")
def test_a_kill_at_any_call_loses_nothing_acknowledged_and_tears_nothing(tmp_path: Path):
    n = 0
    told: list[str] = []
    while "end" not in told:
        # Every call has two points, before and after it; five steps on is always the other kind.
        n += 5
        root = tmp_path / str(n)
        bench = Bench(root, sync=False)
        bench.batch(_OLD)
        bench.store.close()
        told = _killed_at(root, n)
        bench = Bench(root, sync=False)
        _check(bench, told)
        bench.store.sweep()
        # Only what can be continued is kept, and it can be.
        assert all(name.startswith("up-") for name in bench.leftovers())
        bench.put("large", _LARGE)
        assert bench.get("large") == _LARGE
        bench.store.sweep(forgotten_s=-1)
        assert bench.leftovers() == []
        answer = bench.store.usage(ANN, at())
        assert (answer.used_bytes, answer.used_files) == (answer.size_bytes, answer.files)
        bench.store.close()
    assert n > 100


def test_a_killed_receiver_resumes_with_all_but_the_last_mib(tmp_path: Path):
    n_bytes = 2 * LEAF_BYTES + (5 << 19) + 1000
    root = tmp_path / "pfs"
    data = os.urandom(3 * LEAF_BYTES)
    wish = UploadWish(at("f"), len(data), source="x")
    child = os.fork()
    if child == 0:
        try:
            upload = Bench(root).store.begin_upload(ANN, wish)
            receiver = upload.receive(0, len(data))
            for n in range(0, n_bytes, 100_000):
                receiver.write(data[n : min(n + 100_000, n_bytes)])
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    bench = Bench(root)
    upload = bench.store.begin_upload(ANN, wish)
    assert [index for index, _ in upload.received()] == [0, 1]
    ((index, kept_bytes),) = upload.to_json()["begun"]
    assert index == 2
    assert n_bytes - (1 << 20) < 2 * LEAF_BYTES + kept_bytes <= n_bytes
    receiver = upload.receive(2 * LEAF_BYTES + kept_bytes, LEAF_BYTES - kept_bytes)
    receiver.write(data[2 * LEAF_BYTES + kept_bytes :])
    receiver.finish()
    upload.commit(digest_of(data))
    assert bench.get("f") == data
    bench.store.close()


# --- a full disk -----------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    skip_unless_possible("loop-mount")
    with little_disk(tmp_path, 24 << 20) as folder:
        yield folder


def test_a_full_disk_refuses_writes_goes_on_reading_and_recovers(disk: Path):
    bench = Bench(disk)
    bench.batch({"kept": b"kept" * 1000, "sub/kept": b"too"})
    with pytest.raises(OutOfSpace):
        bench.store.begin_upload(ANN, UploadWish(at("large"), 1 << 30))
    with pytest.raises(OutOfSpace):
        bench.store.begin_batch(ANN, at(), 1, 1 << 30)
    upload = bench.store.begin_upload(ANN, UploadWish(at("begun"), 2 * LEAF_BYTES, source="x"))
    fill(bench.home / "by a job")
    receiver = upload.receive(0, 2 * LEAF_BYTES)
    with pytest.raises(OutOfSpace):
        receiver.write(b"y" * (2 * LEAF_BYTES))
    receiver.cut()
    with pytest.raises(OutOfSpace):
        bench.put("new", b"z" * 10_000)
    with pytest.raises(OutOfSpace):
        bench.batch({"a": b"z" * 10_000})
    assert bench.get("kept") == b"kept" * 1000
    assert "sub/kept" in bench.names()
    bench.reopen()
    assert bench.get("sub/kept") == b"too"
    assert not bench.store.promises.tried
    bench.store.remove(ANN, [at("by a job")])
    bench.put("new", b"z" * 10_000)
    assert bench.batch({"a": b"z" * 10_000}).stored == 1
    assert bench.get("new") == bench.get("a")
    bench.store.tick()
    assert bench.store.promises.tried
    bench.store.close()
