"""Walking, reading and local targets: what touches this machine's disk."""

from __future__ import annotations

import os
import socket
import unicodedata
from pathlib import Path

import pytest

from paddlecloud.core.errors import Conflict, InvalidInput
from paddlecloud.sdk.transfers import walking
from paddlecloud.sdk.transfers.digest_cache import digest_of
from paddlecloud.sdk.transfers.local_files import (
    Changed,
    LocalFault,
    hash_file,
    leaf_pieces,
    read_small,
)
from paddlecloud.sdk.transfers.local_targets import LocalTarget, Part, part_path, refusal
from paddlecloud.sdk.transfers.walking import Found, Walk, found
from paddlecloud.wire.digests import LEAF_BYTES, combine, leaf_hash


def walked(root: Path) -> Walk:
    walk = Walk()
    walk.add_folder(str(root), "")
    return walk


def found_at(path: Path) -> Found:
    return found(path.name, str(path), path.stat())


# --- walking -----------------------------------------------------------------------------------


def test_everything_regular_is_found_hidden_and_empty_too(tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "nothing").mkdir()
    (tmp_path / ".hidden").write_text("x")
    (tmp_path / "d" / "a b").write_text("")
    (tmp_path / "d" / "e" / "ü").write_text("yy")
    walk = walked(tmp_path)
    assert sorted(file.name for file in walk.files) == [".hidden", "d/a b", "d/e/ü"]
    assert sorted(walk.folders) == ["d", "d/e", "nothing"]
    assert walk.empty_folders == ["nothing"]
    assert not walk.failures


def test_a_file_that_is_gone_when_it_is_looked_at_fails_by_name(tmp_path: Path) -> None:
    walk = Walk()
    walk.add_file(str(tmp_path / "gone"), "gone")
    [(path, error)] = walk.failures
    assert path == str(tmp_path / "gone")
    assert isinstance(error, InvalidInput)
    assert (walk.files, walk.left_out) == ([], ["gone"])


def test_a_named_folder_comes_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    walk = Walk()
    walk.add_folder(str(tmp_path), "data")
    assert [file.name for file in walk.files] == ["data/f"]
    assert walk.folders == ["data"]


@pytest.mark.needs("linux")
def test_links_and_special_files_are_left_out_and_noted(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "up").symlink_to("..")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "sock"))
        walk = walked(tmp_path)
    assert [file.name for file in walk.files] == ["f"]
    assert sorted(walk.left_out) == ["link", "pipe", "sock", "up"]
    assert f"{tmp_path}/link is a symbolic link and was left out" in walk.notes


def test_many_notes_are_cut_short(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"l{number}").symlink_to("x")
    assert len(walked(tmp_path).notes) == walking.NOTES_SHOWN + 1


def test_unfinished_downloads_are_left_out(tmp_path: Path) -> None:
    (tmp_path / ".model.pfs-part").write_text("half")
    (tmp_path / "model.pfs-part").write_text("a user's own")
    assert [file.name for file in walked(tmp_path).files] == ["model.pfs-part"]


@pytest.mark.needs("linux")
def test_two_spellings_of_one_name_are_both_refused(tmp_path: Path) -> None:
    for form in ("NFC", "NFD"):
        (tmp_path / unicodedata.normalize(form, "é")).write_text(form)  # type: ignore[arg-type]
    (tmp_path / "e").write_text("plain")
    walk = walked(tmp_path)
    assert [file.name for file in walk.files] == ["e"]
    assert len(walk.failures) == 2
    assert all(isinstance(error, Conflict) for _, error in walk.failures)


@pytest.mark.needs("linux")
def test_a_name_is_sent_in_one_spelling(tmp_path: Path) -> None:
    (tmp_path / unicodedata.normalize("NFD", "é")).write_text("x")
    [file] = walked(tmp_path).files
    assert file.name == unicodedata.normalize("NFC", "é")
    assert Path(file.path).read_text() == "x"


@pytest.mark.needs("linux")
@pytest.mark.parametrize("name", [b"bad\xff", b"new\nline"])
def test_names_that_cannot_be_sent_are_failures_by_name(tmp_path: Path, name: bytes) -> None:
    with open(os.path.join(os.fsencode(tmp_path), name), "wb"):
        pass
    walk = walked(tmp_path)
    [(_, error)] = walk.failures
    assert isinstance(error, InvalidInput)
    error.message.encode()  # can be shown
    assert not walk.files
    assert len(walk.left_out) == 1


# --- reading -----------------------------------------------------------------------------------


def test_a_small_file_is_read_with_its_state(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"abc")
    before = found_at(path)
    path.write_bytes(b"abcdef")
    now, data = read_small(before)
    assert (data, now.size_bytes) == (b"abcdef", 6)


def test_an_unreadable_file_is_no_network_error(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"abc")
    file = found_at(path)
    path.unlink()
    with pytest.raises(LocalFault, match="cannot read"):
        read_small(file)


