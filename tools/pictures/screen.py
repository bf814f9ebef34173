"""What a terminal shows after a recording: cells with a character, a style and when they came.

It knows what our command line sends: colours, carriage return, backspace, and erasing (to the end
of) a line. Anything else is an error rather than a picture that is wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(r"\x1b\[([\d;]*)([A-Za-z])|[\r\n\x08]|[^\x00-\x1f\x7f]")
_COLOURS = ("", "red", "green", "yellow", "blue", "magenta", "cyan", "")


class CannotDraw(Exception):
    """The recording holds something that this terminal does not know."""


@dataclass(frozen=True)
class Style:
    colour: str = ""  # a colour of the palette, or the terminal's own
    is_bold: bool = False
    is_faint: bool = False

    def after(self, code: int) -> Style:
        """The style after one number of a `CSI … m`."""
        if code == 0:
            return Style()
        if code == 1:
            return Style(self.colour, True, self.is_faint)
        if code == 2:
            return Style(self.colour, self.is_bold, True)
        if code == 22:
            return Style(self.colour)
        if 30 <= code <= 37 or 90 <= code <= 97:
            return Style(_COLOURS[code % 10], self.is_bold, self.is_faint)
        if code == 39:
            return Style("", self.is_bold, self.is_faint)
        raise CannotDraw(f"a colour that is not known: {code}")


PLAIN = Style()


@dataclass(frozen=True)
class Cell:
    character: str
    style: Style
    at_s: float


class Screen:
    """Rows of cells by column. It grows downward and never scrolls; lines wrap at `columns`."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.rows: list[dict[int, Cell]] = [{}]
        self._erased: dict[int, Cell] = {}
        self._column = 0
        self._style = PLAIN

    def write(self, data: str, at_s: float) -> None:
        place = 0
        while place < len(data):
            token = _TOKEN.match(data, place)
            if token is None:
                raise CannotDraw(f"what stands here is not known: {data[place : place + 12]!r}")
            place = token.end()
            if token.group(2):
                self._control(token.group(1), token.group(2))
            elif token.group() == "\r":
                self._column = 0
            elif token.group() == "\b":
                self._column = max(0, self._column - 1)
            elif token.group() == "\n":
                self._feed()
            else:
                self._put(token.group(), at_s)

    def _feed(self) -> None:
        self.rows.append({})
        self._erased = {}

    def _put(self, character: str, at_s: float) -> None:
        if self._column >= self.columns:
            self._column = 0
            self._feed()
        row = self.rows[-1]
        before = row.get(self._column) or self._erased.get(self._column)
        left = row.get(self._column - 1)
        if (
            before
            and (before.character, before.style) == (character, self._style)
            and (left is None or left.at_s < at_s)
        ):
            # A line whose beginning is written again as it was has been there all the time.
            at_s = before.at_s
        row[self._column] = Cell(character, self._style, at_s)
        self._column += 1

    def _control(self, numbers: str, order: str) -> None:
        if order == "m":
            for code in numbers.split(";"):
                self._style = self._style.after(int(code or 0))
        elif order == "K" and numbers in ("", "0", "2"):
            first = 0 if numbers == "2" else self._column
            row = self.rows[-1]
            for column in [column for column in row if column >= first]:
                self._erased[column] = row.pop(column)
        else:
            raise CannotDraw(f"an order that is not known: CSI {numbers}{order}")


@dataclass(frozen=True)
class Run:
    """Characters of one row that stand together, look alike and came together."""

    column: int
    text: str
    style: Style
    at_s: float


def runs(row: dict[int, Cell]) -> list[Run]:
    """The row without its blanks; single spaces inside a text stay."""
    found: list[Run] = []
    for column in sorted(row):
        cell = row[column]
        last = found[-1] if found else None
        if cell.character == " ":
            continue
        if last and (last.style, last.at_s) == (cell.style, cell.at_s):
            gap = column - last.column - len(last.text)
            if gap <= 1:
                joined = last.text + " " * gap + cell.character
                found[-1] = Run(last.column, joined, last.style, last.at_s)
                continue
        found.append(Run(column, cell.character, cell.style, cell.at_s))
    return found
