"""One file out of a multipart body, however it is cut into pieces."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.errors import InvalidInput
from paddlecloud.pfs.serving.multipart import FilePart, boundary_of

TYPE = "multipart/form-data; boundary=Ab"


def _body(data: bytes, before: bytes = b"", after: bytes = b"") -> bytes:
    head = b'Content-Disposition: form-data; name="file"; filename="x"\r\n\r\n'
    return before + b"--Ab\r\n" + head + data + b"\r\n" + after + b"--Ab--\r\n"


def _field(name: bytes, value: bytes) -> bytes:
    return b'--Ab\r\nContent-Disposition: form-data; name="' + name + b'"\r\n\r\n' + value + b"\r\n"


def _parse(body: bytes, cuts: list[int]) -> bytes:
    part = FilePart(boundary_of(TYPE))
    places = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    found = b"".join(part.feed(body[start:end]) for start, end in itertools.pairwise(places))
    part.finish()
    return found


# Bytes that look like boundaries, so that they are met on every edge.
_tricky = st.lists(
    st.sampled_from([b"\r", b"\n", b"-", b"--Ab", b"\r\n--A", b"\r\n--", b"x", b"\0", b"b"])
).map(b"".join)


@given(data=_tricky, cuts=st.lists(st.integers(0, 500)))
def test_finds_the_file_wherever_the_body_is_cut(data: bytes, cuts: list[int]) -> None:
    if b"\r\n--Ab" in b"\r\n" + data + b"\r\n":
        return  # a boundary inside the data is the sender's mistake
    assert _parse(_body(data), cuts) == data
    others = _field(b"a", b"1"), _field(b"z", b"2")
    assert _parse(_body(data, others[0], others[1]), cuts) == data
    assert _parse(_body(data, b"a preamble\r\n"), cuts) == data


def test_holds_back_no_more_than_a_boundary() -> None:
    part = FilePart(boundary_of(TYPE))
    part.feed(_body(b"")[: -len(b"\r\n--Ab--\r\n")])
    assert len(part.feed(b"x" * 100_000)) >= 100_000 - 10


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--Ab--\r\n",
        _field(b"other", b"x") + b"--Ab--\r\n",
        _body(b"x")[:-6],
        _body(b"x", _field(b"file", b"y")),
        _body(b"x").replace(b"--Ab--", b"--Abcd"),
        b"--Ab\r\n" + b"X: y\r\n" * 5000,
    ],
)
def test_refuses_what_it_does_not_understand(body: bytes) -> None:
    with pytest.raises(InvalidInput):
        _parse(body, [])


@pytest.mark.parametrize(
    "content_type",
    ["", "text/plain", "multipart/form-data", "multipart/form-data; boundary=" + "x" * 300],
)
def test_refuses_a_content_type_without_a_usable_boundary(content_type: str) -> None:
    with pytest.raises(InvalidInput):
        FilePart(boundary_of(content_type))