@pytest.mark.parametrize("skip", [0, 5, 1 << 20, (3 << 20) + 7, LEAF_BYTES - 1])
def test_leaves_are_hashed_as_they_are_read(tmp_path: Path, skip: int) -> None:
    data = os.urandom(2 * LEAF_BYTES + 5)
    (tmp_path / "f").write_bytes(data)
    file = found_at(tmp_path / "f")
    leaves: list[bytes | None] = [None] * 3
    view = memoryview(bytearray(1 << 20))
    pieces = b"".join(bytes(p) for p in leaf_pieces(file, 1, 3, view, leaves, skip=skip))
    assert pieces == data[LEAF_BYTES + skip :]
    assert leaves[1] == hash_of(data[LEAF_BYTES : 2 * LEAF_BYTES])
    assert leaves[0] is None
    last = leaf_hash()
    last.update(data[2 * LEAF_BYTES :])
    assert leaves[2] == last.digest()
    assert digest_of(hash_file(file, view).leaves) == combine(
        [hash_of(data[at : at + LEAF_BYTES]) for at in range(0, len(data), LEAF_BYTES)]
    )


def hash_of(data: bytes) -> bytes:
    digest = leaf_hash()
    digest.update(data)
    return bytes(digest.digest())


def test_a_file_that_shrinks_meanwhile_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(os.urandom(LEAF_BYTES + 5))
    file = found_at(path)
    pieces = leaf_pieces(file, 0, 2, memoryview(bytearray(1 << 20)), [None, None])
    next(pieces)
    path.write_bytes(b"short")
    with pytest.raises(Changed):
        list(pieces)


# --- names from the server ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["", "/etc/passwd", "..", "../x", "a/../b", "a//b", "a/.", "./a", "a/", "nul\0", "..\0"],
)
def test_names_that_lead_out_are_refused(name: str) -> None:
    assert refusal(name, is_windows=False) is not None
    assert refusal(name, is_windows=True) is not None


@pytest.mark.parametrize(
    "name",
    ["C:\\x", "a\\b", "..\\x", "C:x", "CON", "con.txt", "d/NUL", "LPT1.log", "a.", "a ", "a?b"],
)
def test_what_windows_cannot_hold_is_refused_there_only(name: str) -> None:
    assert refusal(name, is_windows=True) is not None
    assert refusal(name, is_windows=False) is None


@pytest.mark.parametrize("name", ["a", "a/b", "...", "..a", "a..", "ü", "CONTENT", "a b/c"])
def test_ordinary_names_pass(name: str) -> None:
    assert refusal(name, is_windows=False) is None
    assert name in ("...", "a..") or refusal(name, is_windows=True) is None


# --- writing -----------------------------------------------------------------------------------


@pytest.mark.needs("linux")
def test_a_link_below_the_target_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "d").symlink_to(outside)
    target = LocalTarget(str(tmp_path / "in"))
    with pytest.raises(LocalFault, match="symbolic link"):
        target.put_small("d/f", b"x", executable=False, mtime_ns=None, tag="1")
    assert list(outside.iterdir()) == []


@pytest.mark.needs("linux")
def test_a_link_in_the_place_of_a_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("mine")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "f").symlink_to(tmp_path / "outside")
    target = LocalTarget(str(tmp_path / "in"))
    target.put_small("f", b"new", executable=True, mtime_ns=5_000_000_000, tag="1")
    assert (tmp_path / "outside").read_text() == "mine"
    info = (tmp_path / "in" / "f").lstat()
    assert (info.st_size, info.st_mtime_ns, info.st_mode & 0o111 != 0) == (3, 5_000_000_000, True)
    assert os.listdir(tmp_path / "in") == ["f"]


def test_a_target_that_is_a_link_itself_was_named_by_the_user(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    target = LocalTarget(str(tmp_path / "link"))
    target.put_small("d/f", b"x", executable=False, mtime_ns=None, tag="1")
    assert (tmp_path / "real" / "d" / "f").read_bytes() == b"x"


@pytest.mark.parametrize("length", [1, 100, 245, 246, 255])
def test_a_part_has_a_name_that_fits(length: int) -> None:
    part = os.path.basename(part_path("/x/" + "n" * length))
    assert len(part) <= 255
    assert part.startswith(".")
    assert part.endswith(".pfs-part")


@pytest.mark.needs("linux")
def test_two_programs_that_fetch_the_same_file_do_not_share_a_part(tmp_path: Path) -> None:
    first = Part(str(tmp_path / "f"), executable=False)
    second = Part(str(tmp_path / "f"), executable=False)
    assert first.path != second.path
    first.close()
    second.close()
    os.unlink(second.path)
    third = Part(str(tmp_path / "f"), executable=True)
    assert third.path == first.path
    third.finish(0, None)
    assert os.listdir(tmp_path) == ["f"]
    assert (tmp_path / "f").stat().st_mode & 0o100
