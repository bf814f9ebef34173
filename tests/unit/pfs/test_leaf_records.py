"""What is recorded of leaves is what was told last, in memory and on disk alike."""

from __future__ import annotations

import tempfile
import tracemalloc
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.pfs.leaf_records import LeafRecord
from paddlecloud.wire.digests import DIGEST_BYTES, LEAF_BYTES

LEAVES = 3
DIGEST = bytes(range(DIGEST_BYTES))
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["begins", "reached", "ends"]),
        st.integers(0, LEAVES - 1),
        st.integers(0, LEAF_BYTES - 1),
    ),
    max_size=12,
)


@given(STEPS)
def test_it_tells_what_it_was_told_also_after_a_kill(steps: list[tuple[str, int, int]]) -> None:
    whole: set[int] = set()
    begun: dict[int, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "record")
        record = LeafRecord(path, LEAVES * LEAF_BYTES)
        record.create()
        for order, index, n_bytes in steps:
            if order == "ends":
                record.ends(index, DIGEST)
                whole.add(index)
                begun.pop(index, None)
            elif order == "begins" or index in whole:
                record.begins(index, n_bytes)
                whole.discard(index)
                begun[index] = n_bytes
            else:
                record.reached(index, n_bytes)
                begun[index] = n_bytes
        loaded = LeafRecord(path, LEAVES * LEAF_BYTES)
        for one in (record, loaded):
            assert one.whole() == [(index, DIGEST) for index in sorted(whole)]
            assert one.begun() == [(index, n) for index, n in sorted(begun.items()) if n]
            for index in range(LEAVES):
                kept = LEAF_BYTES if index in whole else begun.get(index, 0)
                assert one.has(index, kept)
                assert index in whole or not one.has(index, kept + 1)


def test_a_record_of_a_version_that_counted_no_bytes_is_read(tmp_path: Path) -> None:
    (tmp_path / "record").write_bytes(DIGEST)
    record = LeafRecord(tmp_path / "record", LEAVES * LEAF_BYTES)
    assert (record.whole(), record.begun()) == ([(0, DIGEST)], [])


def test_a_kill_between_its_two_writes_leaves_a_whole_leaf(tmp_path: Path) -> None:
    record = LeafRecord(tmp_path / "record", LEAVES * LEAF_BYTES)
    record.create()
    record.reached(1, 5)
    kept = (tmp_path / "record").read_bytes()
    record.ends(1, DIGEST)
    ended = (tmp_path / "record").read_bytes()
    at = LEAVES * DIGEST_BYTES
    (tmp_path / "record").write_bytes(ended[:at] + kept[at:])
    again = LeafRecord(tmp_path / "record", LEAVES * LEAF_BYTES)
    assert (again.whole(), again.begun()) == ([(1, DIGEST)], [])


def test_what_is_announced_and_not_sent_is_not_read(tmp_path: Path) -> None:
    """A file of 64 TiB: its digests alone are half a gigabyte, and the record a few blocks."""
    leaves = 1 << 24
    record = LeafRecord(tmp_path / "record", leaves * LEAF_BYTES)
    record.create()
    record.ends(5, DIGEST)
    record.reached(leaves - 1, 7)
    assert (record.whole(), record.begun()) == ([(5, DIGEST)], [(leaves - 1, 7)])
    assert (tmp_path / "record").stat().st_blocks * 512 <= 64 << 10
    tracemalloc.start()
    try:
        assert LeafRecord(tmp_path / "record", leaves * LEAF_BYTES).whole() == [(5, DIGEST)]
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
