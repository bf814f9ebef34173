"""Times for people: RFC 3339 as the server sends it, made short or relative.

It promises: no output depends on the local time zone. Called by the verbs. It never reads a clock
except in `since`.
"""

from __future__ import annotations

import time


def whole_seconds(stamp: str | None) -> str | None:
    """`2026-11-15T07:52:45.120Z` → `2026-11-15T07:52:45Z`, the spelling of the old tables."""
    if not stamp:
        return None
    head, dot, _ = stamp.partition(".")
    return head + "Z" if dot else stamp


def for_reading(stamp: str | None) -> str:
    """`2026-11-15 07:52:45`"""
    return (whole_seconds(stamp) or "").replace("T", " ").removesuffix("Z")


def seconds_of(stamp: str) -> float:
    """Unix seconds."""
    from datetime import datetime

    return datetime.fromisoformat(stamp).timestamp()


def between_s(start: str, end: str) -> float:
    return max(0.0, seconds_of(end) - seconds_of(start))


def since_s(stamp: str) -> float:
    return max(0.0, time.time() - seconds_of(stamp))


def age(stamp: str | None) -> str:
    """How long ago, for a table: `41s`, `3m`, `5h`, `2d`."""
    return coarse(since_s(stamp)) if stamp else ""


def coarse(seconds: float) -> str:
    """One unit, rounded down."""
    whole = int(seconds)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def fine(seconds: float) -> str:
    """Two units: `3m12s`, `1h5m`, `0.4s`."""
    if seconds < 10:
        return f"{seconds:.1f}s".replace(".0s", "s")
    whole = int(seconds)
    for size, unit, rest_size, rest_unit in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "m"),
        (60, "m", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // rest_size
            return f"{whole // size}{unit}" + (f"{rest}{rest_unit}" if rest else "")
    return f"{whole}s"
