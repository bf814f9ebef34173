"""Words to write an allow-list with: what of an object from outside may stay, pure.

A rule takes a value and its path and gives back what may stay of it, or NOTHING; what it does not
give back it has refused, by path. `fields` is the heart: an object has these fields and no others,
and null is the same as left out. `pod_allowance` writes the list for pod templates with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from paddlecloud.forms.faults import shorten

Refuse = Callable[[str, str], None]  # (path, what is wrong)
Rule = Callable[[Any, str, Refuse], Any]  # the value that may stay, or NOTHING

MOST_ITEMS = 1000
MAX_TEXT = 65536
NOTHING: Any = object()
_QUANTITY = re.compile(r"\d{1,18}(\.\d{1,9})?(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei)?")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def text(allowed: re.Pattern[str] | None = None, problem: str = "is not allowed here") -> Rule:
    def rule(value: Any, where: str, refuse: Refuse) -> Any:
        if not isinstance(value, str) or len(value) > MAX_TEXT or "\0" in value:
            refuse(where, f"must be a text of at most {MAX_TEXT} characters")
        elif allowed is not None and not allowed.fullmatch(value):
            refuse(where, f"{problem}: {shorten(value)}")
        else:
            return value
        return NOTHING

    return rule


def whole(low: int, high: int) -> Rule:
    def rule(value: Any, where: str, refuse: Refuse) -> Any:
        if _is_whole(value) and low <= value <= high:
            return value
        refuse(where, f"must be a whole number from {low} to {high}")
        return NOTHING

    return rule


def flag(value: Any, where: str, refuse: Refuse) -> Any:
    if isinstance(value, bool):
        return value
    refuse(where, "must be true or false")
    return NOTHING


def only(harmless: object) -> Rule:
    """The one value that gives nothing away; others are refused."""

    def rule(value: Any, where: str, refuse: Refuse) -> Any:
        if value is harmless:
            return value
        refuse(where, f"may not be anything but {str(harmless).lower()}")
        return NOTHING

    return rule


def choice(*allowed: str) -> Rule:
    def rule(value: Any, where: str, refuse: Refuse) -> Any:
        if isinstance(value, str) and value in allowed:
            return value
        refuse(where, f"must be one of {', '.join(allowed)}")
        return NOTHING

    return rule


def listed(each: Rule) -> Rule:
    def rule(value: Any, where: str, refuse: Refuse) -> Any:
        if not isinstance(value, list) or len(value) > MOST_ITEMS:
            refuse(where, f"must be a list of at most {MOST_ITEMS}")
            return NOTHING
        kept = [each(item, f"{where}[{number}]", refuse) for number, item in enumerate(value)]
        return [item for item in kept if item is not NOTHING]

    return rule


def pairs(check_key: Callable[[str], str], each: Rule) -> Rule:
    """An object whose keys are the tenant's own; `check_key` says what is wrong with one."""

    def rule(value: Any, where: str, refuse: Refuse) -> Any:
        if not isinstance(value, Mapping) or len(value) > MOST_ITEMS:
            refuse(where, f"must be an object of at most {MOST_ITEMS} entries")
            return NOTHING
        kept = {}
        for key, item in value.items():
            place = f"{where}[{shorten(str(key))}]"
            problem = check_key(key) if isinstance(key, str) else "must be a text"
            if problem:
                refuse(place, problem)
            elif (found := each(item, place, refuse)) is not NOTHING:
                kept[key] = found
        return kept

    return rule


def fields(table: Mapping[str, Rule]) -> Rule:
    """An object with these fields and no others."""

    def rule(value: Any, where: str, refuse: Refuse) -> Any:
        if not isinstance(value, Mapping):
            refuse(where, "must be an object")
            return NOTHING
        kept = {}
        for key, item in value.items():
            place = f"{where}.{shorten(str(key))}"
            if key not in table:
                refuse(place, "is not allowed in a job that is sent through the server")
            elif item is not None and (found := table[key](item, place, refuse)) is not NOTHING:
                kept[key] = found
        return kept

    return rule


def quantity(value: Any, where: str, refuse: Refuse) -> Any:
    if (_is_whole(value) and 0 <= value < 10**18) or (
        isinstance(value, str) and _QUANTITY.fullmatch(value)
    ):
        return value
    if isinstance(value, float) and 0 <= value < 10**15:
        return value
    refuse(where, "must be an amount such as 2, 500m or 10Gi")
    return NOTHING


def path(*, is_absolute: bool) -> Rule:
    """A path that leads nowhere else: no `..`, no variable, no drive."""

    def rule(value: Any, where: str, refuse: Refuse) -> Any:
        text = value if isinstance(value, str) and len(value) < 4096 else ""
        is_plain = not set(text) & set("\0\n\\:$") and ".." not in text.split("/")
        if text and is_plain and text.startswith("/") == is_absolute:
            return text
        kind = "an absolute" if is_absolute else "a relative"
        refuse(where, f"must be {kind} path without .. in it")
        return NOTHING

    return rule
