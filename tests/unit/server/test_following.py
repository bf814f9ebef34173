"""Pieces of a log as followers get them."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.jobspec import Role
from paddlecloud.core.observed import ReplicaKey
from paddlecloud.engines.protocols import LogSlice
from paddlecloud.server.following import make_piece

KEY = ReplicaKey("job-0000000000000000", 1, Role.TRAINER, 0, 2)


def _follow(log: bytes, step: int) -> tuple[str, int]:
    """What a follower reads in steps of so many bytes, and how many pieces it took."""
    text, cursor, pieces = "", 0, 0
    while True:
        part = log[cursor : cursor + step]
        piece = make_piece(KEY, LogSlice(cursor, cursor + len(part), len(log), part, ended=True))
        pieces += 1
        for line in piece.lines.splitlines():
            row = json.loads(line)
            assert (row["replica"], row["attempt"]) == ("trainer-0", 2)
            assert row["cursor"] == piece.next
            text += row["data"]
        cursor = piece.next
        if piece.is_end:
            return text, pieces


@given(text=st.text(), step=st.integers(4, 50))
def test_no_character_is_cut_in_two(text: str, step: int) -> None:
    assert _follow(text.encode(), step)[0] == text


@given(log=st.binary(), step=st.integers(4, 50))
def test_bytes_that_are_no_text_still_arrive_and_end(log: bytes, step: int) -> None:
    text, pieces = _follow(log, step)
    assert pieces <= len(log) + 1
    assert text.isascii() or len(text) <= len(log)


def test_a_gap_is_told_before_what_follows_it() -> None:
    piece = make_piece(KEY, LogSlice(10, 30, 30, b"after", dropped_bytes=15, ended=False))
    rows = [json.loads(line) for line in piece.lines.splitlines()]
    assert rows == [
        {"replica": "trainer-0", "attempt": 2, "dropped_bytes": 15},
        {"replica": "trainer-0", "attempt": 2, "cursor": 30, "data": "after"},
    ]
    assert not piece.is_end


def test_an_end_that_cuts_a_character_is_still_an_end() -> None:
    data = "né".encode()[:-1]
    piece = make_piece(KEY, LogSlice(0, len(data), len(data), data, ended=True))
    assert piece.is_end
    assert json.loads(piece.lines)["data"] == "n\N{REPLACEMENT CHARACTER}"
