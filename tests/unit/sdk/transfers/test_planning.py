"""What goes where and what need not go: tables and properties, no disk and no network."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.errors import Conflict, InvalidInput
from paddlecloud.sdk.transfers import planning
from paddlecloud.sdk.transfers.planning import (
    Placed,
    batches,
    doubles,
    is_remote,
    place,
    runs,
    shares,
    source_of,
    surplus,
)

HOME = "/pfs/local/home/alice"


@pytest.mark.parametrize(
    ("text", "is_it"),
    [("/pfs", True), ("/pfs/a", True), ("/pfsx/a", False), ("pfs/a", False), ("./pfs", False)],
)
def test_what_is_remote(text: str, is_it: bool) -> None:
    assert is_remote(text) is is_it


@pytest.mark.parametrize(
    ("text", "name", "is_contents"),
    [
        ("data", "data", False),
        ("a/data", "data", False),
        ("data/", "data", True),
        ("data//", "data", True),
        (".", ".", True),
        ("..", "..", True),
        ("a/.", ".", True),
        ("/", "", True),
        ("a b", "a b", False),
    ],
)
def test_a_slash_at_the_end_means_the_contents(text: str, name: str, is_contents: bool) -> None:
    source = source_of(text)
    assert (source.name, source.is_contents) == (name, is_contents)


def test_windows_has_two_separators() -> None:
    assert source_of("a\\data\\", "/\\") == ("a\\data\\", "data", True)
    assert source_of("a/data", "/\\").name == "data"


# source, is a folder, target, what the target is, base, name
PLACES = [
    # a file becomes the target, unless that is a directory
    ("f", False, f"{HOME}/g", "", HOME, "g"),
    ("f", False, f"{HOME}/g", "file", HOME, "g"),
    ("f", False, f"{HOME}/g", "directory", f"{HOME}/g", "f"),
    ("f", False, f"{HOME}/g/", "", f"{HOME}/g", "f"),
    ("d/f", False, HOME, "directory", HOME, "f"),
    # a folder goes into it, whether it exists or not: running it again means the same
    ("d", True, f"{HOME}/x", "", f"{HOME}/x", "d"),
    ("d", True, f"{HOME}/x", "directory", f"{HOME}/x", "d"),
    ("d", True, f"{HOME}/x/", "directory", f"{HOME}/x", "d"),
    # but it is the target that has its own name: nobody means d/d
    ("d", True, f"{HOME}/d", "", HOME, "d"),
    ("d", True, f"{HOME}/d", "directory", HOME, "d"),
    ("d", True, f"{HOME}/d/", "", f"{HOME}/d", "d"),
    (f"{HOME}/jobs/a/output", True, "./output", "", ".", "output"),
    # its contents too
    ("d/", True, f"{HOME}/x", "", f"{HOME}/x", ""),
    ("d/", True, f"{HOME}/x", "directory", f"{HOME}/x", ""),
    (".", True, f"{HOME}/x", "", f"{HOME}/x", ""),
    # local targets
    (f"{HOME}/f", False, "g", "", "", "g"),
    (f"{HOME}/f", False, ".", "directory", ".", "f"),
    (f"{HOME}/f", False, "/g", "", "/", "g"),
    (f"{HOME}/f", False, "/", "directory", "/", "f"),
]


@pytest.mark.parametrize(("source", "is_folder", "target", "is_what", "base", "name"), PLACES)
def test_where_things_go(
    source: str, is_folder: bool, target: str, is_what: str, base: str, name: str
) -> None:
    placed = place([source_of(source)], [is_folder], target, is_what)
    assert placed == Placed(base, (name,))


def test_several_sources_go_into_the_target() -> None:
    sources = [source_of("a"), source_of("d"), source_of("e/")]
    placed = place(sources, [False, True, True], f"{HOME}/x", "")
    assert placed == Placed(f"{HOME}/x", ("a", "d", ""))


@pytest.mark.parametrize(("names", "folders"), [(["a", "b"], [False, False]), (["d"], [True])])
def test_a_file_cannot_take_several(names: list[str], folders: list[bool]) -> None:
    with pytest.raises(Conflict, match="is a file"):
        place([source_of(name) for name in names], folders, f"{HOME}/x", "file")


def test_a_file_has_no_contents() -> None:
    with pytest.raises(InvalidInput, match="is no folder"):
        place([source_of("f/")], [False], f"{HOME}/x/", "directory")


def test_names_that_two_sources_claim() -> None:
    assert doubles(["a", "b", "a", "c", "b", "a"]) == {"a", "b"}


# --- pieces ------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 7), st.integers(1, 100))
def test_batches_keep_order_and_limits(sizes: list[int], files: int, size_bytes: int) -> None:
    groups = list(batches(sizes, range(len(sizes)), files, size_bytes))
    assert [i for group in groups for i in group] == list(range(len(sizes)))
    for group in groups:
        assert 0 < len(group) <= files
        assert len(group) == 1 or sum(sizes[i] for i in group) <= size_bytes


@given(st.sets(st.integers(0, 80)), st.integers(1, 4), st.none() | st.integers(1, 9))
def test_shares_cover_each_leaf_once_and_are_contiguous(
    leaves: set[int], ways: int, most: int | None
) -> None:
    wanted = sorted(leaves)
    found = shares(wanted, ways, most)
    assert len(found) <= ways
    flat = [leaf for share in found for first, end in share for leaf in range(first, end)]
    assert flat == wanted
    if found:
        lengths = [sum(end - first for first, end in share) for share in found]
        assert max(lengths) == -(-len(wanted) // len(lengths)) or len(found) < ways
    if most is not None:
        assert all(end - first <= most for share in found for first, end in share)


def test_a_whole_file_is_two_long_halves() -> None:
    assert shares(range(512), 2) == [[(0, 256)], [(256, 512)]]


def test_runs() -> None:
    assert runs([0, 1, 2, 5, 7, 8]) == [(0, 3), (5, 6), (7, 9)]


# --- what is too much --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kept", "there", "protected", "removed"),
    [
        (["a"], ["a", "b"], [], ["b"]),
        (["d/a"], ["d/", "d/a", "d/b"], [], ["d/b"]),
        (["x"], ["x", "d/", "d/a", "d/e/", "d/e/f"], [], ["d"]),
        (["d"], ["d/", "d/a"], [], ["d/a"]),
        # a name that the source has but could not be sent stays, with what is below it
        (["a"], ["a", "link", "odd/", "odd/x"], ["link", "odd"], []),
        (["a"], ["a", "d/", "d/link", "d/y"], ["d/link"], ["d/y"]),
        (["ab"], ["ab", "a/", "a/b", "a.b"], [], ["a", "a.b"]),
        ([], [], [], []),
    ],
)
def test_what_the_source_lacks(
    kept: list[str], there: list[str], protected: list[str], removed: list[str]
) -> None:
    rows = [(name.rstrip("/"), name.endswith("/")) for name in there]
    assert surplus(kept, rows, protected) == removed


NAME = st.text("ab", min_size=1, max_size=2)
PATH = st.lists(NAME, min_size=1, max_size=3).map("/".join)


@given(st.sets(PATH, max_size=8), st.sets(PATH, max_size=12))
def test_removing_the_surplus_leaves_exactly_what_is_wanted(
    kept: set[str], others: set[str]
) -> None:
    files = {p for p in kept | others if not any(q.startswith(p + "/") for q in kept | others)}
    parents = {p.rsplit("/", n)[0] for p in files for n in range(1, p.count("/") + 1)}
    there = [(name, False) for name in files] + [(name, True) for name in parents]
    wanted = kept & files
    gone = surplus(wanted, there)
    left = {f for f in files if not any(f == g or f.startswith(g + "/") for g in gone)}
    assert left == wanted


NAMES = st.text(st.characters(codec="utf-8"), max_size=300)


@given(st.lists(NAMES, max_size=40), st.integers(1, 10))
def test_paths_go_in_bodies_that_fit(paths: list[str], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "PATHS_BODY_BYTES", 5_000)
        groups = list(planning.path_groups(paths, most))
    assert [path for group in groups for path in group] == paths
    for group in groups:
        assert 1 <= len(group) <= most
        assert len(json.dumps(group, separators=(",", ":"))) <= 5_001


@given(st.lists(st.tuples(NAMES, st.integers(0, 2**62), st.just("0" * 64)), max_size=40))
def test_rows_are_compared_in_bodies_that_fit(rows: list[tuple[str, int, str]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "COMPARE_BODY_BYTES", 5_000)
        runs = list(planning.comparable(rows, [0] * len(rows)))
    assert [i for run in runs for i in run] == list(range(len(rows)))
    for run in runs:
        asked = rows[run.start : run.stop]
        assert len(json.dumps(asked, separators=(",", ":"))) <= 5_001


@pytest.mark.parametrize(
    ("folders", "common"),
    [
        (["a/b"], "a/b"),
        (["a/b", "a/b/c"], "a/b"),
        (["a", "a-b", "a/z"], ""),
        (["", "a"], ""),
        (["x/a/1", "x/a/2", "x/ab"], "x"),
    ],
)
def test_the_folder_that_all_lie_in(folders: list[str], common: str) -> None:
    assert planning.common_folder(folders) == common
