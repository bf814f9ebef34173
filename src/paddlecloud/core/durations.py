"""Durations as people read them: `41s`, `12m`, `1h5m`, `2d4h`."""

from __future__ import annotations

import math

_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def format_duration(duration_s: float, *, up: bool = False) -> str:
    """Whole units, at most two of them, minutes alone below an hour. `up` rounds up.

    Round down what has passed or is left, and round up what somebody has to wait.
    """
    left = max(0, math.ceil(duration_s) if up else int(duration_s))
    # The smallest unit that is shown: seconds below a minute, minutes below a day, then hours.
    grain = 1 if left < 60 else 60 if left < 86400 else 3600
    left = (left + grain - 1) // grain * grain if up else left // grain * grain
    words = ""
    for suffix, unit in _UNITS:
        count, left = divmod(left, unit)
        if count:
            words += f"{count}{suffix}"
    return words or "0s"
