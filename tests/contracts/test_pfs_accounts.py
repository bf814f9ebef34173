"""What every file store promises each account: its files are its own, and its limits exact."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from paddlecloud.core.errors import (
    InvalidInput,
    NotAllowed,
    NotFound,
    PaddleCloudError,
    QuotaExceeded,
)
from paddlecloud.pfs.shapes import UploadWish
from paddlecloud.wire.pfspath import PfsPath
from tests.storing import (
    ANN,
    BOB,
    Bench,
    at,
    digest_of,
    owner,
)

# --- whose -----------------------------------------------------------------------------------


def _every_call(bench: Bench, path: PfsPath) -> list[Callable[[], object]]:
    mine = at("mine")
    return [
        lambda: bench.store.entry(ANN, path),
        lambda: bench.store.entries(ANN, path),
        lambda: bench.store.open_content(ANN, path),
        lambda: bench.store.usage(ANN, path),
        lambda: bench.store.compare(ANN, path, [("f", 1, "0" * 64)]),
        lambda: bench.store.copy(ANN, path, mine),
        lambda: bench.store.copy(ANN, mine, path),
        lambda: bench.store.move(ANN, path, mine),
        lambda: bench.store.move(ANN, mine, path),
        lambda: bench.store.remove(ANN, [path], missing_ok=True),
        lambda: bench.store.make_directories(ANN, [path]),
        lambda: bench.store.begin_upload(ANN, UploadWish(path, 1)),
        lambda: bench.store.begin_batch(ANN, path, 1, 1),
        lambda: bench.store.begin_stream(ANN, path),
    ]


def test_another_home_is_the_same_as_one_that_does_not_exist(bench: Bench):
    bench.put("mine", b"1")
    other = Bench.__new__(Bench)
    other.__dict__ = {**bench.__dict__, "who": BOB}
    other.put("secret", b"1")
    for relative in ("secret", "nothing"):
        for real, unreal in zip(
            _every_call(bench, at(relative, "bob")),
            _every_call(bench, at(relative, "nobody")),
            strict=True,
        ):
            answers = []
            for call in (real, unreal):
                with pytest.raises(NotAllowed) as error:
                    call()
                answers.append(str(error.value).replace("nobody", "bob"))
            assert answers[0] == answers[1] == "not a valid user: bob"
    assert not (bench.root / "home" / "nobody").exists()
    assert other.get("secret") == b"1"


def test_public_data_is_read_only(bench: Bench):
    bench.put("mine", b"1")
    (bench.root / "public" / "f").write_bytes(b"data")
    path = PfsPath.parse("/pfs/local/public/f")
    assert bench.store.entry(ANN, path, digest=True).digest == digest_of(b"data")
    with bench.store.open_content(ANN, path) as content:
        assert os.read(content.fd, 10) == b"data"
    refused = _every_call(bench, path)[6:]
    for call in refused:
        with pytest.raises(NotAllowed):
            call()
    assert (bench.root / "public" / "f").read_bytes() == b"data"


def test_an_unknown_datacenter_is_refused(bench: Bench):
    with pytest.raises(InvalidInput, match="no datacenter mars"):
        bench.store.entry(ANN, PfsPath.parse("/pfs/mars/home/ann"))


@pytest.mark.parametrize("link", ["file", "directory", "above"])
def test_a_link_leads_nowhere(bench: Bench, link: str, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    bench.put("d/f", b"inside")
    target = {"file": outside / "secret", "directory": outside, "above": Path("..")}[link]
    (bench.home / "link").symlink_to(target)
    path = at("link") if link == "file" else at("link/secret")
    for call in (
        lambda: bench.store.entry(ANN, path),
        lambda: bench.store.open_content(ANN, path),
        lambda: bench.store.copy(ANN, path, at("copy")),
        lambda: bench.store.usage(ANN, path),
        lambda: bench.put(f"link/{'x' if link == 'file' else 'secret'}", b"overwritten"),
        lambda: bench.store.make_directories(ANN, [at("link/sub")]),
        lambda: bench.store.move(ANN, at("d/f"), at("link/moved")),
    ):
        with pytest.raises(PaddleCloudError):
            call()
    assert bench.batch({"link/x": b"overwritten"}).stored == 0
    assert bench.compare({"link/secret": b"secret"})["blocked"] == [0]
    assert (outside / "secret").read_bytes() == b"secret"
    assert os.listdir(outside) == ["secret"]
    assert bench.get("d/f") == b"inside"


@pytest.mark.root
def test_a_hard_link_to_another_accounts_file_is_not_served(bench: Bench):
    bench.put("own", b"own")
    os.link(bench.home / "own", bench.home / "own too")
    secret = bench.root / "home" / "secret"
    secret.write_bytes(b"secret")
    os.chown(secret, 210_002, 210_002)
    os.link(secret, bench.home / "stolen")
    assert bench.get("own too") == b"own"
    for call in (
        lambda: bench.store.open_content(ANN, at("stolen")),
        lambda: bench.store.entry(ANN, at("stolen"), digest=True),
        lambda: bench.store.copy(ANN, at("stolen"), at("copy")),
    ):
        with pytest.raises(NotFound):
            call()
    assert bench.compare({"stolen": b"secret"})["blocked"] == [0]
    assert bench.names() == ["own", "own too"]


# --- how much --------------------------------------------------------------------------------


def test_a_limit_counts_what_is_unfinished_and_what_is_replaced(bench: Bench):
    bench.who = owner(limit_bytes=100, limit_files=3)
    bench.put("a", b"x" * 60)
    with pytest.raises(QuotaExceeded):
        bench.put("b", b"x" * 41)
    upload = bench.store.begin_upload(bench.who, UploadWish(at("c"), 30, source="1"))
    assert bench.used() == (90, 2)
    assert bench.store.usage(bench.who, at()).unfinished_bytes == 30
    with pytest.raises(QuotaExceeded):
        bench.put("b", b"x" * 11)
    bench.reopen()
    assert bench.used() == (90, 2)
    bench.store.upload(bench.who, upload.id).abandon()
    bench.put("a", b"x" * 40)
    assert bench.used() == (40, 1)
    bench.batch({"b": b"", "c": b""})
    with pytest.raises(QuotaExceeded, match="3 of 3 files"):
        bench.batch({"d": b""})
    bench.store.remove(bench.who, [at("b")])
    assert bench.batch({"d": b""}).stored == 1
    assert bench.used() == (40, 3)


def test_a_limit_holds_exactly_with_sixteen_writers(bench: Bench):
    bench.who = who = owner(limit_bytes=100 * 1000, limit_files=1000)
    taken: list[int] = []
    start = threading.Barrier(16)

    def write(number: int) -> None:
        start.wait()
        for n in range(20):
            try:
                if n % 2:
                    bench.put(f"{number}-{n}", b"x" * 1000)
                else:
                    bench.batch({f"{number}-{n}": b"x" * 1000})
                taken.append(1000)
            except QuotaExceeded:
                pass

    threads = [threading.Thread(target=write, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == 100 * 1000
    assert bench.used() == (100 * 1000, 100)
    assert bench.store.usage(who, at()).size_bytes == 100 * 1000


def test_writers_of_the_same_path_are_counted_once(bench: Bench):
    bench.who = owner(limit_bytes=10**9)
    bench.put("f", b"first")

    def write(number: int) -> None:
        for n in range(10):
            bench.put("f", f"{number} {n}".encode() * 100)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bench.used() == (len(bench.get("f")), 1)


def test_a_sweep_sees_what_jobs_wrote(bench: Bench):
    bench.who = owner(limit_bytes=1000)
    bench.put("f", b"x" * 100)
    (bench.home / "by a job").write_bytes(b"y" * 850)
    bench.store.sweep()
    assert bench.used() == (950, 2)
    with pytest.raises(QuotaExceeded):
        bench.put("g", b"x" * 51)
