"""Drafts of the first protocol's files when the server ends in between."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddlecloud.pfs import legacy_notes
from paddlecloud.pfs.legacy_files import LegacyFiles
from tests.old_chunks import CHUNK, Clock, F, bench, clock, files, post, quiet, upload
from tests.storing import ANN, Bench, at

__all__ = ["bench", "clock", "files"]  # fixtures

DATA = os.urandom(5 * CHUNK + 17)


def _restarted(bench: Bench, clock: Clock) -> LegacyFiles:
    """As after kill -9: nothing is told to the old process."""
    bench.reopen()
    return LegacyFiles(bench.store, clock)


def test_sends_only_what_has_not_arrived_when_the_command_is_run_again(
    bench: Bench, files: LegacyFiles, clock: Clock
):
    upload(files, DATA, until=3)
    again = _restarted(bench, clock)
    assert upload(again, DATA) == [3 * CHUNK, 4 * CHUNK, 5 * CHUNK]
    assert bench.get("f") == DATA
    assert bench.leftovers() == []


def test_publishes_for_a_client_that_goes_on_as_if_nothing_had_happened(
    bench: Bench, files: LegacyFiles, clock: Clock
):
    upload(files, DATA, until=4)
    again = _restarted(bench, clock)
    for offset in (4 * CHUNK, 5 * CHUNK):
        post(again, ANN, F, offset, DATA[offset : offset + CHUNK])
    assert bench.get("f") == DATA


def test_publishes_what_was_whole_but_for_the_silence(
    bench: Bench, files: LegacyFiles, clock: Clock
):
    bench.put("f", b"o" * 2 * CHUNK)
    post(files, ANN, F, 0, b"n" * CHUNK)
    again = _restarted(bench, clock)
    assert bench.get("f") == b"o" * 2 * CHUNK
    quiet(again, clock)
    assert bench.get("f") == b"n" * CHUNK + b"o" * CHUNK
    assert bench.leftovers() == []


def test_a_server_that_is_asked_to_end_keeps_them_too(
    bench: Bench, files: LegacyFiles, clock: Clock
):
    upload(files, DATA, until=3)
    files.flush()
    assert upload(_restarted(bench, clock), DATA) == [3 * CHUNK, 4 * CHUNK, 5 * CHUNK]


def test_counts_them_against_the_quota_after_a_restart(
    bench: Bench, files: LegacyFiles, clock: Clock
):
    upload(files, DATA, until=1)
    again = _restarted(bench, clock)
    assert bench.used() == (len(DATA), 1)
    again.touch(ANN, F, CHUNK)  # another size: the old draft goes
    assert bench.used() == (CHUNK, 1)


def test_does_not_believe_a_draft_after_a_reboot(
    bench: Bench, files: LegacyFiles, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    upload(files, DATA, until=3)
    monkeypatch.setattr(legacy_notes, "boot_id", lambda: "another")
    again = _restarted(bench, clock)
    assert bench.leftovers() == []
    assert bench.used() == (0, 0)
    assert len(upload(again, DATA)) == 6


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"settled": 3}', '{"settled": [], "asked": []}']
)
def test_a_spoilt_note_makes_its_draft_a_leftover(
    bench: Bench, files: LegacyFiles, clock: Clock, content: str
):
    upload(files, DATA, until=3)
    (note,) = _notes(bench)
    note.write_text(content)
    again = _restarted(bench, clock)
    assert bench.leftovers() == []
    assert len(upload(again, DATA)) == 6


def test_leaves_no_note_behind(bench: Bench, files: LegacyFiles, clock: Clock):
    upload(files, DATA)
    upload(files, DATA[:CHUNK])
    quiet(files, clock)
    files.touch(ANN, at("g"), CHUNK)
    files.touch(ANN, at("g"), 2 * CHUNK)
    assert len(_notes(bench)) == 1
    upload_g = b"g" * 2 * CHUNK
    for offset in (0, CHUNK):
        post(files, ANN, at("g"), offset, upload_g[offset : offset + CHUNK])
    assert _notes(bench) == []


def _notes(bench: Bench) -> list[Path]:
    return sorted(bench.parts.glob("*.json"))
