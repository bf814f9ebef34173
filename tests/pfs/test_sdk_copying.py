"""`Files` against a real file service: every direction, every rule of what goes where."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.core.errors import (
    Conflict,
    InvalidInput,
    NotAllowed,
    NotFound,
    OutOfSpace,
)
from paddlecloud.sdk.pfs import Files
from paddlecloud.sdk.transfers import uploading
from paddlecloud.sdk.transfers.events import Event, FileDone, Moved, Note, Planned, Summary
from paddlecloud.sdk.transfers.local_files import leaf_pieces
from paddlecloud.wire.digests import LEAF_BYTES
from tests.pfs.sdk_service import HOME, Service

pytestmark = [pytest.mark.e2e]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    started = Service(tmp_path_factory.mktemp("service"))
    yield started
    started.close()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def files(service: Service) -> Files:
    return service.client().files


@pytest.fixture
def base(files: Files, tmp_path: Path) -> str:
    """A directory of the test's own on the server."""
    path = f"{HOME}/{tmp_path.name}"
    files.make_directories([path])
    return path


@pytest.fixture
def stored(service: Service, base: str) -> Path:
    return service.stored(base.rpartition("/")[2])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Small, empty, hidden, executable, oddly named and large files; an empty folder."""
    root = tmp_path / "tree"
    source = random.Random(1)
    contents = {
        "a.txt": 10,
        ".hidden": 3,
        "empty": 0,
        "sub/deep/er/x": 5000,
        "sub/run.sh": 20,
        "a name with blanks % and ?": 7,
        "ünï/ço∂é": 9,
        "n" * 255: 4,
        "leaf": LEAF_BYTES,
        "more": 2 * LEAF_BYTES + 1,
    }
    for name, size_bytes in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.randbytes(size_bytes))
    (root / "sub/run.sh").chmod(0o755)
    (root / "nothing" / "here").mkdir(parents=True)
    return root


def listing(root: Path) -> dict[str, bytes | None]:
    """Everything below: the bytes of files, None for directories."""
    return {
        str(path.relative_to(root)): None if path.is_dir() else path.read_bytes()
        for path in root.rglob("*")
    }


def done(events: list[Event]) -> list[tuple[str, str]]:
    return sorted((e.action, e.target or e.source) for e in events if isinstance(e, FileDone))


def check(summary: Summary) -> Summary:
    assert summary.failures == []
    return summary


# --- there and back ------------------------------------------------------------------------------


def test_a_tree_goes_there_and_back(
    files: Files, base: str, stored: Path, tree: Path, tmp_path: Path
) -> None:
    events: list[Event] = []
    summary = check(files.copy([str(tree)], base, recursive=True, on_event=events.append))
    assert listing(stored / "tree") == listing(tree)
    assert (stored / "tree/sub/run.sh").stat().st_mode & 0o100
    assert not (stored / "tree/a.txt").stat().st_mode & 0o100
    total = sum(len(data) for data in listing(tree).values() if data)
    assert (summary.files, summary.size_bytes, summary.sent_bytes) == (10, total, total)
    assert sum(e.n_bytes for e in events if isinstance(e, Moved)) == total
    assert len(done(events)) == 10
    check(files.copy([f"{base}/tree"], str(tmp_path / "back"), recursive=True))
    assert listing(tmp_path / "back/tree") == listing(tree)
    assert (tmp_path / "back/tree/sub/run.sh").stat().st_mode & 0o100
    assert not (tmp_path / "back/tree/a.txt").stat().st_mode & 0o100


def test_nothing_travels_when_nothing_changed(
    files: Files, base: str, tree: Path, tmp_path: Path
) -> None:
    files.copy([f"{tree}/"], base, recursive=True)
    files.copy([f"{base}/"], str(tmp_path / "back"), recursive=True)
    for source, target in ((f"{tree}/", base), (f"{base}/", str(tmp_path / "back"))):
        events: list[Event] = []
        summary = files.copy(
            [source], target, recursive=True, on_event=events.append, tell_same=True
        )
        assert (summary.sent_bytes, summary.sent_files, summary.same_files) == (0, 0, 10)
        assert {action for action, _ in done(events)} == {"same"}


def test_only_the_changed_parts_of_a_large_file_travel(
    files: Files, base: str, stored: Path, tmp_path: Path
) -> None:
    data = bytearray(random.Random(2).randbytes(5 * LEAF_BYTES + 100))
    (tmp_path / "f").write_bytes(data)
    files.copy([str(tmp_path / "f")], f"{base}/")
    files.copy([f"{base}/f"], str(tmp_path / "back"))
    data[LEAF_BYTES + 3] ^= 1
    data += b"appended"
    (tmp_path / "f").write_bytes(data)
    summary = check(files.copy([str(tmp_path / "f")], f"{base}/"))
    assert summary.sent_bytes == LEAF_BYTES + 108
    assert (stored / "f").read_bytes() == data
    summary = check(files.copy([f"{base}/f"], str(tmp_path / "back")))
    assert summary.sent_bytes == LEAF_BYTES + 108
    assert (tmp_path / "back").read_bytes() == data
    assert [p.name for p in tmp_path.iterdir() if p.name.endswith("pfs-part")] == []


@pytest.mark.parametrize("size_bytes", [5, LEAF_BYTES + 5])
def test_times_are_kept_when_asked_for(
    files: Files, base: str, stored: Path, tmp_path: Path, size_bytes: int
) -> None:
    (tmp_path / "f").write_bytes(bytes(size_bytes))
    when_ns = 1_500_000_000_123_456_789
    os.utime(tmp_path / "f", ns=(when_ns, when_ns))
    files.copy([str(tmp_path / "f")], f"{base}/kept", preserve_times=True)
    files.copy([str(tmp_path / "f")], f"{base}/new")
    assert (stored / "kept").stat().st_mtime_ns == when_ns
    assert (stored / "new").stat().st_mtime_ns > when_ns
    files.copy([f"{base}/kept"], str(tmp_path / "g"), preserve_times=True)
    files.copy([f"{base}/kept"], str(tmp_path / "h"))
    assert (tmp_path / "g").stat().st_mtime_ns == when_ns
    assert (tmp_path / "h").stat().st_mtime_ns > when_ns


@pytest.mark.parametrize("many", [1, 40])
def test_a_changed_mode_or_time_travels_without_the_bytes(
    files: Files, base: str, stored: Path, tmp_path: Path, many: int
) -> None:
    one = tmp_path / "one"
    one.mkdir()
    for number in range(many):
        (one / f"f{number}").write_bytes(bytes(5))
    (one / "large").write_bytes(bytes(LEAF_BYTES + 5))
    files.copy([f"{one}/"], base, recursive=True)
    files.copy([f"{base}/"], str(tmp_path / "two"), recursive=True)
    for path in one.iterdir():
        path.chmod(0o755)
        os.utime(path, (5, 5))
    check(files.sync(f"{one}/", base))
    assert all(path.stat().st_mode & 0o100 for path in stored.iterdir())
    assert all(path.stat().st_mtime != 5 for path in stored.iterdir())
    summary = check(files.sync(f"{one}/", base, preserve_times=True))
    assert all(path.stat().st_mtime == 5 for path in stored.iterdir())
    assert summary.sent_bytes == many * 5
    summary = check(files.sync(f"{base}/", str(tmp_path / "two"), preserve_times=True))
    assert summary.sent_bytes == 0
    assert all(path.stat().st_mode & 0o100 for path in (tmp_path / "two").iterdir())
    assert all(path.stat().st_mtime == 5 for path in (tmp_path / "two").iterdir())
    assert files.sync(f"{one}/", base, preserve_times=True).sent_files == 0


@pytest.mark.parametrize("is_up", [True, False])
@pytest.mark.parametrize("size_bytes", [5, LEAF_BYTES + 5])
@pytest.mark.parametrize("replace", ["changed", "always", "never"])
def test_what_is_there_is_replaced_or_not(
    files: Files,
    base: str,
    stored: Path,
    tmp_path: Path,
    is_up: bool,
    size_bytes: int,
    replace: str,
) -> None:
    new = random.Random(3).randbytes(size_bytes)
    old = random.Random(4).randbytes(size_bytes)
    here, there = (tmp_path / "f", stored / "f") if is_up else (stored / "f", tmp_path / "f")
    here.write_bytes(new)
    there.write_bytes(old)
    source, target = str(tmp_path / "f"), f"{base}/f"
    if not is_up:
        source, target = target, source
    summary = check(files.copy([source], target, replace=replace))  # type: ignore[arg-type]
    assert there.read_bytes() == (old if replace == "never" else new)
    assert summary.skipped_files == (1 if replace == "never" else 0)
    summary = check(files.copy([source], target, replace=replace))  # type: ignore[arg-type]
    assert summary.sent_bytes == (size_bytes if replace == "always" else 0)


# --- within /pfs ---------------------------------------------------------------------------------


def test_the_server_copies_within_pfs(files: Files, base: str, stored: Path, tree: Path) -> None:
    files.copy([f"{tree}/"], f"{base}/one", recursive=True)
    summary = check(files.copy([f"{base}/one"], f"{base}/two", recursive=True))
    assert summary.sent_bytes == 0
    assert listing(stored / "two/one") == listing(tree)
    summary = check(files.copy([f"{base}/one"], f"{base}/two", recursive=True))
    assert summary.same_files == 10
    with pytest.raises(Conflict, match="into itself"):
        files.copy([f"{base}/one"], f"{base}/one/deeper", recursive=True)


# --- sources -------------------------------------------------------------------------------------


def test_several_sources_and_patterns(
    files: Files, base: str, stored: Path, tmp_path: Path
) -> None:
    for name in ("a.txt", "b.txt", "c.bin", ".d.txt"):
        (tmp_path / name).write_text(name)
    files.copy([str(tmp_path / "*.txt"), str(tmp_path / "c.bin")], f"{base}/in")
    assert sorted(os.listdir(stored / "in")) == ["a.txt", "b.txt", "c.bin"]
    assert files.expand(f"{base}/*/?.txt") == [f"{base}/in/a.txt", f"{base}/in/b.txt"]
    files.copy([f"{base}/in/*.txt"], str(tmp_path / "got"))
    assert sorted(os.listdir(tmp_path / "got")) == ["a.txt", "b.txt"]
    with pytest.raises(NotFound, match="nothing matches"):
        files.copy([f"{base}/in/*.nope"], str(tmp_path / "got"))
    with pytest.raises(NotFound, match="nothing matches"):
        files.copy([str(tmp_path / "*.nope")], base)


def test_two_sources_that_would_be_one_file_are_both_refused(
    files: Files, base: str, stored: Path, tmp_path: Path
) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f").write_text(folder)
    (tmp_path / "g").write_text("g")
    sources = [str(tmp_path / "one/f"), str(tmp_path / "two/f"), str(tmp_path / "g")]
    summary = files.copy(sources, base)
    assert [path for path, _ in summary.failures] == sources[:2]
    assert os.listdir(stored) == ["g"]


@pytest.mark.parametrize(
    ("sources", "target", "recursive", "error", "says"),
    [
        (["/nowhere/f"], "{base}", False, NotFound, "does not exist"),
        (["{base}/missing"], "{tmp}/x", False, NotFound, ""),
        (["{tmp}"], "{base}", False, InvalidInput, "is a folder"),
        (["{base}"], "{tmp}/x", False, InvalidInput, "is a folder"),
        (["{tmp}", "{base}"], "{base}", True, InvalidInput, "all local or all under"),
        (["{tmp}"], "{tmp}/x", True, InvalidInput, "one side must be under /pfs"),
        ([], "{base}", True, InvalidInput, "at least one source"),
        (["{tmp}"], "/pfs/local/home/alice/../bob", True, InvalidInput, ".."),
        (["{tmp}"], "/pfs/local/public/x", True, NotAllowed, ""),
        (["{tmp}"], "/pfs/local/home/bob/x", True, NotAllowed, ""),
    ],
)
def test_what_cannot_be_is_said_before_anything_moves(
    files: Files,
    base: str,
    tmp_path: Path,
    sources: list[str],
    target: str,
    recursive: bool,
    error: type[Exception],
    says: str,
) -> None:
    (tmp_path / "f").write_text("x")
    sources = [source.format(base=base, tmp=tmp_path) for source in sources]
    with pytest.raises(error) as caught:
        files.copy(sources, target.format(base=base, tmp=tmp_path), recursive=recursive)
    assert says in str(caught.value)


def test_a_directory_in_the_place_of_a_file_is_a_failure_of_that_file(
    files: Files, base: str, stored: Path, tmp_path: Path
) -> None:
    (tmp_path / "src").mkdir()
    for name in ("ok", "taken"):
        (tmp_path / "src" / name).write_text(name)
    (stored / "taken").mkdir()
    summary = files.copy([f"{tmp_path}/src/"], base, recursive=True)
    [(path, error)] = summary.failures
    assert (path, type(error)) == (str(tmp_path / "src/taken"), Conflict)
    assert (stored / "ok").read_text() == "ok"
    (tmp_path / "back" / "ok").mkdir(parents=True)
    summary = files.copy([f"{base}/"], str(tmp_path / "back"), recursive=True)
    [(path, error)] = summary.failures
    assert (path, type(error)) == (f"{base}/ok", Conflict)


def test_links_are_left_out_and_noted(
    files: Files, base: str, stored: Path, tmp_path: Path
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/f").write_text("x")
    (tmp_path / "src/link").symlink_to("/etc/passwd")
    events: list[Event] = []
    files.copy([f"{tmp_path}/src/"], base, recursive=True, on_event=events.append)
    assert os.listdir(stored) == ["f"]
    assert any("symbolic link" in event.text for event in events if isinstance(event, Note))


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

    def meddling(*args: object) -> Iterator[memoryview]:
        for piece in leaf_pieces(*args):  # type: ignore[arg-type]
            yield piece
            if (data := next(changes, None)) is not None:
                path.write_bytes(data)

    monkeypatch.setattr(uploading, "leaf_pieces", meddling)
    check(files.copy([str(path)], f"{base}/"))
    assert (stored / "f").read_bytes() == final
    assert files.uploads() == []


def test_a_file_that_keeps_changing_is_reported_by_name(
    files: Files, base: str, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    path.write_bytes(bytes(2 * LEAF_BYTES))
    numbers = iter(range(1, 1000))

    def meddling(*args: object) -> Iterator[memoryview]:
        for piece in leaf_pieces(*args):  # type: ignore[arg-type]
            yield piece
            os.utime(path, (next(numbers), 5))

    monkeypatch.setattr(uploading, "leaf_pieces", meddling)

    def always_new(*args: object) -> Iterator[memoryview]:
        for piece in leaf_pieces(*args):  # type: ignore[arg-type]
            yield piece
            stamp = next(numbers)
            os.utime(path, (stamp, stamp))

    monkeypatch.setattr(uploading, "leaf_pieces", always_new)
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

    before = threading.active_count()
    with pytest.raises(Stop):
        files.copy([str(tmp_path / "f")], f"{base}/", on_event=interrupt)
    assert threading.active_count() <= before
    assert os.listdir(stored) == []
    summary = check(service.client().files.copy([str(tmp_path / "f")], f"{base}/"))
    assert summary.sent_bytes <= size_bytes - (40 << 20) + 4 * LEAF_BYTES
    assert (stored / "f").read_bytes() == (tmp_path / "f").read_bytes()


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
