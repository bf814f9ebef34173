"""Collecting a folder: what is sent, what stays behind, and that the digest is its content."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddlecloud.core.errors import InvalidInput
from paddlecloud.sdk.ignoring import Rules
from paddlecloud.sdk.snapshots import collect


def make(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {name}\n")
    return folder


def names(folder: Path) -> list[str]:
    return [file.path for file in collect(str(folder)).listed.files]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def test_lists_files_folders_and_what_is_executable(tmp_path: Path) -> None:
    make(tmp_path, "b/c.py", "a.py", "b.py")
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.py").chmod(0o755)
    package = collect(str(tmp_path))
    assert [file.path for file in package.listed.files] == ["a.py", "b.py", "b/c.py"]
    assert package.listed.dirs == ("empty",)
    assert (package.files, package.bytes) == (3, 50)
    assert package.listed.files[0].executable == (os.name != "nt")


def test_the_same_content_has_the_same_digest(tmp_path: Path) -> None:
    one, two = make(tmp_path / "1", "x/y", "a"), make(tmp_path / "2", "a", "x/y")
    os.utime(two / "a", (1, 1))
    assert collect(str(one)).digest == collect(str(two)).digest
    (two / "a").write_text("other")
    assert collect(str(one)).digest != collect(str(two)).digest


def test_leaves_histories_and_caches_behind_and_says_how_much(tmp_path: Path) -> None:
    make(tmp_path, "train.py", "sub/__pycache__/x.pyc", ".git/objects/aa/bb", ".git/HEAD")
    package = collect(str(tmp_path))
    assert [file.path for file in package.listed.files] == ["train.py"]
    assert package.skipped == [".git", "sub/__pycache__"]
    behind = (".git/objects/aa/bb", ".git/HEAD", "sub/__pycache__/x.pyc")
    assert package.skipped_bytes == sum(len(f"content of {name}\n") for name in behind)


def test_ignore_files_are_obeyed_and_paddleignore_has_the_last_word(tmp_path: Path) -> None:
    make(tmp_path, "a.log", "keep.log", "data/x", "src/data/y", "src/a.py")
    (tmp_path / ".gitignore").write_text("*.log\n/data/\n")
    (tmp_path / ".paddleignore").write_text("!keep.log\n*.py\n")
    assert names(tmp_path) == [".gitignore", ".paddleignore", "keep.log", "src/data/y"]


@pytest.mark.parametrize(
    ("pattern", "path", "is_folder", "is_ignored"),
    [
        ("*.gz", "a/b/c.gz", False, True),
        ("*.gz", "a/b.gz/c", False, False),
        ("/x", "x", False, True),
        ("/x", "a/x", False, False),
        ("a/b", "a/b", False, True),
        ("a/b", "z/a/b", False, False),
        ("build/", "build", True, True),
        ("build/", "build", False, False),
        ("**/x", "x", False, True),
        ("**/x", "a/b/x", False, True),
        ("a/**", "a/b/c", False, True),
        ("a/**", "a", True, False),
        ("a/**/b", "a/b", False, True),
        ("a/**/b", "a/x/y/b", False, True),
        ("a?c", "abc", False, True),
        ("a?c", "a/c", False, False),
        ("[ab].txt", "b.txt", False, True),
        ("[!ab].txt", "b.txt", False, False),
        ("[!ab].txt", "c.txt", False, True),
        ("[", "[", False, True),
        ("[]", "[]", False, True),
        ("\\#x", "#x", False, True),
        ("\\!x", "!x", False, True),
        ("# x", "# x", False, False),
        ("x  ", "x", False, True),
        ("a.b", "axb", False, False),
        ("[z-a]", "[z-a]", False, True),
        ("(", "(", False, True),
        ("é*", "été", False, True),
    ],
)
def test_patterns(pattern: str, path: str, is_folder: bool, is_ignored: bool) -> None:
    assert Rules(pattern).is_ignored(path, is_folder=is_folder) is is_ignored


def test_git_is_left_behind_even_if_a_rule_takes_it_back() -> None:
    assert Rules("!.git").is_ignored(".git", is_folder=True)


@pytest.mark.needs("linux")
def test_links_and_special_files_are_left_out_and_named(tmp_path: Path) -> None:
    make(tmp_path, "a", "sub/b")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "sub" / "up").symlink_to("..")
    os.mkfifo(tmp_path / "pipe")
    package = collect(str(tmp_path))
    assert [file.path for file in package.listed.files] == ["a", "sub/b"]
    assert package.notes == [
        "link is a symbolic link and was not sent",
        "pipe is no regular file and was not sent",
        "sub/up is a symbolic link and was not sent",
    ]


@pytest.mark.parametrize("name", ["nothing", "file"])
def test_refuses_what_is_no_folder(tmp_path: Path, name: str) -> None:
    make(tmp_path, "file")
    with pytest.raises(InvalidInput, match=name):
        collect(str(tmp_path / name))
