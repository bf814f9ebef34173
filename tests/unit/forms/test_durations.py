from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.forms.durations import (
    MAX_DURATION_S,
    format_duration,
    parse_duration_s,
    parse_whole_seconds,
)
from paddlecloud.forms.faults import BadValue


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("90", 90),
        ("1.5", 1.5),
        ("90s", 90),
        ("10m", 600),
        ("2h", 7200),
        ("1d", 86400),
        ("250ms", 0.25),
        ("1h30m", 5400),
        ("1h30m15s", 5415),
        ("1m500ms", 60.5),
        ("0:10:00", 600),
        ("00:00:00", 0),
        ("1:2:3", 3723),
        ("1200:00:00", 1200 * 3600),
        (" 5m ", 300),
    ],
)
def test_reads_lengths_of_time(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "write H:M:S"),
        ("soon", "write H:M:S"),
        ("-5", "write H:M:S"),
        ("10:00", "write H:M:S"),  # minutes or hours?
        ("1:60:00", "write H:M:S"),
        ("1:00:60", "write H:M:S"),
        ("5 m", "write H:M:S"),
        ("1e3", "write H:M:S"),
        ("10M", "write H:M:S"),
        ("1w", "write H:M:S"),
        ("٣", "write H:M:S"),
        ("nan", "write H:M:S"),
        ("30m1h", "like 1h30m"),
        ("1h1h", "like 1h30m"),
        ("80000d", "200 years"),
        ("99999999999", "200 years"),
    ],
)
def test_refuses_other_texts_and_says_what_to_write(text: str, says: str) -> None:
    with pytest.raises(BadValue) as caught:
        parse_duration_s(text)
    assert says in str(caught.value)


@pytest.mark.parametrize(("text", "seconds"), [("1.2", 2), ("1ms", 1), ("3s", 3)])
def test_rounds_up_to_whole_seconds(text: str, seconds: int) -> None:
    assert parse_whole_seconds(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00:00"), (61, "0:01:01"), (360000, "100:00:00")]
)
def test_writes_hours_minutes_seconds(seconds: int, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(0, MAX_DURATION_S))
def test_reads_back_what_it_wrote(seconds: int) -> None:
    assert parse_whole_seconds(format_duration(seconds)) == seconds
