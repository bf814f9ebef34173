from __future__ import annotations

import pytest

from paddlecloud.core.durations import format_duration


@pytest.mark.parametrize(
    ("duration_s", "down", "up"),
    [
        (-5, "0s", "0s"),
        (0, "0s", "0s"),
        (0.4, "0s", "1s"),
        (41.2, "41s", "42s"),
        (59.9, "59s", "1m"),
        (60, "1m", "1m"),
        (61, "1m", "2m"),
        (719, "11m", "12m"),
        (3599, "59m", "1h"),
        (3600, "1h", "1h"),
        (3900, "1h5m", "1h5m"),
        (86399, "23h59m", "1d"),
        (90000, "1d1h", "1d1h"),
        (90001, "1d1h", "1d2h"),
        (30 * 86400, "30d", "30d"),
    ],
)
def test_writes_durations_in_whole_units(duration_s: float, down: str, up: str) -> None:
    assert format_duration(duration_s) == down
    assert format_duration(duration_s, up=True) == up
