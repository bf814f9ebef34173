"""What a folder may hold: every name that is dangerous, every list that cannot be made."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.errors import TooLarge
from paddlecloud.wire.package import BadPackage, Limits, check_path, lone_directories

Files = list[tuple[str, int]]

parts = st.text(
    st.characters(categories=["Ll", "Lu", "Nd", "Lo"]) | st.sampled_from(" .-_\\~"),
    min_size=1,
    max_size=5,
)
paths = st.lists(parts, min_size=1, max_size=4).map("/".join)
folders = st.tuples(
    st.lists(st.tuples(paths, st.integers(0, 2**30)), max_size=6, unique_by=lambda file: file[0]),
    st.lists(paths, max_size=3),
)


def parents(path: str) -> set[str]:
    above = path.rpartition("/")[0]
    return {above, *parents(above)} if above else set()


def test_keeps_only_directories_that_nothing_implies() -> None:
    files = [("b/run.sh", 3), ("a.py", 10)]
    assert lone_directories(files, ["empty", "b", "d/e", "d"]) == ("d/e", "empty")
    assert lone_directories([], []) == ()


def test_sorts_by_bytes() -> None:
    assert lone_directories([], ["b", "Z", "é", "a/x", "a-b"]) == ("Z", "a-b", "a/x", "b", "é")


@given(folders)
def test_accepts_only_what_stays_in_place(drawn: tuple[Files, list[str]]) -> None:
    """Whatever is accepted can be made in any order of kinds without one meeting another."""
    files, dirs = drawn
    try:
        lone = lone_directories(files, dirs)
    except BadPackage:
        return
    made = {above for path in (*lone, *(path for path, _ in files)) for above in parents(path)}
    made |= set(lone)
    assert set(dirs) <= made  # nothing that was asked for is missing
    for path, _ in files:
        assert posixpath.normpath(posixpath.join("/root", path)) == f"/root/{path}"
        assert path not in made


BAD_PATHS = [
    ("", "relative path"),
    ("/etc/passwd", "relative path"),
    ("a/", "relative path"),
    ("../x", "part '..'"),
    ("a/../../x", "part '..'"),
    ("..", "part '..'"),
    (".", "part '.'"),
    ("./a", "part '.'"),
    ("a//b", "part ''"),
    ("a\0b", "control character"),
    ("a\nb", "control character"),
    ("\x1b[31m", "control character"),
    ("e\u0301", "NFC"),
    ("\ud800", "valid Unicode"),
    ("x" * 256, "more than 255 bytes"),
    ("数" * 86, "more than 255 bytes"),
    ("/".join(["x" * 200] * 6), "1024"),
    ("/".join("x" * 65), "65 levels"),
]


@pytest.mark.parametrize(("path", "says"), BAD_PATHS)
def test_refuses_a_dangerous_path(path: str, says: str) -> None:
    with pytest.raises(BadPackage) as caught:
        lone_directories([(path, 0)], [])
    assert says in caught.value.message
    with pytest.raises(BadPackage):
        lone_directories([], [path])


@pytest.mark.parametrize("path", ["a", "a/b.py", "..a", "a..", "a b", "...", "x" * 255, "C:\\x"])
def test_accepts_an_unusual_but_harmless_path(path: str) -> None:
    check_path(path)
    assert lone_directories([], [path]) == (path,)


@pytest.mark.parametrize(
    ("files", "dirs", "says"),
    [
        ([("a", 0), ("b", 0), ("a", 0)], [], "twice"),
        ([("a", 0), ("a/b", 0)], [], "both a file and a directory"),
        ([("a", 0), ("a-b", 0), ("a/b", 0)], [], "both a file and a directory"),  # not neighbours
        ([("a", 0)], ["a"], "both a file and a directory"),
        ([("a", 0)], ["a/b/c"], "both a file and a directory"),
        ([("a", -1)], [], "negative"),
    ],
)
def test_refuses_a_folder_and_says_why(files: Files, dirs: list[str], says: str) -> None:
    with pytest.raises(BadPackage) as caught:
        lone_directories(files, dirs)
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("files", "dirs", "limits"),
    [
        ([("a", 11)], [], Limits(max_total_bytes=10)),
        ([("a", 6), ("b", 6)], [], Limits(max_total_bytes=10)),
        ([("a", 2**70)], [], Limits()),
        ([("a", 0), ("b", 0)], ["c"], Limits(max_entries=2)),
        # Three files, but a hundred directories to make.
        (
            [("/".join(f"{n}{i}" for i in range(40)), 0) for n in "abc"],
            [],
            Limits(max_entries=99),
        ),
    ],
)
def test_refuses_what_is_too_large(files: Files, dirs: list[str], limits: Limits) -> None:
    with pytest.raises(TooLarge):
        lone_directories(files, dirs, limits)


def test_takes_what_is_just_small_enough() -> None:
    limits = Limits(max_total_bytes=12, max_entries=2)
    assert lone_directories([("a", 6), ("b", 6)], [], limits) == ()
