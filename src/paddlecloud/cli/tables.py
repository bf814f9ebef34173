"""Tables as the first client printed them: columns padded by three spaces, `<nil>` for nothing.

It promises: the same bytes on a pipe whatever the terminal; on a terminal lines are cut to its
width and states are coloured, after padding, so that colour never shifts a column. Called by the
verbs that list. It never decides what a table holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddlecloud.cli.terminal import Terminal

GAP = 3
NIL = "<nil>"

_COLOUR_OF_WORD = {
    "Running": "green",
    "Succeeded": "green",
    "Failed": "red",
    "TimedOut": "red",
    "Lost": "red",
    "Killed": "yellow",
    "Queued": "yellow",
    "Preempted": "yellow",
    "Warning": "yellow",
}


def nil(value: object) -> str:
    """A cell of the old tables: zero, empty and missing are all `<nil>`."""
    return NIL if value is None or value == "" or value == 0 else str(value)


def render(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    terminal: Terminal | None = None,
    *,
    widths: list[int] | None = None,
) -> str:
    """Lines with their ends. Without a terminal nothing is cut or coloured.

    `widths` of an earlier table are kept or grown in place, so that later lines go on below it.
    """
    lines = [list(headers), *(list(row) for row in rows)]
    widths = [0] * len(headers) if widths is None else widths
    for column in range(len(headers)):
        widths[column] = max(widths[column], *(len(line[column]) for line in lines))
    limit = terminal.width if terminal is not None else None
    return "".join(_line(cells, widths, limit, terminal) for cells in lines)


def _line(cells: list[str], widths: list[int], limit: int | None, terminal: Terminal | None) -> str:
    parts: list[str] = []
    used = 0
    last = max((at for at, cell in enumerate(cells) if cell), default=0)
    for at, cell in enumerate(cells[: last + 1]):
        text = cell if at == last else cell.ljust(widths[at] + GAP)
        if limit is not None and used + len(text) > limit:
            text = text[: max(0, limit - used - 1)] + "…" if limit - used > 0 else ""
        used += len(text)
        colour = _COLOUR_OF_WORD.get(cell)
        parts.append(terminal.paint(text, colour) if terminal and colour else text)
    return "".join(parts).rstrip() + "\n"
