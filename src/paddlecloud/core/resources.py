"""Quantities as users write them (`500m`, `10Gi`, `1e3`) and bundles of them.

CPU is held in thousandths of a core, memory in bytes, GPUs in whole cards: integers only, so
that sums are exact. Bad text raises `BadQuantity` with a sentence fit for a user.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_FORM = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,3})|([A-Za-z]*))")
_MAX_TEXT = 64

MAX_CPU_MILLI = 1_000_000 * 1000  # a million cores
MAX_MEMORY_BYTES = 2**60  # 1 Ei
MAX_GPUS = 100_000


class BadQuantity(ValueError):
    """The text is not a quantity; the message says what is wrong and what to write."""


def _suffix_advice(digits: str, suffix: str) -> str:
    bare = suffix.removesuffix("B").removesuffix("b").removesuffix("i")
    letter = "k" if bare.upper() == "K" else bare.upper()
    if letter in _DECIMAL and letter != suffix:
        binary = "Ki" if letter == "k" else f"{letter}i"
        return (
            f"unknown suffix {suffix}; write {digits}{binary} (binary) or "
            f"{digits}{letter} (decimal)"
        )
    return f"unknown suffix {suffix}; allowed are m k M G T P E and Ki Mi Gi Ti Pi Ei"


def parse_number(text: str) -> Decimal:
    """The exact value of a quantity, `500m` → 0.5, `10Gi` → 10737418240."""
    text = text.strip()
    if not text:
        raise BadQuantity("is empty; write a number such as 1, 500m or 10Gi")
    if len(text) > _MAX_TEXT:
        raise BadQuantity(f"is {len(text)} characters long; at most {_MAX_TEXT} are read")
    match = _FORM.fullmatch(text) if text.isascii() else None
    if match is None:
        raise BadQuantity("is not a quantity; write a number such as 1, 500m, 10Gi or 1e3")
    sign, digits, exponent, suffix = match.groups()
    if sign == "-" and Decimal(digits) != 0:
        raise BadQuantity("is negative; it must be 0 or more")
    value = Decimal(digits)
    if exponent is not None:
        if abs(int(exponent)) > 30:
            raise BadQuantity(f"has the exponent {exponent}; at most 30 is understood")
        return value.scaleb(int(exponent))
    if not suffix:
        return value
    if suffix == "m":
        return value / 1000
    factor = _BINARY.get(suffix) or _DECIMAL.get(suffix)
    if factor is None:
        raise BadQuantity(_suffix_advice(digits, suffix))
    return value * factor


def _ceil(value: Decimal) -> int:
    whole = int(value)
    return whole + (value > whole)


def parse_cpu(text: str) -> int:
    """Thousandths of a core. Finer than 1m is rounded up, as Kubernetes does."""
    milli = _ceil(parse_number(text) * 1000)
    if milli > MAX_CPU_MILLI:
        raise BadQuantity(f"is more than {MAX_CPU_MILLI // 1000} cores")
    return milli


def parse_memory(text: str) -> int:
    """Bytes. A fraction of a byte is rounded up."""
    size_bytes = _ceil(parse_number(text))
    if size_bytes > MAX_MEMORY_BYTES:
        raise BadQuantity("is more than 1Ei")
    return size_bytes


def parse_gpus(text: str) -> int:
    value = parse_number(text)
    if value != int(value):
        raise BadQuantity("must be a whole number of cards")
    if value > MAX_GPUS:
        raise BadQuantity(f"is more than {MAX_GPUS} cards")
    return int(value)


def format_cpu(milli: int) -> str:
    return str(milli // 1000) if milli % 1000 == 0 else f"{milli}m"


def format_memory(size_bytes: int) -> str:
    """The shortest exact spelling: 1073741824 → `1Gi`, 1000 → `1000`."""
    for suffix, factor in reversed(_BINARY.items()):
        if size_bytes and size_bytes % factor == 0:
            return f"{size_bytes // factor}{suffix}"
    return str(size_bytes)


@dataclass(frozen=True, slots=True)
class Resources:
    """What one replica needs, or what a machine has, or a sum of either."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    gpu: int = 0

    def __add__(self, other: Resources) -> Resources:
        return Resources(
            self.cpu_milli + other.cpu_milli,
            self.memory_bytes + other.memory_bytes,
            self.gpu + other.gpu,
        )

    def __sub__(self, other: Resources) -> Resources:
        return Resources(
            self.cpu_milli - other.cpu_milli,
            self.memory_bytes - other.memory_bytes,
            self.gpu - other.gpu,
        )

    def __mul__(self, count: int) -> Resources:
        return Resources(self.cpu_milli * count, self.memory_bytes * count, self.gpu * count)

    def fits(self, free: Resources) -> bool:
        """Whether this need is covered; what is not asked for is never short."""
        return not self.shortages(free)

    def shortages(self, free: Resources) -> tuple[str, ...]:
        """The names of the resources of which `free` has too little."""
        return tuple(
            name
            for name, need, have in (
                ("cpu", self.cpu_milli, free.cpu_milli),
                ("memory", self.memory_bytes, free.memory_bytes),
                ("gpu", self.gpu, free.gpu),
            )
            if need > 0 and need > have
        )

    def to_json(self) -> dict[str, str | int]:
        return {
            "cpu": format_cpu(self.cpu_milli),
            "memory": format_memory(self.memory_bytes),
            "gpu": self.gpu,
        }
