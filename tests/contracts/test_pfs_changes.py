"""Names that change: moves onto themselves, removals that meet, room while a copy is under way."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from paddlecloud.core.errors import InvalidInput, QuotaExceeded
from paddlecloud.pfs.shapes import UploadWish
from paddlecloud.pfs.store import Store
from paddlecloud.wire.digests import LEAF_BYTES
from paddlecloud.wire.pfspath import PfsPath
from tests.patience import PATIENCE_S
from tests.storing import ANN, IS_ROOT, Bench, at, digest_of, owner

# --- moving ------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["g", "sub/f"])
def test_a_move_between_two_names_of_one_file_leaves_the_new_one(bench: Bench, target: str):
    bench.put("f", b"data")
    bench.put("sub/other", b"x")
    os.link(bench.home / "f", bench.home / target)
    bench.store.sweep()
    assert bench.used() == (9, 3)
    bench.store.move(ANN, at("f"), at(target), replace=True)
    assert not (bench.home / "f").exists()
    assert bench.get(target) == b"data"
    assert bench.used() == (5, 2)
    bench.store.sweep()
    assert bench.used() == (5, 2)


def test_a_name_in_another_spelling_is_no_second_name(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    """On a storage that does not tell F from f, both are found, and there is one."""
    bench.put("f", b"data")
    assert bench.used() == (4, 1)
    real = os.stat

    def stat(path: str, **keywords: int) -> os.stat_result:
        try:
            return real(path, **keywords)  # type: ignore[arg-type]
        except FileNotFoundError:
            return real(path.swapcase(), **keywords)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", stat)
        bench.store.move(ANN, at("f"), at("F"), replace=True)
    assert bench.names() == ["F"]
    assert bench.get("F") == b"data"
    assert bench.used() == (4, 1)


@pytest.mark.parametrize("recursive", [False, True])
def test_refuses_a_move_or_copy_into_itself_by_way_of_another_datacenter(
    root: Path, recursive: bool
):
    here, there = (PfsPath.parse(f"/pfs/{name}/home/ann/m") for name in ("a", "b"))
    with Store(root, ["a", "b"]) as store:
        store.make_directories(ANN, [here])
        for change in (store.move, store.copy):
            keywords = {"recursive": True} if change == store.copy else {}
            target = there.child("x").child("y") if recursive else there.child("x")
            with pytest.raises(InvalidInput, match="lies in") as error:
                change(ANN, here, target, **keywords)  # type: ignore[operator]
            assert error.value.field == "to"
        assert [entry.name for entry in store.entries(ANN, here.root).entries] == ["m"]
        assert store.move(ANN, here, there).name == "m"  # the same place: nothing to do


# --- removing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("missing_ok", [True, False])
def test_what_lies_in_a_removed_folder_is_removed_with_it(bench: Bench, missing_ok: bool):
    bench.batch({"d/x": b"1", "d/sub/y": b"22"})
    told = bench.store.remove(
        ANN, [at("d"), at("d/x"), at("d/sub"), at("d")], recursive=True, missing_ok=missing_ok
    )
    assert [(row.files, row.size_bytes) for row in told] == [(2, 3), (0, 0), (0, 0), (0, 0)]
    assert bench.names() == []
    assert bench.used() == (0, 0)


@pytest.mark.parametrize("becomes", ["nothing", "a file"])
def test_a_removal_somebody_else_was_faster_with_is_no_error(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, becomes: str
):
    bench.put("d/f", b"data")
    check = bench.store._changes._check_removal

    def check_and_lose(*args: object) -> object:
        found = check(*args)  # type: ignore[arg-type]
        (bench.home / "d" / "f").unlink()
        (bench.home / "d").rmdir()
        if becomes == "a file":
            (bench.home / "d").write_bytes(b"")
        return found

    monkeypatch.setattr(bench.store._changes, "_check_removal", check_and_lose)
    (row,) = bench.store.remove(ANN, [at("d/f")], missing_ok=True)
    assert (row.files, row.size_bytes) == (0, 0)


# --- room and time -----------------------------------------------------------------------------


def test_a_copy_holds_no_room_for_what_has_its_name_already(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    bench.who = who = owner(limit_bytes=10_000, limit_files=100)
    bench.batch({f"d/{name}": b"x" * 1000 for name in "abcd"})
    monkeypatch.setattr("paddlecloud.pfs.copying._GROUP_FILES", 1)
    real, seen = os.copy_file_range, []

    def copy_file_range(*args: int) -> int:
        seen.append(bench.used())
        return real(*args)

    monkeypatch.setattr(os, "copy_file_range", copy_file_range)
    bench.store.copy(who, at("d"), at("e"), recursive=True)
    assert seen == [(8000, 8)] * 4
    assert bench.used() == (8000, 8)
    with pytest.raises(QuotaExceeded):
        bench.store.copy(who, at("d"), at("f"), recursive=True)
    assert bench.used() == (8000, 8)


@pytest.mark.parametrize("size_bytes", [500, 2000, 9000])
def test_a_file_has_another_size_since_the_copy_began_and_needs_its_room(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, size_bytes: int
):
    bench.who = who = owner(limit_bytes=10_000)
    bench.batch({"d/a": b"x" * 1000, "d/b": b"y" * 1000})
    monkeypatch.setattr("paddlecloud.pfs.copying._GROUP_FILES", 1)
    real = os.copy_file_range

    def copy_file_range(*args: int) -> int:
        (bench.home / "d/b").write_bytes(b"z" * size_bytes)
        monkeypatch.setattr(os, "copy_file_range", real)
        return real(*args)

    monkeypatch.setattr(os, "copy_file_range", copy_file_range)
    if size_bytes == 9000:
        with pytest.raises(QuotaExceeded):
            bench.store.copy(who, at("d"), at("e"), recursive=True)
    else:
        told = bench.store.copy(who, at("d"), at("e"), recursive=True)
        assert told.size_bytes == 1000 + size_bytes
        assert bench.used() == (3000 + size_bytes, 4)  # a job's writes show with the next sweep
    bench.store.sweep()
    assert bench.used()[1] == (3 if size_bytes == 9000 else 4)


def test_an_upload_begun_while_the_last_one_commits_is_a_new_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    bench.put("before", b"makes the home")
    data = os.urandom(LEAF_BYTES)
    wish = UploadWish(at("f"), len(data), source="x")
    first = bench.store.begin_upload(ANN, wish)
    first.receive(0, len(data)).write(data)
    is_syncing, may_go_on = threading.Event(), threading.Event()
    real = os.fsync

    def fsync(fd: int) -> None:
        is_syncing.set()
        assert may_go_on.wait(PATIENCE_S)
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    commit = threading.Thread(target=first.commit, args=[digest_of(data)])
    commit.start()
    assert is_syncing.wait(PATIENCE_S)
    begun: list[object] = []
    begin = threading.Thread(target=lambda: begun.append(bench.store.begin_upload(ANN, wish)))
    begin.start()
    # Nobody else waits for it.
    other = UploadWish(at("g"), 1, source="x")
    bench.store.begin_upload(ANN, other).abandon()
    may_go_on.set()
    for thread in (commit, begin):
        thread.join(PATIENCE_S)
    (second,) = begun
    assert second is not first
    assert second is bench.store.upload(ANN, first.id)
    second.receive(0, len(data)).write(data)
    second.commit(digest_of(data))
    assert bench.get("f") == data
    assert bench.leftovers() == []


# --- owners ------------------------------------------------------------------------------------


@pytest.mark.root
def test_gives_away_what_a_kill_left_to_us(bench: Bench):
    """A folder is made and given to its account in two steps."""
    bench.home.mkdir(mode=0o700)
    (bench.home / "sub").mkdir(mode=0o700)
    assert IS_ROOT
    assert bench.home.stat().st_uid == (bench.home / "sub").stat().st_uid == 0
    bench.names()
    assert bench.home.stat().st_uid == ANN.uid
    bench.put("sub/f", b"data")
    assert (bench.home / "sub").stat().st_uid == ANN.uid


@pytest.mark.root
def test_gives_away_nothing_that_is_not_its_own(bench: Bench, tmp_path: Path):
    target = tmp_path / "target"
    target.mkdir()
    bench.home.symlink_to(target)
    bench.store.places.home(ANN)
    assert target.stat().st_uid == 0
    assert bench.home.lstat().st_uid == 0
