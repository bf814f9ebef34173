"""What the pictures share: two palettes, escaped text, and the outermost element.

A picture is drawn once per palette, into a file of its own. The README names both in a `<picture>`,
for which GitHub follows the theme its reader chose; a media query inside one SVG would follow the
browser's setting instead, which may be another.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

# What GitHub shows code in, and fonts of nearly the same widths elsewhere.
MONOSPACE = (
    "ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono','DejaVu Sans Mono',monospace"
)
SANS = "-apple-system,BlinkMacSystemFont,'Segoe UI','Noto Sans',Helvetica,Arial,sans-serif"
WIDTH = 830  # pixels: what a README gets on GitHub


@dataclass(frozen=True)
class Palette:
    """Colours by what they are for; the values are those of GitHub's own themes."""

    name: str
    page: str  # what GitHub shows it on
    ground: str  # of a panel
    line: str  # borders, axes
    text: str
    faint: str  # what matters less; still at least 4.5 : 1 on the ground
    ours: str  # PaddleCloud's bars
    peer: str  # everybody else's
    red: str
    green: str
    yellow: str
    blue: str
    magenta: str
    cyan: str


LIGHT = Palette(
    name="light",
    page="#ffffff",
    ground="#f6f8fa",
    line="#d0d7de",
    text="#1f2328",
    faint="#59636e",
    ours="#0969da",
    peer="#afb8c1",
    red="#cf222e",
    green="#116329",
    yellow="#7d4e00",
    blue="#0550ae",
    magenta="#8250df",
    cyan="#1b6e7a",
)
DARK = Palette(
    name="dark",
    page="#0d1117",
    ground="#161b22",
    line="#3d444d",
    text="#e6edf3",
    faint="#9198a1",
    ours="#4493f8",
    peer="#656c76",
    red="#ff7b72",
    green="#56d364",
    yellow="#e3b341",
    blue="#79c0ff",
    magenta="#d2a8ff",
    cyan="#76e3ea",
)
PALETTES = (LIGHT, DARK)


def number(value: float) -> str:
    """Pixels with as few digits as show."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def text(
    x: float, y: float, words: str, kind: str = "", *, anchor: str = "", extra: str = ""
) -> str:
    """A line of text; `kind` is its CSS class, `anchor` middle or end if it is not its start."""
    place = f'x="{number(x)}" y="{number(y)}"'
    named = f' class="{kind}"' if kind else ""
    anchored = f' text-anchor="{anchor}"' if anchor else ""
    return f"<text {place}{named}{anchored}{extra}>{escape(words, quote=False)}</text>"


def rect(
    x: float,
    y: float,
    width: float,
    height: float,
    kind: str,
    *,
    round_px: float = 0,
    extra: str = "",
) -> str:
    corner = f' rx="{number(round_px)}"' if round_px else ""
    size = f'width="{number(width)}" height="{number(height)}"'
    return f'<rect x="{number(x)}" y="{number(y)}" {size}{corner} class="{kind}"{extra}/>'


def document(width: float, height: float, title: str, css: str, parts: list[str]) -> str:
    """The whole file. `title` is what is read aloud to those who do not see it."""
    size = f"{number(width)} {number(height)}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" '
            f'width="{number(width)}" height="{number(height)}" role="img">',
            f"<title>{escape(title, quote=False)}</title>",
            f"<style>{css}</style>",
            *parts,
            "</svg>",
            "",
        ]
    )
