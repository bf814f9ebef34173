"""Writes four files of samples of y = 3 x - 2 into the folder that is named."""

from __future__ import annotations

import random
import sys
from pathlib import Path

FILES, SAMPLES = 4, 100


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "data")
    folder.mkdir(parents=True, exist_ok=True)
    source = random.Random(1)
    for number in range(FILES):
        lines = []
        for _ in range(SAMPLES):
            x = source.uniform(-1.0, 1.0)
            lines.append(f"{x:.6f} {3.0 * x - 2.0 + source.gauss(0.0, 0.1):.6f}\n")
        (folder / f"part-{number:05}").write_text("".join(lines))
    print(f"{FILES} files in {folder}")


if __name__ == "__main__":
    main()
