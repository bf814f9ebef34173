"""What every store promises, on every kind of storage it may stand on."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import threading
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paddlecloud.core.errors import (
    Conflict,
    InvalidInput,
    NotAllowed,
    NotFound,
    PaddleCloudError,
    QuotaExceeded,
)
from paddlecloud.pfs.faults import DifferentLeaves, MissingLeaves
from paddlecloud.pfs.shapes import UploadWish
from paddlecloud.wire.digests import LEAF_BYTES, combine
from paddlecloud.wire.pfspath import PfsPath
from paddlecloud.wire.records import Kind
from tests.possible import skip_unless_possible
from tests.storing import (
    ANN,
    BOB,
    IS_ROOT,
    Bench,
    at,
    digest_of,
    leaves_of,
    little_disk,
    owner,
    send,
)


@pytest.fixture(params=["disk", "memory", "own disk"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    if request.param == "disk":
        yield tmp_path / "pfs"
    elif request.param == "memory":
        skip_unless_possible("shared-memory")
        folder = Path(tempfile.mkdtemp(prefix="paddlecloud-test-", dir="/dev/shm"))
        yield folder
        shutil.rmtree(folder)
    else:
        skip_unless_possible("loop-mount")
        with little_disk(tmp_path, 64 << 20) as folder:
            yield folder


@pytest.fixture
def bench(root: Path) -> Iterator[Bench]:
    bench = Bench(root)
    yield bench
    bench.store.close()


# --- bytes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "size_bytes", [0, 1, 4096, LEAF_BYTES - 1, LEAF_BYTES, LEAF_BYTES + 1, 2 * LEAF_BYTES + 7]
)
def test_gives_back_what_was_put(bench: Bench, size_bytes: int):
    data = os.urandom(size_bytes)
    entry = bench.put("a/b/file", data)
    assert bench.get("a/b/file") == data
    assert (entry.name, entry.size_bytes, entry.digest) == ("file", size_bytes, digest_of(data))
    assert bench.leftovers() == []
    seen = bench.store.entry(ANN, at("a/b/file"), leaves=True)
    assert seen.leaves == tuple(leaves_of(data))
    assert seen.digest == digest_of(data)


def test_makes_files_the_accounts_own_and_never_more_than_executable(bench: Bench):
    bench.put("plain", b"1")
    bench.put("program", b"2", executable=True)
    batch = bench.store.begin_batch(ANN, at("sub"), 1, 1)
    send(batch, "program", b"3", kind=Kind.EXECUTABLE, mtime_ns=1_000_000_007_000_000_000)
    batch.commit()
    modes = {
        name: stat.S_IMODE((bench.home / name).stat().st_mode)
        for name in ("plain", "program", "sub", "sub/program")
    }
    assert modes == {"plain": 0o600, "program": 0o700, "sub": 0o700, "sub/program": 0o700}
    assert (bench.home / "sub/program").stat().st_mtime_ns == 1_000_000_007_000_000_000
    if IS_ROOT:
        owners = {(bench.home / name).stat().st_uid for name in modes}
        assert owners == {ANN.uid}
        assert bench.home.stat().st_uid == ANN.uid


def test_keeps_times_that_are_given(bench: Bench):
    entry = bench.put("old", b"x", mtime_ns=1_234_567_891_000_000_000)
    assert entry.mtime_ns == 1_234_567_891_000_000_000


def test_keeps_a_file_of_more_than_four_gibibytes(bench: Bench):
    size_bytes = (4 << 30) + 5
    (bench.home).mkdir(exist_ok=True)
    bench.put("other", b"makes the home")
    with (bench.home / "huge").open("wb") as file:
        file.truncate(size_bytes)
    if IS_ROOT:
        os.chown(bench.home / "huge", ANN.uid or 0, ANN.uid or 0)
    assert bench.store.entry(ANN, at("huge")).size_bytes == size_bytes
    bench.store.copy(ANN, at("huge"), at("copy"))
    assert (bench.home / "copy").stat().st_size == size_bytes
    assert (bench.home / "copy").stat().st_blocks * 512 < 1 << 20
    with bench.store.open_content(ANN, at("huge")) as content:
        assert content.size_bytes == size_bytes
        assert os.pread(content.fd, 10, size_bytes - 3) == b"\0\0\0"


# --- uploads ---------------------------------------------------------------------------------


def _wish(data: bytes, relative: str = "f", source: str = "laptop") -> UploadWish:
    return UploadWish(at(relative), len(data), source=source)


def test_a_cut_upload_is_found_again_and_lacks_one_leaf_at_most(bench: Bench):
    data = os.urandom(3 * LEAF_BYTES + 100)
    upload = bench.store.begin_upload(ANN, _wish(data))
    receiver = upload.receive(0, len(data))
    receiver.write(data[: 2 * LEAF_BYTES + 5])
    receiver.cut()
    bench.reopen()
    again = bench.store.begin_upload(ANN, _wish(data))
    assert again.id == upload.id
    assert again.received() == list(enumerate(leaves_of(data)[:2]))
    with pytest.raises(MissingLeaves) as error:
        again.commit(digest_of(data))
    assert error.value.to_json()["missing"] == [2, 3]
    receiver = again.receive(2 * LEAF_BYTES, LEAF_BYTES + 100)
    receiver.write(data[2 * LEAF_BYTES :])
    assert receiver.finish() == leaves_of(data)[2:]
    again.commit(digest_of(data))
    assert bench.get("f") == data
    assert bench.leftovers() == []


def test_nothing_is_seen_before_the_commit(bench: Bench):
    bench.put("f", b"old")
    data = b"new and longer"
    upload = bench.store.begin_upload(ANN, _wish(data))
    receiver = upload.receive(0, len(data))
    receiver.write(data)
    receiver.finish()
    assert bench.get("f") == b"old"
    assert bench.names() == ["f"]
    upload.commit(digest_of(data))
    assert bench.get("f") == data


def test_refuses_bytes_that_differ_and_says_where(bench: Bench):
    data = os.urandom(LEAF_BYTES + 10)
    flipped = bytes([data[0] ^ 1]) + data[1:]
    upload = bench.store.begin_upload(ANN, _wish(data))
    receiver = upload.receive(0, len(data))
    receiver.write(flipped)
    receiver.finish()
    with pytest.raises(DifferentLeaves) as error:
        upload.commit(digest_of(data))
    assert error.value.leaves == [leaf.hex() for leaf in leaves_of(flipped)]
    receiver = upload.receive(0, LEAF_BYTES)
    receiver.write(data[:LEAF_BYTES])
    receiver.finish()
    upload.commit(digest_of(data))
    assert bench.get("f") == data


def test_a_commit_can_be_repeated(bench: Bench):
    data = b"once"
    upload = bench.store.begin_upload(ANN, _wish(data))
    upload.receive(0, 4).write(data)
    first = upload.commit(digest_of(data))
    assert bench.store.upload(ANN, upload.id).commit(digest_of(data)) == first


def test_takes_leaves_from_the_file_it_replaces(bench: Bench):
    data = os.urandom(3 * LEAF_BYTES)
    bench.put("f", data)
    changed = data[:LEAF_BYTES] + os.urandom(LEAF_BYTES) + data[2 * LEAF_BYTES :]
    upload = bench.store.begin_upload(ANN, _wish(changed))
    leaves = leaves_of(changed)
    assert upload.reuse([0, 2]) == [(0, leaves[0]), (2, leaves[2])]
    receiver = upload.receive(LEAF_BYTES, LEAF_BYTES)
    receiver.write(changed[LEAF_BYTES : 2 * LEAF_BYTES])
    receiver.finish()
    upload.commit(digest_of(changed))
    assert bench.get("f") == changed


def test_a_newer_connection_takes_over_the_leaves_of_an_older(bench: Bench):
    data = os.urandom(2 * LEAF_BYTES)
    upload = bench.store.begin_upload(ANN, _wish(data))
    dead = upload.receive(0, len(data))
    dead.write(b"\0" * 1000)
    alive = upload.receive(0, len(data))
    alive.write(data)
    with pytest.raises(Conflict):
        dead.write(b"\0" * 1000)
    assert alive.finish() == leaves_of(data)
    upload.commit(digest_of(data))
    assert bench.get("f") == data


@pytest.mark.parametrize(
    ("offset", "length"),
    [(1, 5), (-1, 5), (0, 5), (0, LEAF_BYTES + 1), (LEAF_BYTES * 9, 1), (0, 0)],
)
def test_refuses_a_body_that_is_not_whole_leaves(bench: Bench, offset: int, length: int):
    upload = bench.store.begin_upload(ANN, UploadWish(at("f"), 2 * LEAF_BYTES, source="x"))
    with pytest.raises(InvalidInput):
        upload.receive(offset, length)


def test_lists_and_abandons_unfinished_uploads(bench: Bench):
    upload = bench.store.begin_upload(ANN, _wish(b"12345"))
    (row,) = bench.store.uploads(ANN)
    assert (row.id, row.path, row.size_bytes, row.received_bytes) == (upload.id, str(at("f")), 5, 0)
    assert bench.store.uploads(BOB) == []
    with pytest.raises(NotFound):
        bench.store.upload(BOB, upload.id)
    upload.abandon()
    assert bench.store.uploads(ANN) == []
    assert bench.leftovers() == []


def test_sweeps_uploads_nobody_came_back_for(bench: Bench):
    bench.store.begin_upload(ANN, _wish(b"12345"))
    assert bench.store.sweep() == 0
    assert bench.store.sweep(forgotten_s=-1) == 1
    assert bench.leftovers() == []
    assert bench.used() == (0, 0)


def test_after_a_reboot_believes_only_bytes_it_has_read_again(bench: Bench):
    data = os.urandom(2 * LEAF_BYTES)
    upload = bench.store.begin_upload(ANN, _wish(data))
    receiver = upload.receive(0, len(data))
    receiver.write(data)
    receiver.finish()
    note = next(bench.parts.glob("up-*.json"))
    note.write_text(note.read_text().replace('"boot": "', '"boot": "another-'))
    with next(bench.parts.glob(f"up-{upload.id}")).open("r+b") as file:
        file.write(b"lost by the power cut")
    bench.reopen()
    again = bench.store.begin_upload(ANN, _wish(data))
    assert [index for index, _ in again.received()] == [1]


# --- batches ---------------------------------------------------------------------------------


def test_a_batch_stores_all_with_their_directories(bench: Bench):
    files = {"a": b"1", "sub/b": b"", "sub/deep/c": b"333", "sub/d": b"4" * 5000}
    batch = bench.begin_batch(files, "data")
    batch.directory("empty/one")
    result = batch.commit()
    assert (result.stored, result.size_bytes, result.refused) == (4, 5004, [])
    assert {name: bench.get(f"data/{name}") for name in files} == files
    assert "empty/one" in bench.names("data")
    assert bench.leftovers() == []


def test_a_batch_refuses_what_is_wrong_by_position_and_the_others_stand(bench: Bench):
    bench.store.make_directories(ANN, [at("taken")])
    bench.put("file", b"a file")
    names = ["good", "bad", "../up", "taken", "file/below", "e\u0301", "also good"]
    batch = bench.store.begin_batch(ANN, at(), len(names), 100)
    for name in names:
        send(batch, name, b"x", digest=digest_of(b"y") if name == "bad" else None)
    batch.directory("file")
    batch.directory("taken")
    result = batch.commit()
    assert [index for index, _ in result.refused] == [1, 2, 3, 4, 5, 7]
    assert result.stored == 2
    assert bench.get("good") == bench.get("also good") == b"x"
    assert bench.get("file") == b"a file"
    assert bench.leftovers() == []


def test_a_cut_batch_stores_nothing(bench: Bench):
    batch = bench.begin_batch({"a": b"1", "sub/b": b"2"})
    batch.abandon()
    assert bench.names() == []
    assert bench.leftovers() == []
    assert bench.used() == (0, 0)


def test_a_batch_holds_no_more_than_it_announced(bench: Bench):
    batch = bench.store.begin_batch(ANN, at(), 1, 3)
    send(batch, "a", b"123")
    with pytest.raises(InvalidInput):
        send(batch, "b", b"")
    batch.abandon()
    with pytest.raises(InvalidInput):
        send(bench.store.begin_batch(ANN, at(), 1, 3), "a", b"1234")


def test_blobs_are_called_by_their_digest(bench: Bench):
    batch = bench.store.begin_blobs(ANN, 2, 10)
    send(batch, digest_of(b"right").hex(), b"right")
    send(batch, digest_of(b"other").hex(), b"wrong")
    result = batch.commit()
    assert result.stored == 1
    assert [index for index, _ in result.refused] == [1]


# --- names -----------------------------------------------------------------------------------

NAMES = [
    "with space",
    " leading",
    "trailing ",
    "ünïcödé",
    "日本語",
    "emoji 🎉",
    "x" * 255,
    "é" * 127,
    "-rf",
    "*",
    "a\\b",
    'quote"',
    ".hidden",
    "%2e%2e",
    "line\u2028separator",
]


@pytest.mark.parametrize("name", NAMES)
def test_keeps_any_name(bench: Bench, name: str):
    bench.put(f"{name}/{name}", b"up")
    bench.batch({f"{name}/in a batch {name[:100]}": b"batch"})
    assert bench.names() == [
        name,
        *sorted(f"{name}/{one}" for one in os.listdir(bench.home / name)),
    ]
    assert bench.get(f"{name}/{name}") == b"up"
    assert bench.compare({f"{name}/{name}": b"up"}) == {
        "missing": [],
        "different": [],
        "blocked": [],
    }


def test_keeps_paths_of_four_thousand_bytes(bench: Bench):
    relative = "/".join(["d" * 99] * 39 + ["file"])
    assert len(str(at(relative))) > 3900
    bench.put(relative, b"deep")
    assert bench.get(relative) == b"deep"
    assert bench.batch({relative + "2": b"too"}).stored == 1
    assert bench.names()[-1] == relative + "2"
    assert bench.store.usage(ANN, at()).files == 2
    bench.store.make_directories(ANN, [at("moved")])
    bench.store.move(ANN, at("d" * 99), at("moved/" + "e" * 99))
    assert len(bench.names("moved")) == 41
    (removed,) = bench.store.remove(ANN, [at("moved")], recursive=True)
    assert removed.files == 2
    assert bench.names() == []


def test_a_tree_too_deep_for_one_path_is_listed_counted_and_removed(bench: Bench):
    bench.store.make_directories(ANN, [at("deep")])
    fd = os.open(bench.home / "deep", os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("sub", 0o700, dir_fd=fd)
        below = os.open("sub", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd))
    os.close(fd)
    assert len(bench.names()) == 1502
    usage = bench.store.usage(ANN, at())
    assert (usage.files, usage.directories) == (1, 1501)
    (removed,) = bench.store.remove(ANN, [at("deep")], recursive=True)
    assert removed.files == 1
    assert bench.leftovers() == []


# --- looking ---------------------------------------------------------------------------------


def test_lists_depth_first_in_the_order_of_parts(bench: Bench):
    bench.batch({"a/b": b"", "a-b": b"", "b/z/1": b"", "b/y": b"", "B": b"", "é": b""}, "t")
    assert bench.names("t") == ["B", "a", "a/b", "a-b", "b", "b/y", "b/z", "b/z/1", "é"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_join_to_the_whole_list(bench: Bench, limit: int):
    bench.batch({f"{a}/{b}": b"" for a in "abc" for b in ("x", "y", "z-", "z")} | {"d": b""})
    (bench.home / "b" / "link").symlink_to("/etc")
    os.mkfifo(bench.home / "c" / "pipe")
    whole = bench.names()
    joined: list[str] = []
    after, left_out = "", 0
    while True:
        page = bench.store.entries(ANN, at(), recursive=True, after=after, limit=limit)
        joined += [entry.name for entry in page.entries]
        left_out += page.left_out
        assert len(page.entries) <= limit
        if page.next is None:
            break
        after = page.next
        assert after == joined[-1]
    assert joined == whole
    assert left_out == 2


@pytest.mark.slow
@pytest.mark.parametrize("root", ["memory"], indirect=True)
def test_lists_a_folder_of_a_hundred_thousand(bench: Bench):
    bench.store.make_directories(ANN, [at("many")])
    fd = os.open(bench.home / "many", os.O_RDONLY)
    for number in range(100_000):
        os.close(os.open(f"{number}", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd))
    os.close(fd)
    names: list[str] = []
    after: str | None = ""
    while after is not None:
        page = bench.store.entries(ANN, at("many"), after=after, limit=10_000)
        names += [entry.name for entry in page.entries]
        after = page.next
    assert names == sorted(map(str, range(100_000)))


def test_counts_but_never_shows_what_cannot_be_asked_for(bench: Bench):
    bench.put("good", b"1")
    home = os.fsencode(bench.home)
    for raw in (b"\xff\xfe", "e\u0301".encode(), b"new\nline", b"\x7f"):
        with open(home + b"/" + raw, "wb"):
            pass
    os.symlink("good", bench.home / "link")
    page = bench.store.entries(ANN, at())
    assert [entry.name for entry in page.entries] == ["good"]
    assert page.left_out == 5
    assert bench.store.usage(ANN, at()).files == 6


def test_a_file_is_listed_as_itself(bench: Bench):
    bench.put("sub/f", b"123")
    (entry,) = bench.store.entries(ANN, at("sub/f"), digests=True).entries
    assert (entry.name, entry.size_bytes, entry.type) == ("f", 3, "file")


@pytest.mark.parametrize("path", ["nothing", "file/below", "nothing/below"])
def test_says_what_is_not_there(bench: Bench, path: str):
    bench.put("file", b"")
    calls: list[Callable[[], object]] = [
        lambda: bench.store.entry(ANN, at(path)),
        lambda: bench.store.entries(ANN, at(path)),
        lambda: bench.store.open_content(ANN, at(path)),
        lambda: bench.store.usage(ANN, at(path)),
        lambda: bench.store.move(ANN, at(path), at("target")),
        lambda: bench.store.copy(ANN, at(path), at("target")),
        lambda: bench.store.remove(ANN, [at(path)]),
    ]
    for call in calls:
        with pytest.raises(NotFound):
            call()
    assert bench.store.remove(ANN, [at(path)], missing_ok=True) == []


def test_compares_by_content(bench: Bench):
    bench.batch({"same": b"1", "sub/same": b"22", "size": b"333", "bytes": b"4444"})
    bench.store.make_directories(ANN, [at("directory")])
    (bench.home / "link").symlink_to("same")
    wanted = {
        "same": b"1",
        "sub/same": b"22",
        "size": b"3333",
        "bytes": b"444x",
        "missing": b"",
        "no/such": b"",
        "directory": b"",
        "link": b"1",
        "same/below": b"",
    }
    assert bench.compare(wanted) == {"missing": [4, 5], "different": [2, 3], "blocked": [6, 7, 8]}


def test_compares_what_a_job_wrote_and_rewrote(bench: Bench):
    bench.put("f", b"first")
    for data in (b"fir5t", b"third", b"first"):
        with (bench.home / "f").open("r+b") as file:
            file.write(data)
        assert bench.compare({"f": data})["different"] == []
        for other in {b"first", b"fir5t", b"third"} - {data}:
            assert bench.compare({"f": other})["different"] == [0]


def test_an_etag_stands_for_one_state(bench: Bench):
    bench.put("f", b"1")
    with bench.store.open_content(ANN, at("f")) as one:
        first = one.etag
    (bench.home / "f").write_bytes(b"2")
    with bench.store.open_content(ANN, at("f")) as one:
        assert one.etag != first
    assert first.startswith('"')


def test_finds_bytes_that_rotted(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    bench.put("f", b"good")
    path = at("f")
    assert bench.store.entry(ANN, path, verify=True).digest == digest_of(b"good")
    known = bench.store.index.get((bench.home / "f").stat())
    if not bench.store.promises.times.mapped_writes_show:
        assert known is None  # nothing is believed where a change may not show
        return
    # The same inode, size and times, other bytes.
    bench.store.index.learn((bench.home / "f").stat(), leaves_of(b"rott"))
    with pytest.raises(Conflict, match="without a write"):
        bench.store.entry(ANN, path, verify=True)
    assert bench.store.entry(ANN, path, digest=True).digest == digest_of(b"good")


# --- changing --------------------------------------------------------------------------------


def test_moves_files_and_directories(bench: Bench):
    bench.batch({"d/1": b"1", "d/2": b"2", "f": b"f", "other": b"old"})
    bench.store.move(ANN, at("d"), at("new/place"))
    assert bench.names() == ["f", "new", "new/place", "new/place/1", "new/place/2", "other"]
    with pytest.raises(Conflict):
        bench.store.move(ANN, at("f"), at("other"))
    with pytest.raises(Conflict):
        bench.store.move(ANN, at("f"), at("new"), replace=True)
    entry = bench.store.move(ANN, at("f"), at("other"), replace=True)
    assert entry.name == "other"
    assert bench.get("other") == b"f"
    assert bench.used() == (3, 3)
    with pytest.raises(InvalidInput):
        bench.store.move(ANN, at("new"), at("new/place/below"))


def test_moves_between_two_deep_places(bench: Bench):
    one, other = ("/".join([name] * 300) for name in ("a", "b"))
    bench.batch({f"{one}/f": b"deep", f"{other}/g": b"too"})
    bench.store.move(ANN, at(f"{one}/f"), at(f"{other}/f"))
    assert bench.get(f"{other}/f") == b"deep"
    bench.store.copy(ANN, at(f"{other}/f"), at(f"{one}/g"))
    assert bench.get(f"{one}/g") == b"deep"


def test_removes_all_or_refuses_before_the_first(bench: Bench):
    bench.batch({"d/1": b"1", "d/sub/2": b"22", "f": b"f"})
    with pytest.raises(Conflict, match="can't del directory:"):
        bench.store.remove(ANN, [at("f"), at("d")])
    with pytest.raises(NotFound):
        bench.store.remove(ANN, [at("f"), at("nothing")])
    assert bench.get("f") == b"f"
    removed = bench.store.remove(ANN, [at("f"), at("d")], recursive=True)
    assert [row.to_json() for row in removed] == [
        {"path": str(at("f")), "files": 1, "bytes": 1},
        {"path": str(at("d")), "files": 2, "bytes": 3},
    ]
    assert bench.names() == []
    assert bench.used() == (0, 0)
    with pytest.raises(InvalidInput):
        bench.store.remove(ANN, [at()], recursive=True)


def test_removes_a_link_and_not_what_it_points_to(bench: Bench):
    bench.put("target/f", b"1")
    (bench.home / "link").symlink_to("target")
    bench.store.remove(ANN, [at("link")], recursive=True)
    assert bench.names() == ["target", "target/f"]


def test_copies_files_trees_and_public_data(bench: Bench):
    bench.batch({"d/1": b"1", "d/sub/2": b"22"})
    bench.put("program", b"p", executable=True)
    (bench.home / "d" / "link").symlink_to("/etc/passwd")
    assert bench.store.copy(ANN, at("d"), at("copy/here"), recursive=True).to_json() == {
        "files": 2,
        "bytes": 3,
    }
    assert bench.names("copy") == ["here", "here/1", "here/sub", "here/sub/2"]
    bench.store.copy(ANN, at("program"), at("copy/program"))
    assert bench.store.entry(ANN, at("copy/program")).executable
    (bench.root / "public" / "common").write_bytes(b"for all")
    source = PfsPath.parse("/pfs/local/public/common")
    bench.store.copy(ANN, source, at("mine"))
    assert bench.get("mine") == b"for all"
    with pytest.raises(Conflict):
        bench.store.copy(ANN, source, at("mine"))
    with pytest.raises(InvalidInput):
        bench.store.copy(ANN, at("d"), at("elsewhere"))
    with pytest.raises(InvalidInput):
        bench.store.copy(ANN, at("d"), at("d/below"), recursive=True)
    assert bench.used() == (1 + 2 + 1 + 1 + 2 + 1 + 7, 8)


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


# --- two at once -----------------------------------------------------------------------------


def test_of_two_writers_one_wins_whole_and_readers_never_see_a_mix(bench: Bench):
    size_bytes = LEAF_BYTES + 1000
    contents = [bytes([letter]) * size_bytes for letter in b"ab"]
    bench.put("f", contents[0])
    stop = threading.Event()
    mixes: list[bytes] = []

    def read() -> None:
        while not stop.is_set():
            data = bench.get("f")
            if data not in contents:
                mixes.append(data[:10])

    def write(data: bytes) -> None:
        for _ in range(5):
            bench.put("f", data)

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(data,)) for data in contents]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    reader.join()
    assert mixes == []
    assert bench.get("f") in contents


def test_a_second_server_of_one_root_is_refused(bench: Bench):
    with pytest.raises(PaddleCloudError, match="already serves"):
        Bench(bench.root)


def test_a_stream_takes_its_name_when_it_is_whole(bench: Bench):
    bench.who = who = owner(limit_bytes=LEAF_BYTES + 100)
    data = os.urandom(LEAF_BYTES + 50)
    stream = bench.store.begin_stream(who, at("sub/f"))
    for n in range(0, len(data), 70_000):
        stream.write(data[n : n + 70_000])
    assert bench.names() == []
    assert stream.commit().digest == combine(leaves_of(data))
    assert bench.get("sub/f") == data
    assert bench.used() == (len(data), 1)
    stream = bench.store.begin_stream(who, at("g"))
    stream.write(b"x" * 50)
    with pytest.raises(QuotaExceeded):
        stream.write(b"x")
    stream.abandon()
    assert bench.used() == (len(data), 1)
    assert bench.leftovers() == []


def test_a_decomposed_name_is_the_composed_one_in_a_path(bench: Bench):
    bench.put("é", b"1")
    assert bench.get(unicodedata.normalize("NFD", "é")) == b"1"
