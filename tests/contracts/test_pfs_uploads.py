"""What every file store promises: unfinished uploads are found again and become files whole."""

from __future__ import annotations

import os
import threading

import pytest
from xxhash import xxh3_128_digest

from paddlecloud.core.errors import (
    Conflict,
    InvalidInput,
    NotFound,
)
from paddlecloud.pfs.faults import DifferentLeaves, MissingLeaves
from paddlecloud.pfs.receiving import Receiver
from paddlecloud.pfs.shapes import UploadWish
from paddlecloud.wire.digests import LEAF_BYTES
from tests.storing import (
    ANN,
    BOB,
    Bench,
    at,
    digest_of,
    leaves_of,
)


def _wish(data: bytes, relative: str = "f", source: str = "laptop") -> UploadWish:
    return UploadWish(at(relative), len(data), source=source)


def test_a_cut_upload_is_found_again_and_goes_on_in_the_middle_of_a_leaf(bench: Bench):
    data = os.urandom(3 * LEAF_BYTES + 100)
    upload = bench.store.begin_upload(ANN, _wish(data))
    receiver = upload.receive(0, len(data))
    receiver.write(data[: 2 * LEAF_BYTES + 5])
    receiver.cut()
    bench.reopen()
    again = bench.store.begin_upload(ANN, _wish(data))
    assert again.id == upload.id
    assert again.received() == list(enumerate(leaves_of(data)[:2]))
    with pytest.raises(MissingLeaves) as error:
        again.commit(digest_of(data))
    assert error.value.to_json()["missing"] == [2, 3]
    assert again.to_json()["begun"] == [[2, 5]]
    assert bench.store.uploads(ANN)[0].received_bytes == 2 * LEAF_BYTES + 5
    receiver = again.receive(2 * LEAF_BYTES + 5, LEAF_BYTES + 95)
    receiver.write(data[2 * LEAF_BYTES + 5 :])
    assert receiver.finish() == leaves_of(data)[2:]
    assert again.to_json()["begun"] == []
    again.commit(digest_of(data))
    assert bench.get("f") == data
    assert bench.leftovers() == []


def test_checks_are_of_whole_leaves_also_after_a_cut(bench: Bench):
    data = os.urandom(2 * LEAF_BYTES + 100)
    upload = bench.store.begin_upload(ANN, _wish(data))
    receiver = upload.receive(0, len(data), checks=True)
    receiver.write(data[: LEAF_BYTES + 5])
    receiver.cut()
    assert receiver.checks == [xxh3_128_digest(data[:LEAF_BYTES])]
    receiver = upload.receive(LEAF_BYTES + 5, LEAF_BYTES + 95, checks=True)
    receiver.write(data[LEAF_BYTES + 5 :])
    assert receiver.finish() == leaves_of(data)[1:]
    leaves = data[LEAF_BYTES : 2 * LEAF_BYTES], data[2 * LEAF_BYTES :]
    assert receiver.checks == [xxh3_128_digest(leaf) for leaf in leaves]


def test_an_empty_file_has_the_check_of_nothing(bench: Bench):
    receiver = bench.store.begin_upload(ANN, _wish(b"")).receive(0, 0, checks=True)
    assert receiver.finish() == leaves_of(b"")
    assert receiver.checks == [xxh3_128_digest(b"")]


def test_nobody_pays_for_checks_that_were_not_asked_for(bench: Bench):
    data = os.urandom(1000)
    receiver = bench.store.begin_upload(ANN, _wish(data)).receive(0, len(data))
    receiver.write(data)
    receiver.finish()
    assert receiver.checks == []


def test_a_leaf_that_was_cut_may_be_sent_from_anywhere_before_the_cut(bench: Bench):
    data = os.urandom(LEAF_BYTES)
    upload = bench.store.begin_upload(ANN, _wish(data))
    for first, end in ((0, 1000), (1000, 3000), (2000, 2500), (0, 10), (10, 4000)):
        receiver = upload.receive(first, len(data) - first)
        receiver.write(data[first:end])
        receiver.cut()
        assert upload.to_json()["begun"] == [[0, end]]
    with pytest.raises(InvalidInput, match="where a leaf that is begun goes on"):
        upload.receive(4001, len(data) - 4001)
    receiver = upload.receive(4000, len(data) - 4000)
    receiver.write(data[4000:])
    assert receiver.finish() == leaves_of(data)
    # Whole by now: who heard before that it was cut may still go on.
    late = upload.receive(4000, len(data) - 4000)
    late.write(b"!")
    late.cut()
    assert (upload.received(), upload.to_json()["begun"]) == ([], [[0, 4001]])
    late = upload.receive(4000, len(data) - 4000)
    late.write(data[4000:])
    late.finish()
    upload.commit(digest_of(data))
    assert bench.get("f") == data


def test_wrong_bytes_before_a_cut_are_found_when_the_leaf_is_whole(bench: Bench):
    data = os.urandom(LEAF_BYTES)
    upload = bench.store.begin_upload(ANN, _wish(data))
    receiver = upload.receive(0, len(data))
    receiver.write(b"wrong" + data[5:100])
    receiver.cut()
    receiver = upload.receive(100, len(data) - 100)
    receiver.write(data[100:])
    assert receiver.finish() != leaves_of(data)
    with pytest.raises(DifferentLeaves):
        upload.commit(digest_of(data))


def test_nothing_is_seen_before_the_commit(bench: Bench):
    bench.put("f", b"old")
    data = b"new and longer"
    upload = bench.store.begin_upload(ANN, _wish(data))
    receiver = upload.receive(0, len(data))
    receiver.write(data)
    receiver.finish()
    assert bench.get("f") == b"old"
    assert bench.names() == ["f"]
    upload.commit(digest_of(data))
    assert bench.get("f") == data


