"""Files beneath a root: whatever is planted on the way, nothing outside is read or written."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from paddlecloud.pfs.diskstore import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "home").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    return Tree(tmp_path / "home")


def _write(tree: Tree, parts: list[str], data: bytes) -> None:
    with tree.new_file(parts) as fd:
        os.write(fd, data)


def _read(tree: Tree, parts: list[str]) -> bytes:
    fd, facts = tree.open_file(parts)
    try:
        return os.read(fd, facts.st_size)
    finally:
        os.close(fd)


def test_writes_and_reads_with_parents_made(tree: Tree) -> None:
    _write(tree, ["a", "b", "c"], b"data")
    assert _read(tree, ["a", "b", "c"]) == b"data"
    assert tree.names(["a"]) == ["b"]
    assert (tree.root / "a").stat().st_mode & 0o777 == 0o700
    assert (tree.root / "a" / "b" / "c").stat().st_mode & 0o777 == 0o600


def _break_off(tree: Tree) -> None:
    with tree.new_file(["f"]) as fd:
        os.write(fd, b"half of the new")
        raise RuntimeError


def test_a_file_appears_whole_or_not_at_all(tree: Tree) -> None:
    _write(tree, ["f"], b"old")
    with pytest.raises(RuntimeError):
        _break_off(tree)
    assert _read(tree, ["f"]) == b"old"
    assert tree.names([]) == ["f"]


def test_a_fixed_part_name_takes_away_what_a_crash_left(tree: Tree) -> None:
    (tree.root / ".x.part").write_text("left by a crash")
    with tree.new_file(["f"], part=".x.part") as fd:
        os.write(fd, b"new")
    assert tree.names([]) == ["f"]


@pytest.mark.parametrize("part", ["", ".", "..", "a/b", "a\0b"])
def test_refuses_what_is_no_name(tree: Tree, part: str) -> None:
    for attempt in (
        lambda: tree.make_directory([part]),
        lambda: tree.open_file([part]),
        lambda: tree.names(["x", part] if part else [part]),
        lambda: tree.remove([part]),
        lambda: _write(tree, [part], b""),
    ):
        with pytest.raises((ValueError, FileNotFoundError)):
            attempt()


def _plant(tree: Tree, kind: str) -> None:
    link = tree.root / "link"
    link.symlink_to({"absolute": tree.root.parent / "outside", "up": "../outside"}[kind])


@pytest.mark.parametrize("kind", ["absolute", "up"])
def test_follows_no_link_on_the_way(tree: Tree, kind: str) -> None:
    _plant(tree, kind)
    with pytest.raises(OSError):
        tree.open_file(["link", "secret"])
    with pytest.raises(OSError):
        tree.names(["link"])
    with pytest.raises(OSError):
        _write(tree, ["link", "new"], b"x")
    with pytest.raises(OSError):
        tree.make_directory(["link", "new"])
    with pytest.raises(OSError):
        tree.move(["link", "secret"], ["stolen"])
    with pytest.raises(OSError):
        tree.remove(["link", "secret"])
    assert not tree.is_directory(["link"])
    assert sorted(path.name for path in (tree.root.parent / "outside").iterdir()) == ["secret"]


def test_follows_no_link_at_the_end(tree: Tree) -> None:
    (tree.root / "link").symlink_to("../outside/secret")
    with pytest.raises(OSError):
        tree.open_file(["link"])
    _write(tree, ["link"], b"mine")
    assert (tree.root.parent / "outside" / "secret").read_text() == "secret"
    assert not (tree.root / "link").is_symlink()


def test_removes_a_link_and_not_what_it_points_to(tree: Tree) -> None:
    (tree.root / "d").mkdir()
    (tree.root / "d" / "link").symlink_to("../../outside")
    tree.remove(["d"])
    tree.remove(["d"])  # nothing there is fine
    assert (tree.root.parent / "outside" / "secret").exists()


def test_opens_regular_files_only(tree: Tree) -> None:
    os.mkfifo(tree.root / "pipe")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tree.root / "sock"))
    (tree.root / "dir").mkdir()
    for name in ("pipe", "sock", "dir"):
        with pytest.raises(OSError):
            tree.open_file([name])


def test_a_move_does_not_bury_anything(tree: Tree) -> None:
    _write(tree, ["from", "f"], b"1")
    _write(tree, ["to", "g"], b"2")
    with pytest.raises(OSError):
        tree.move(["from"], ["to"])
    tree.move(["from"], ["new", "place"])
    assert _read(tree, ["new", "place", "f"]) == b"1"


@pytest.mark.root
def test_gives_what_it_makes_to_the_owner(tmp_path: Path) -> None:
    tree = Tree(tmp_path, owner_uid=210_007)
    _write(tree, ["a", "f"], b"")
    for path in (tmp_path / "a", tmp_path / "a" / "f"):
        assert (path.stat().st_uid, path.stat().st_gid) == (210_007, 210_007)
