"""Lengths of time as users write them: `1:30:00`, `90s`, `10m`, `2h`, `1h30m`, `90`.

Used for wall times and grace periods. Bad text raises `BadValue` with a sentence for the user.
"""

from __future__ import annotations

import re

from paddlecloud.forms.faults import BadValue

# Longer is a slip of the finger. Scripts do write 999999:00:00, and mean "for ever".
MAX_DURATION_S = 200 * 366 * 24 * 3600

_CLOCK = re.compile(r"(\d{1,12}):([0-5]?\d):([0-5]?\d)", re.ASCII)
_UNITS_S = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(r"(\d{1,12}(?:\.\d{0,9})?)(ms|[dhms])", re.ASCII)
_PLAIN = re.compile(r"\d{1,12}(?:\.\d{0,9})?", re.ASCII)
_ADVICE = "write H:M:S such as 1:30:00, or 90s, 10m, 2h, or plain seconds"


def parse_duration_s(text: str) -> float:
    """Seconds. Units may be joined, largest first (`1h30m`)."""
    text = text.strip()
    seconds = _read(text)
    if seconds > MAX_DURATION_S:
        raise BadValue(f"is longer than {MAX_DURATION_S // (366 * 24 * 3600)} years")
    return seconds


def _read(text: str) -> float:
    clock = _CLOCK.fullmatch(text)
    if clock:
        hours, minutes, seconds = (int(part) for part in clock.groups())
        return float(hours * 3600 + minutes * 60 + seconds)
    if _PLAIN.fullmatch(text):
        return float(text)
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise BadValue(f"is not a length of time; {_ADVICE}")
    sizes = [_UNITS_S[unit] for _, unit in parts]
    if sizes != sorted(set(sizes), reverse=True):
        raise BadValue("names its units out of order or twice; write it like 1h30m")
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts)


def parse_whole_seconds(text: str) -> int:
    """As `parse_duration_s`, in whole seconds; a fraction of a second is rounded up."""
    seconds = parse_duration_s(text)
    return int(seconds) + (seconds > int(seconds))


def format_duration(seconds: int) -> str:
    """`H:MM:SS`, the spelling every generation reads."""
    minutes, rest = divmod(seconds, 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
