"""Sizes and counts for people: `83 kB`, `1.2 GB`, `14 files`.

Decimal units, as in the transcripts of the documentation. It never rounds a size to zero.
"""

from __future__ import annotations


def of_bytes(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    value = float(count)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        if value < 999.5 or unit == "TB":
            break
    return f"{value:.1f} {unit}" if value < 9.95 and unit != "kB" else f"{max(value, 1):.0f} {unit}"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
