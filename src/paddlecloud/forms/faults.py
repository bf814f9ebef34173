"""Collecting what is wrong with an input, so that a form can report all of it at once.

Every form makes one `FaultList`, adds to it while it reads, and ends with `raise_if_any`.
Every start of the command line imports this: it must stay as cheap as `core.errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from paddlecloud.core.errors import Fault, InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

_SHOWN_CHARACTERS = 60


class BadValue(ValueError):
    """A value is not allowed; the message says what is, in words fit for a user."""


class FaultList:
    """What was found wrong so far, in the order it was found."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def __len__(self) -> int:
        return len(self._faults)

    def __bool__(self) -> bool:
        return bool(self._faults)

    def add(self, field: str, problem: str, value: object = "") -> None:
        self._faults.append(Fault(field, problem, shorten(str(value))))

    def read(self, field: str, text: str, reader: Callable[[str], T]) -> T | None:
        """What `reader` makes of `text`; None and one more fault if it refuses it.

        Readers refuse with a ValueError whose message is a sentence about the value.
        """
        try:
            return reader(text)
        except ValueError as error:
            self.add(field, str(error), text)
            return None

    def raise_if_any(self, hint: str = "") -> None:
        if self._faults:
            raise InvalidInput(faults=self._faults, hint=hint)


def shorten(text: str) -> str:
    """At most a line's worth of what the user wrote, on one line."""
    flat = "".join(c if c.isprintable() else "\ufffd" for c in text[:200])
    return flat if len(flat) <= _SHOWN_CHARACTERS else flat[: _SHOWN_CHARACTERS - 1] + "…"


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word most like this one, or nothing if none is alike."""
    # Imported when a user has already mistyped something: it costs milliseconds at start.
    import difflib

    found = difflib.get_close_matches(word[:100], list(known), n=1, cutoff=0.6)
    return found[0] if found else ""
