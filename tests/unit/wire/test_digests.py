"""The digest of a file: leaves, and how they combine."""

from __future__ import annotations

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.wire import digests


def _leaf(data: bytes) -> bytes:
    hasher = digests.leaf_hash()
    hasher.update(data)
    return bytes(hasher.digest())


@pytest.mark.parametrize(
    ("size_bytes", "count", "last_bytes"),
    [
        (0, 1, 0),
        (1, 1, 1),
        (digests.LEAF_BYTES, 1, digests.LEAF_BYTES),
        (digests.LEAF_BYTES + 1, 2, 1),
        (3 * digests.LEAF_BYTES, 3, digests.LEAF_BYTES),
    ],
)
def test_it_cuts_a_file_into_leaves(size_bytes: int, count: int, last_bytes: int) -> None:
    assert digests.leaf_count(size_bytes) == count
    assert digests.leaf_bytes(count - 1, size_bytes) == last_bytes
    assert sum(digests.leaf_bytes(index, size_bytes) for index in range(count)) == size_bytes


@given(st.binary(max_size=200))
def test_it_digests_a_small_file_as_b3sum_does(data: bytes) -> None:
    assert digests.combine([_leaf(data)]) == blake3(data).digest()


def test_it_never_takes_a_stored_list_of_digests_for_the_file_it_describes() -> None:
    leaves = [_leaf(b"a"), _leaf(b"b")]
    assert digests.combine(leaves) != _leaf(b"".join(leaves))


def test_it_minds_the_order_of_leaves() -> None:
    first, second = _leaf(b"a"), _leaf(b"b")
    assert digests.combine([first, second]) != digests.combine([second, first])


def test_it_refuses_a_file_without_leaves() -> None:
    with pytest.raises(ValueError):
        digests.combine([])


@pytest.mark.parametrize("text", ["", "0" * 63, "0" * 65, "A" * 64, "g" * 64])
def test_it_refuses_what_is_no_digest(text: str) -> None:
    assert not digests.is_digest(text)
    assert digests.is_digest("0" * 64)
