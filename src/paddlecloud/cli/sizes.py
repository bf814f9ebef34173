"""Sizes and counts for people: `83 kB`, `1.2 GB`, `2.0 GiB`, `14 files`.

Packages are told in decimal units, transfers in binary ones, as in the transcripts of the
documentation. It never rounds a size to zero.
"""

from __future__ import annotations

from collections.abc import Mapping


def of_bytes(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    value = float(count)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        if value < 999.5 or unit == "TB":
            break
    return f"{value:.1f} {unit}" if value < 9.95 and unit != "kB" else f"{max(value, 1):.0f} {unit}"


_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")


def binary_unit(count: int) -> int:
    """Which unit `binary` would choose, as the power of 1024."""
    power = 0
    while power < len(_BINARY) - 1 and count >= 999.5 * 1024**power:
        power += 1
    return power


def binary_number(count: int, power: int) -> str:
    """`1.2`, without its unit."""
    if power == 0:
        return f"{count:,}"
    value = count / 1024**power
    return f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


def binary(count: int, beside: int = 0) -> str:
    """`0.8 GiB`. In the unit of the number it stands beside, unless it is too small for that."""
    power = max(binary_unit(count), binary_unit(beside))
    while power and count < 0.1 * 1024**power:
        power -= 1
    return f"{binary_number(count, power)} {_BINARY[power]}"


def binary_of(part: int, whole: int) -> str:
    """`1.2 of 2.0 GiB`: how far something is; at its start `0.0 of 2.0 GiB`."""
    power = binary_unit(whole)
    return f"{binary_number(part, power)} of {binary_number(whole, power)} {_BINARY[power]}"


def roles(counts: Mapping[str, int]) -> str:
    """`2 trainers + 2 pservers`: how many of each role."""
    return " + ".join(counted(count, role) for role, count in counts.items())


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