def test_refuses_bytes_that_differ_and_says_where(bench: Bench):
    data = os.urandom(LEAF_BYTES + 10)
    flipped = bytes([data[0] ^ 1]) + data[1:]
    upload = bench.store.begin_upload(ANN, _wish(data))
    receiver = upload.receive(0, len(data))
    receiver.write(flipped)
    receiver.finish()
    with pytest.raises(DifferentLeaves) as error:
        upload.commit(digest_of(data))
    assert error.value.leaves == [leaf.hex() for leaf in leaves_of(flipped)]
    receiver = upload.receive(0, LEAF_BYTES)
    receiver.write(data[:LEAF_BYTES])
    receiver.finish()
    upload.commit(digest_of(data))
    assert bench.get("f") == data


def test_a_commit_can_be_repeated(bench: Bench):
    data = b"once"
    upload = bench.store.begin_upload(ANN, _wish(data))
    upload.receive(0, 4).write(data)
    first = upload.commit(digest_of(data))
    assert bench.store.upload(ANN, upload.id).commit(digest_of(data)) == first


def test_takes_leaves_from_the_file_it_replaces(bench: Bench):
    data = os.urandom(3 * LEAF_BYTES)
    bench.put("f", data)
    changed = data[:LEAF_BYTES] + os.urandom(LEAF_BYTES) + data[2 * LEAF_BYTES :]
    upload = bench.store.begin_upload(ANN, _wish(changed))
    leaves = leaves_of(changed)
    assert upload.reuse([0, 2]) == [(0, leaves[0]), (2, leaves[2])]
    receiver = upload.receive(LEAF_BYTES, LEAF_BYTES)
    receiver.write(changed[LEAF_BYTES : 2 * LEAF_BYTES])
    receiver.finish()
    upload.commit(digest_of(changed))
    assert bench.get("f") == changed


def test_a_newer_connection_takes_over_the_leaves_of_an_older(bench: Bench):
    data = os.urandom(2 * LEAF_BYTES)
    upload = bench.store.begin_upload(ANN, _wish(data))
    dead = upload.receive(0, len(data))
    dead.write(b"\0" * 1000)
    alive = upload.receive(0, len(data))
    alive.write(data)
    with pytest.raises(Conflict):
        dead.write(b"\0" * 1000)
    assert alive.finish() == leaves_of(data)
    upload.commit(digest_of(data))
    assert bench.get("f") == data


def test_two_connections_send_one_file_and_a_third_replaces_the_oldest(bench: Bench):
    data = os.urandom(4 * LEAF_BYTES)
    upload = bench.store.begin_upload(ANN, _wish(data))
    ranges = [(0, 2 * LEAF_BYTES), (2 * LEAF_BYTES, 3 * LEAF_BYTES), (3 * LEAF_BYTES, len(data))]
    first, second, third = (upload.receive(start, end - start) for start, end in ranges)
    with pytest.raises(Conflict):
        first.write(data[:10])

    def send_range(receiver: Receiver, start: int, end: int) -> None:
        for n in range(start, end, 100_000):
            receiver.write(data[n : min(n + 100_000, end)])
        receiver.finish()

    threads = [
        threading.Thread(target=send_range, args=(receiver, *span))
        for receiver, span in zip((second, third), ranges[1:], strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    send_range(upload.receive(0, 2 * LEAF_BYTES), *ranges[0])
    upload.commit(digest_of(data))
    assert bench.get("f") == data


@pytest.mark.parametrize(
    ("offset", "length"),
    [(1, 5), (-1, 5), (0, 5), (0, LEAF_BYTES + 1), (LEAF_BYTES * 9, 1), (0, 0)],
)
def test_refuses_a_body_that_is_not_whole_leaves(bench: Bench, offset: int, length: int):
    upload = bench.store.begin_upload(ANN, UploadWish(at("f"), 2 * LEAF_BYTES, source="x"))
    with pytest.raises(InvalidInput):
        upload.receive(offset, length)


def test_lists_and_abandons_unfinished_uploads(bench: Bench):
    upload = bench.store.begin_upload(ANN, _wish(b"12345"))
    (row,) = bench.store.uploads(ANN)
    assert (row.id, row.path, row.size_bytes, row.received_bytes) == (upload.id, str(at("f")), 5, 0)
    assert bench.store.uploads(BOB) == []
    with pytest.raises(NotFound):
        bench.store.upload(BOB, upload.id)
    upload.abandon()
    assert bench.store.uploads(ANN) == []
    assert bench.leftovers() == []


def test_sweeps_uploads_nobody_came_back_for(bench: Bench):
    bench.store.begin_upload(ANN, _wish(b"12345"))
    assert bench.store.sweep() == 0
    assert bench.store.sweep(forgotten_s=-1) == 1
    assert bench.leftovers() == []
    assert bench.used() == (0, 0)


def test_after_a_reboot_believes_only_bytes_it_has_read_again(bench: Bench):
    data = os.urandom(2 * LEAF_BYTES)
    upload = bench.store.begin_upload(ANN, _wish(data))
    receiver = upload.receive(0, len(data))
    receiver.write(data)
    receiver.finish()
    note = next(bench.parts.glob("up-*.json"))
    note.write_text(note.read_text().replace('"boot": "', '"boot": "another-'))
    with next(bench.parts.glob(f"up-{upload.id}")).open("r+b") as file:
        file.write(b"lost by the power cut")
    bench.reopen()
    again = bench.store.begin_upload(ANN, _wish(data))
    assert [index for index, _ in again.received()] == [1]
