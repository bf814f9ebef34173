"""A recording as a picture that plays: every text appears when it did on the terminal.

It plays once and then stands still, whole, to be read at leisure. Who asked for less motion, or
looks at it where nothing moves, sees that last state at once.
"""

from __future__ import annotations

from pictures import svg
from pictures.recording import OUTPUT, Recording
from pictures.screen import Cell, Run, Screen, Style, runs

FONT_PX = 14
CELL_PX = 8.3
LINE_PX = 19
PAD_PX = 16
BASELINE_PX = 14


def draw(recording: Recording, palette: svg.Palette) -> str:
    screen = Screen(recording.columns)
    for event in recording.events:
        if event.kind == OUTPUT:
            screen.write(event.text, event.at_s)
    while screen.rows and not screen.rows[-1]:
        screen.rows.pop()
    parts = [svg.rect(0.5, 0.5, svg.WIDTH - 1, _height(screen) - 1, "window", round_px=6)]
    for number, row in enumerate(screen.rows):
        parts += _row(number, row)
    title = "A terminal: " + "; ".join(_plain(command) for command in recording.commands)
    return svg.document(svg.WIDTH, _height(screen), title, _css(palette), parts)


def _plain(command: str) -> str:
    return " ".join(command.replace("\\\n", " ").split())


def _height(screen: Screen) -> float:
    return 2 * PAD_PX + LINE_PX * len(screen.rows)


def _row(number: int, row: dict[int, Cell]) -> list[str]:
    """The texts of a row. What was typed key by key is one text that is uncovered."""
    y = PAD_PX + LINE_PX * number
    parts: list[str] = []
    typed: list[Run] = []
    for run in runs(row):
        if run.style == Style(is_bold=True) and len(run.text) == 1:
            typed.append(run)
        else:
            parts.append(_text(run, y))
    return parts + _typed(typed, y)


def _text(run: Run, y: float) -> str:
    kind = " ".join(filter(None, ["t", run.style.colour, _weight(run.style)]))
    timing = f' style="animation-delay:{run.at_s:.2f}s"'
    return _words(run.column, y, run.text, kind, timing)


def _words(column: int, y: float, words: str, kind: str, timing: str = "") -> str:
    """Text in its columns, as wide as they are whatever the font."""
    length = f' textLength="{svg.number(len(words) * CELL_PX)}"'
    x = PAD_PX + column * CELL_PX
    return svg.text(x, y + BASELINE_PX, words, kind, extra=length + timing)


def _weight(style: Style) -> str:
    return "bold" if style.is_bold else "faint" if style.is_faint else ""


def _typed(keys: list[Run], y: float) -> list[str]:
    if not keys:
        return []
    first, last = keys[0].column, keys[-1].column
    by_column = {key.column: key.text for key in keys}
    words = "".join(by_column.get(column, " ") for column in range(first, last + 1))
    parts, column = [], first
    for word in words.split(" "):  # one text each: the font's width of a space plays no part
        if word:
            parts.append(_words(column, y, word, "bold"))
        column += len(word) + 1
    began_s, took_s = keys[0].at_s, keys[-1].at_s - keys[0].at_s
    timing = f"animation:type {took_s:.2f}s steps({len(words)}) {began_s:.2f}s backwards"
    cover = svg.rect(
        PAD_PX + first * CELL_PX,
        y,
        len(words) * CELL_PX + 1,
        LINE_PX,
        "cover",
        extra=f' style="{timing}"',
    )
    return [*parts, cover]


def _css(palette: svg.Palette) -> str:
    colours = "".join(
        f".{name}{{fill:{getattr(palette, name)}}}"
        for name in ("red", "green", "yellow", "blue", "magenta", "cyan", "faint")
    )
    return (
        f"text{{font:{FONT_PX}px {svg.MONOSPACE};fill:{palette.text}}}"
        f".window{{fill:{palette.ground};stroke:{palette.line}}}"
        f".cover{{fill:{palette.ground};transform:scaleX(0);transform-origin:right;transform-box:fill-box}}"
        f".bold{{font-weight:600}}{colours}"
        ".t{animation:show 1ms backwards}"
        "@keyframes show{from{opacity:0}}"
        "@keyframes type{from{transform:scaleX(1)}}"
        "@media(prefers-reduced-motion:reduce){.t,.cover{animation:none!important}}"
    )
