"""Numbers and switches as text. Every verb of the command line imports this: keep it light."""

from __future__ import annotations

import re
from collections.abc import Callable

from paddlecloud.forms.faults import BadValue

_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_TRUE = frozenset({"1", "t", "true", "y", "yes", "on"})
_FALSE = frozenset({"0", "f", "false", "n", "no", "off"})


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """A reader of whole numbers from `low` to `high`."""

    def read(text: str) -> int:
        text = text.strip()
        if not _NUMBER.fullmatch(text) or not low <= int(text) <= high:
            raise BadValue(f"must be a whole number from {low} to {high}")
        return int(text)

    return read


def read_bool(text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE and word not in _FALSE:
        raise BadValue("must be true or false")
    return word in _TRUE
