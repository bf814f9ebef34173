"""Draws the README's pictures into docs/pictures: `make pictures` calls it.

    python -m pictures --runtime DIR    record the session on a terminal, then draw everything
    python -m pictures --render-only    draw from the stored recording and results

Each picture is drawn for light and for dark pages. Drawing is a function of what is stored: the
same recording and the same results give the same bytes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pictures import architecture, figures, svg, terminal
from pictures.recording import Recording
from pictures.screen import CannotDraw

ROOT = Path(__file__).resolve().parent.parent.parent
PICTURES = ROOT / "docs" / "pictures"
RECORDING = PICTURES / "terminal.cast"
RESULTS = ROOT / "bench" / "results"


def drawn() -> dict[str, str]:
    """Every picture by its file name."""
    recording, results = Recording.read(RECORDING), figures.read(RESULTS)
    files = {}
    for palette in svg.PALETTES:
        files[f"terminal-{palette.name}.svg"] = terminal.draw(recording, palette)
        files[f"figures-{palette.name}.svg"] = figures.draw(results, palette)
        files[f"architecture-{palette.name}.svg"] = architecture.draw(palette)
    return files


def main() -> int:
    parser = argparse.ArgumentParser(prog="pictures", description=(__doc__ or "").splitlines()[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--render-only", action="store_true", help="record nothing anew")
    source.add_argument(
        "--runtime", type=Path, help="an environment with PaddlePaddle to record with"
    )
    asked = parser.parse_args()
    PICTURES.mkdir(exist_ok=True)
    try:
        if asked.runtime:
            # It starts a platform, for which it imports what only bench has.
            from pictures import session

            session.record(asked.runtime).write(RECORDING)
        for name, text in drawn().items():
            (PICTURES / name).write_text(text, encoding="utf-8")
            print(f"{(PICTURES / name).relative_to(ROOT)}   {len(text.encode()) / 1000:.0f} kB")
    except (CannotDraw, figures.MissingFigure) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
