"""Lists of snapshots: one text per folder, whatever the order, and nothing dangerous in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.errors import InvalidInput
from paddlecloud.wire import snapshots
from paddlecloud.wire.snapshots import File, Snapshot

A, B = "a" * 64, "b" * 64
NAMES = st.sampled_from(["a", "b", "c.py", "é", "line\u2028break", "with space"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
FILES = st.builds(File, PATHS, st.integers(0, 2**32), st.booleans(), st.sampled_from([A, B]))


def _possible(files: list[File]) -> dict[str, File]:
    """Those that can lie in one folder together."""
    kept: dict[str, File] = {}
    for file in files:
        if not any(
            file.path == other
            or file.path.startswith(other + "/")
            or other.startswith(file.path + "/")
            for other in kept
        ):
            kept[file.path] = file
    return kept


SNAPSHOTS = st.lists(FILES, max_size=8).map(lambda files: snapshots.make(_possible(files).values()))


def test_writes_one_line_per_entry_sorted_by_bytes():
    made = snapshots.make(
        [File("é", 1, True, B), File("a/b", 2, False, A), File("a-b", 0, False, A)], ["empty"]
    )
    assert snapshots.encode(made).decode() == (
        f'["a-b",0,false,"{A}"]\n["a/b",2,false,"{A}"]\n["empty"]\n["é",1,true,"{B}"]\n'
    )


@given(SNAPSHOTS)
def test_reads_back_what_it_wrote(made: Snapshot):
    assert snapshots.decode(snapshots.encode(made)) == made


@given(SNAPSHOTS, st.randoms())
def test_the_order_in_which_files_are_found_does_not_matter(made: Snapshot, random):
    files = list(made.files)
    random.shuffle(files)
    assert snapshots.encode(snapshots.make(files, made.dirs)) == snapshots.encode(made)


@given(SNAPSHOTS, SNAPSHOTS)
def test_a_difference_makes_the_one_of_the_other(base: Snapshot, wanted: Snapshot):
    wish = snapshots.difference(base, wanted)
    assert snapshots.fulfil(snapshots.parse_wish(wish.to_json()), base) == wanted
    assert {file.path for file in wish.files} <= {file.path for file in wanted.files}
    same = set(base.files) & set(wanted.files)
    assert not same & set(wish.files)


def test_a_whole_wish_needs_no_base():
    made = snapshots.make([File("a", 1, False, A)], ["d"])
    wish = snapshots.whole(made)
    assert wish.base is None
    assert snapshots.fulfil(wish, None) == made


def test_refuses_a_list_with_another_digest():
    wish = snapshots.whole(snapshots.make([File("a", 1, False, A)]))
    other = snapshots.Wish(wish.digest, None, (File("a", 2, False, A),), (), ())
    with pytest.raises(InvalidInput, match="digest"):
        snapshots.fulfil(other, None)


@pytest.mark.parametrize("path", ["../a", "/a", "a//b", "a/", "", ".", "a/../b", "a\0b", "e\u0301"])
def test_refuses_paths_that_lead_elsewhere(path: str):
    with pytest.raises(InvalidInput):
        snapshots.make([File(path, 1, False, A)])


@pytest.mark.parametrize(
    "files",
    [
        [File("a", 1, False, A), File("a", 2, False, B)],
        [File("a", 1, False, A), File("a/b", 1, False, A)],
        [File("a", -1, False, A)],
        [File("a", 1, False, "A" * 64)],
    ],
)
def test_refuses_entries_that_cannot_be(files: list[File]):
    with pytest.raises(InvalidInput):
        snapshots.make(files)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], "body"),
        ({}, "digest"),
        ({"digest": "x"}, "digest"),
        ({"digest": A, "base": 1}, "base"),
        ({"digest": A, "files": {}}, "files"),
        ({"digest": A, "files": [["a", 1, False]]}, "files"),
        ({"digest": A, "files": [["a", True, False, A]]}, "files"),
        ({"digest": A, "files": [["a", 1, 0, A]]}, "files"),
        ({"digest": A, "files": [], "removed": "a"}, "removed"),
        ({"digest": A, "files": [], "dirs": [1]}, "dirs"),
    ],
)
def test_names_the_field_of_a_wrong_wish(body: object, field: str):
    with pytest.raises(InvalidInput) as error:
        snapshots.parse_wish(body)
    assert error.value.field == field
