"""`Files` against a real file service: every direction, every rule of what goes where."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from paddlecloud.core.errors import (
    Conflict,
    InvalidInput,
    NotAllowed,
    NotFound,
)
from paddlecloud.sdk.pfs import Files
from paddlecloud.sdk.transfers import page_cache
from paddlecloud.sdk.transfers.events import Event, Moved, Note
from paddlecloud.wire.digests import LEAF_BYTES
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
from tests.pfs.sdk_service import HOME, Service

__all__ = ["base", "files", "own_cache", "service", "stored", "tree"]  # fixtures


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


@pytest.fixture
def let_go(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What the system was told not to keep in memory, with limits for files of a test's size."""
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(page_cache, "LARGE_BYTES", len(LARGE))
    monkeypatch.setattr(page_cache, "STEP_BYTES", LEAF_BYTES)
    monkeypatch.setattr(
        os, "posix_fadvise", lambda fd, offset, length, advice: told.append((offset, length))
    )
    return told


LARGE = random.Random(3).randbytes(5 * LEAF_BYTES)
BEHIND = [(0, LEAF_BYTES), *((n * LEAF_BYTES, 2 * LEAF_BYTES) for n in range(4))]


@pytest.mark.parametrize(("data", "told"), [(LARGE, BEHIND), (LARGE[1:], [])])
def test_only_a_large_download_is_let_go_behind_itself(
    files: Files, base: str, stored: Path, tmp_path: Path, let_go: list, data: bytes, told: list
) -> None:
    (stored / "large").write_bytes(data)
    check(files.copy([f"{base}/large"], str(tmp_path / "back")))
    assert (tmp_path / "back").read_bytes() == data
    assert let_go == told


@pytest.mark.parametrize(
    ("data", "is_held", "told"),
    [(LARGE, False, BEHIND), (LARGE, True, []), (LARGE[1:], False, [])],
)
def test_a_large_file_to_send_stays_in_memory_only_if_it_was_there(
    files: Files,
    base: str,
    stored: Path,
    tmp_path: Path,
    let_go: list,
    monkeypatch: pytest.MonkeyPatch,
    data: bytes,
    is_held: bool,
    told: list,
) -> None:
    monkeypatch.setattr(page_cache, "is_held", lambda *part: is_held)
    (tmp_path / "large").write_bytes(data)
    check(files.copy([str(tmp_path / "large")], f"{base}/"))
    assert (stored / "large").read_bytes() == data
    assert let_go == told


@pytest.mark.needs("linux")
def test_what_was_just_written_is_in_memory(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(LARGE)
    with open(tmp_path / "f", "rb") as file:
        assert page_cache.is_held(file.fileno(), 0, len(LARGE))


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


def test_a_folder_called_like_the_home_goes_into_it(
    files: Files, service: Service, tmp_path: Path
) -> None:
    (tmp_path / "alice").mkdir()
    (tmp_path / "alice/f").write_text("x")
    for target in (HOME, HOME + "/"):
        check(files.copy([str(tmp_path / "alice")], target, recursive=True))
    assert service.stored("alice/f").read_text() == "x"
    assert not service.stored("f").exists()
    files.remove([f"{HOME}/alice"], recursive=True)


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


def test_more_empty_folders_than_one_request_can_name_are_made(
    files: Files, base: str, stored: Path, tmp_path: Path
) -> None:
    names = {"é" * 120 + str(number) for number in range(1_800)}
    for name in names:
        (tmp_path / "src" / name).mkdir(parents=True)
    check(files.copy([f"{tmp_path}/src/"], f"{base}/t", recursive=True))
    assert set(os.listdir(stored / "t")) == names
