"""What an output stream is: a terminal with a width and colours, or a pipe with neither.

It promises: colour only on a terminal, never with NO_COLOR or TERM=dumb. Called by the verbs. It
never imports anything to find out (`shutil` would cost every start of the command line).
"""

from __future__ import annotations

import os
import sys

_CODES = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36"}
_CODES.update({"bold": "1", "dim": "2"})
REPLICA_COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "red")
FALLBACK_COLUMNS = 80


class Terminal:
    """One output stream, looked at once."""

    def __init__(self, stream: object = None) -> None:
        stream = sys.stdout if stream is None else stream
        # An old Windows console would show the escape sequences instead of obeying them.
        is_old = sys.platform == "win32" and not (
            os.environ.get("WT_SESSION") or os.environ.get("TERM")
        )
        self.is_terminal = _is_terminal(stream) and not is_old
        self._stream = stream
        self.has_colour = (
            self.is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        )

    @property
    def width(self) -> int | None:
        """Columns; None when lines must not be cut."""
        if not self.is_terminal:
            return None
        try:
            descriptor: int = self._stream.fileno()  # type: ignore[union-attr]
            return os.get_terminal_size(descriptor).columns or FALLBACK_COLUMNS
        except (OSError, AttributeError):
            return FALLBACK_COLUMNS

    @property
    def can_redraw(self) -> bool:
        """Whether a line can be written over in place."""
        return self.is_terminal and os.environ.get("TERM") != "dumb"

    def paint(self, text: str, colour: str | None) -> str:
        if not self.has_colour or not colour:
            return text
        return f"\x1b[{_CODES[colour]}m{text}\x1b[0m"

    def clear(self) -> str:
        """What puts the cursor to the top of an empty screen."""
        return "\x1b[H\x1b[2J" if self.is_terminal else ""


def _is_terminal(stream: object) -> bool:
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]
    except (AttributeError, ValueError):
        return False
