"""The parts of the file service that take a stream in pieces: wherever it is cut, the same."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.errors import InvalidInput
from paddlecloud.pfs.serving.bodies import Body, _Chunks
from paddlecloud.pfs.serving.heads import parse_head
from paddlecloud.pfs.serving.multipart import FilePart, boundary_of
from paddlecloud.pfs.serving.record_streams import RecordReader
from paddlecloud.pfs.serving.workers import Pool, Steps, Task
from paddlecloud.wire import records
from paddlecloud.wire.digests import leaf_hash
from tests.patience import PATIENCE_S


def pieces(data: bytes, cuts: list[int]) -> list[memoryview]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    view = memoryview(data)
    return [view[a:b] for a, b in pairwise(places)]


CUTS = st.lists(st.integers(0, 10_000), max_size=20)


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=5), st.binary(max_size=50), CUTS)
def test_takes_chunks_apart_and_leaves_what_follows(
    chunks: list[bytes], following: bytes, cuts: list[int]
) -> None:
    body = b"".join(b"%X\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    decoder, got, rest = _Chunks(), bytearray(), b""
    for piece in pieces(body + following, cuts):
        used = 0 if decoder.is_over else decoder.feed(piece, got.extend)
        rest += bytes(piece[used:])
    assert decoder.is_over
    assert bytes(got) == b"".join(chunks)
    assert rest == following


class _Batch:
    """Writes down what a reader tells it."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def begin_file(self, head: records.Head, name: str) -> None:
        self.told.append([name, head.kind, head.mtime_ns, b""])

    def write(self, view: memoryview) -> None:
        self.told[-1][3] += bytes(view)

    def end_file(self, digest: bytes) -> None:
        self.told[-1].append(digest)

    def directory(self, name: str) -> None:
        self.told.append([name])


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30)


@given(st.lists(st.tuples(NAMES, st.none() | st.binary(max_size=200)), max_size=6), CUTS)
def test_reads_records_wherever_they_are_cut(
    files: list[tuple[str, bytes | None]], cuts: list[int]
) -> None:
    stream, wanted = bytearray(records.MAGIC), []
    for name, data in files:
        if data is None:
            stream += records.encode_head(records.Kind.DIRECTORY, name)
            wanted.append([name])
            continue
        whole = leaf_hash()
        whole.update(data)
        stream += records.encode_head(records.Kind.FILE, name, len(data), -5)
        stream += data + whole.digest()
        wanted.append([name, records.Kind.FILE, -5, data, whole.digest()])
    stream += records.END
    batch = _Batch()
    reader = RecordReader(batch)  # type: ignore[arg-type]
    for piece in pieces(bytes(stream), cuts):
        reader.feed(piece)
    reader.finish()
    assert batch.told == wanted


@given(st.binary(max_size=400), CUTS)
def test_knows_a_stream_that_was_cut(data: bytes, cuts: list[int]) -> None:
    whole = leaf_hash()
    whole.update(data)
    stream = records.MAGIC + records.encode_head(records.Kind.FILE, "f", len(data))
    stream += data + whole.digest()
    reader = RecordReader(_Batch())  # type: ignore[arg-type]
    for piece in pieces(stream, cuts):
        reader.feed(piece)
    with pytest.raises(InvalidInput, match="no end"):
        reader.finish()


@given(st.binary(max_size=300), CUTS)
def test_finds_the_file_of_a_form_wherever_it_is_cut(data: bytes, cuts: list[int]) -> None:
    data = data.replace(b"\r\n--B", b"")
    body = (
        b'--B\r\nContent-Disposition: form-data; name="x"\r\n\r\nno\r\n--B\r\n'
        b'Content-Disposition: form-data; name="file"; filename="a%20b"\r\n\r\n'
        + data
        + b"\r\n--B--\r\n{}"
    )
    part = FilePart(b"B")
    got = b"".join(part.feed(piece) for piece in pieces(body, cuts))
    part.finish()
    assert (got, part.file_name) == (data, "a%20b")


@pytest.mark.parametrize("content_type", ["", "text/plain", "multipart/form-data", "multipart/x"])
def test_wants_a_form(content_type: str) -> None:
    with pytest.raises(InvalidInput):
        boundary_of(content_type)


@given(st.binary(max_size=200))
def test_refuses_or_parses_any_head(noise: bytes) -> None:
    """Never anything but a head or a refusal."""
    for raw in (noise + b"\r\n\r\n", b"GET /" + noise + b" HTTP/1.1\r\nHost: x\r\n\r\n"):
        try:
            head = parse_head(raw)
        except InvalidInput:
            continue
        assert head.raw_path.startswith("/")


def test_keeps_a_request_sent_ahead_out_of_the_body() -> None:
    class _Link:
        pending = bytearray(b"bodyGET / HTTP/1.1")

    task = Task(_Link())  # type: ignore[arg-type]
    body, got = Body(task, 4, b""), bytearray()
    assert list(body.pump(got.extend)) == []
    assert (bytes(got), bytes(task.link.pending)) == (b"body", b"GET / HTTP/1.1")


def test_gives_no_account_more_than_its_share_of_the_threads() -> None:
    released, ran_other = threading.Event(), threading.Event()
    running: list[int] = []

    class _Poller:
        def await_head(self, link: object) -> None: ...

        def forget(self, link: object) -> None: ...

    def work(account_id: int) -> Steps:
        running.append(account_id)
        if account_id == 1:
            released.wait(PATIENCE_S)
        else:
            ran_other.set()
        return True
        yield 0

    pool = Pool("test", 3, _Poller(), most_per_account=2)  # type: ignore[arg-type]
    pool.start()
    for account_id in (1, 1, 1, 1, 1, 2):
        task = Task(None)  # type: ignore[arg-type]
        task.account_id, task.steps = account_id, work(account_id)
        pool.put(task)
    assert ran_other.wait(PATIENCE_S)
    assert running.count(1) <= 2
    released.set()
    pool.stop()
    for worker in pool.workers:
        worker.thread.join(PATIENCE_S)
    assert sorted(running) == [1, 1, 1, 1, 1, 2]
