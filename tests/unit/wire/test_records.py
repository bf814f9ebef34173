"""The stream of records: heads there and back, and what is refused."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.errors import InvalidInput
from paddlecloud.wire import records
from paddlecloud.wire.records import Kind

_FILES = st.sampled_from([Kind.FILE, Kind.EXECUTABLE])
_NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(_FILES, _NAMES, st.integers(0, 2**63), st.none() | st.integers(-(2**62), 2**62))
def test_it_reads_a_head_as_it_was_written(
    kind: Kind, name: str, size_bytes: int, mtime_ns: int | None
) -> None:
    data = records.encode_head(kind, name, size_bytes, mtime_ns)
    head = records.decode_head(data)
    assert (head.kind, head.size_bytes, head.mtime_ns) == (kind, size_bytes, mtime_ns)
    assert records.decode_name(data[records.HEAD_BYTES :]) == name
    assert head.has_digest
    assert records.record_bytes(name, size_bytes) == len(data) + size_bytes + 32


def _raw(kind: int, size_bytes: int = 0, name_bytes: int = 1) -> bytes:
    return struct.pack(">BQqH", kind, size_bytes, 0, name_bytes)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (_raw(0), "an end where a record must be"),
        (_raw(9), "the unknown kind 9"),
        (_raw(1, name_bytes=0), "a name of 0 bytes"),
        (_raw(1, name_bytes=4097), "a name of 4097 bytes"),
        (_raw(3, size_bytes=1), "a directory with content"),
        (_raw(4, size_bytes=2**40), "an error without measure"),
    ],
)
def test_it_refuses_a_head_that_makes_no_sense(data: bytes, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        records.decode_head(data)


def test_it_refuses_a_name_that_is_not_utf_8() -> None:
    with pytest.raises(InvalidInput):
        records.decode_name(b"\xff")


@pytest.mark.parametrize("name", ["", "x" * 4097])
def test_it_does_not_write_a_name_of_the_wrong_length(name: str) -> None:
    with pytest.raises(InvalidInput):
        records.encode_head(Kind.FILE, name)
