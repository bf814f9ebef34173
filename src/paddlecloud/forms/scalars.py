"""Numbers and switches as text. Every verb of the command line imports this: keep it light."""

from __future__ import annotations

from collections.abc import Callable

from paddlecloud.forms.faults import BadValue

_MAX_DIGITS = 18
_TRUE = frozenset({"1", "t", "true", "y", "yes", "on"})
_FALSE = frozenset({"0", "f", "false", "n", "no", "off"})


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """A reader of whole numbers from `low` to `high`."""

    def read(text: str) -> int:
        text = text.strip()
        if not _is_number(text) or not low <= int(text) <= high:
            raise BadValue(f"must be a whole number from {low} to {high}")
        return int(text)

    return read


def _is_number(text: str) -> bool:
    """Without `int`'s kindness (underscores, digits of all scripts) and without importing `re`."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    return len(digits) <= _MAX_DIGITS and digits.isascii() and digits.isdigit()


def read_bool(text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE and word not in _FALSE:
        raise BadValue("must be true or false")
    return word in _TRUE
