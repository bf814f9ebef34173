"""What every file store promises about trees: any name, lists, moves, copies, removals."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest

from paddlecloud.core.errors import (
    Conflict,
    InvalidInput,
    NotFound,
)
from paddlecloud.wire.pfspath import PfsPath
from tests.patience import PATIENCE_S
from tests.storing import (
    ANN,
    Bench,
    at,
    digest_of,
    leaves_of,
)

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
    for _ in range(3000):
        os.mkdir("sub", 0o700, dir_fd=fd)
        below = os.open("sub", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd))
    os.close(fd)
    # What no path can name is not listed, but it takes room.
    assert len(bench.names()) == 2049
    usage = bench.store.usage(ANN, at())
    assert (usage.files, usage.directories) == (1, 3001)
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


def knows_folder(bench: Bench, folder: str, files: dict[str, bytes]) -> bool:
    """Put them there. A store that can tell a file's states apart knows them, at the latest when
    its clock has moved on since they were written; another one never does."""
    below = {f"{folder}/{name}": data for name, data in files.items()}
    bench.batch(below)
    if not bench.store.digests.times.mapped_writes_show:
        assert not bench.has_folder(folder, files)
        return False
    until_s = time.monotonic() + PATIENCE_S
    while not bench.has_folder(folder, files):
        assert time.monotonic() < until_s
        assert bench.compare(below)["different"] == []
    return True


def test_knows_a_folder_by_all_its_files_at_once(bench: Bench):
    files = {f"f{n}": bytes([n]) * n for n in range(20)}
    if not knows_folder(bench, "sub", files):
        return
    bench.put("sub/deeper/f", b"not directly in it")
    for _ in range(2):  # from the files, then as one
        assert bench.has_folder("sub", files)
        assert not bench.has_folder("sub", {**files, "f1": b"x"})
        assert not bench.has_folder("sub", {**files, "more": b""})
        assert not bench.has_folder("sub", {k: v for k, v in files.items() if k != "f3"})
        assert not bench.has_folder("sub", files, executable=True)
        assert not bench.has_folder("other", files)
        assert not bench.has_folder("sub/f1", files)
    bench.reopen()
    assert bench.has_folder("sub", files)


@pytest.mark.parametrize("change", ["bytes", "name", "gone", "new", "mode", "link"])
def test_a_folder_is_another_as_soon_as_a_job_touches_it(bench: Bench, change: str):
    files = {f"f{n}": bytes([n]) * 5 for n in range(10)}
    if not knows_folder(bench, "sub", files):
        return
    folder = bench.home / "sub"
    if change == "bytes":
        with (folder / "f4").open("r+b") as file:
            file.write(b"other")
    elif change == "name":
        (folder / "f4").rename(folder / "g4")
    elif change == "gone":
        (folder / "f4").unlink()
    elif change == "new":
        (folder / "f99").write_bytes(b"")
    elif change == "mode":
        (folder / "f4").chmod(0o755)
    else:
        (folder / "f4").unlink()
        (folder / "f4").symlink_to("f5")
    assert not bench.has_folder("sub", files)


def test_a_folder_of_files_nobody_has_read_is_asked_about_one_by_one(bench: Bench):
    (bench.home / "sub").mkdir(parents=True)
    files = {f"f{n}": b"by a job" for n in range(8)}
    for name, data in files.items():
        (bench.home / "sub" / name).write_bytes(data)
    assert not bench.has_folder("sub", files)
    assert bench.compare({f"sub/{name}": data for name, data in files.items()})["different"] == []


def test_an_etag_stands_for_one_state(bench: Bench):
    bench.put("f", b"1")
    with bench.store.open_content(ANN, at("f")) as one:
        first = one.etag
    (bench.home / "f").write_bytes(b"2")
    with bench.store.open_content(ANN, at("f")) as one:
        assert one.etag != first
    assert first.startswith('"')
    etags = set()
    for _ in range(2):
        with bench.store.open_content(ANN, at("f")) as one:
            etags.add(one.etag)
    # Where times are coarse, a file just written gets a new one each time.
    assert len(etags) == 1 or bench.store.promises.times.tick_ns


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
