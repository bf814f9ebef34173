"""What is written from the code and checked in: `make generate` writes it, `make verify` compares.

    python tools/generated.py write|verify

`verify` names every file that is not what the code says, also one that no code says any more, and
fails. Each writer runs in a process of its own, since some need settings of Django's.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CRDS = Path("deploy/crds")


def definitions() -> dict[Path, str]:
    """The custom resource definitions, as `paddlecloud manifests --crds` prints them."""
    from paddlecloud.controller import manifests

    return {
        CRDS / f"{one['spec']['names']['plural']}.yaml": manifests.as_yaml([one])
        for one in manifests.definitions()
    }


def _written(*words: str) -> str:
    """What a program of ours writes to the file that it is given as its last word."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "written"
        subprocess.run(
            [sys.executable, "-m", *words, str(file)], check=True, stdout=subprocess.DEVNULL
        )
        return file.read_text(encoding="utf-8")


def _guide(root: Path) -> str:
    import contract_table

    path = root / contract_table.GUIDE.relative_to(ROOT)
    return contract_table.with_table(path.read_text(encoding="utf-8"))


def wanted(root: Path = ROOT) -> dict[Path, str]:
    """Every generated file by its path in the checkout, as it should be."""
    return {
        **definitions(),
        Path("docs/guides/jobs.md"): _guide(root),
        Path("docs/openapi.json"): _written("paddlecloud.server.openapi"),
        Path("src/paddlecloud/server/first_tables.sql"): _written(
            "paddlecloud.server.first_tables", "--to"
        ),
    }


def stale(files: dict[Path, str], root: Path = ROOT) -> list[str]:
    """What to say of every file that is not as it should be."""
    found = []
    for path, text in files.items():
        file = root / path
        if not file.exists():
            found.append(f"{path} is missing")
        elif file.read_text(encoding="utf-8") != text:
            found.append(f"{path} is not what the code says")
    known = {root / path for path in files}
    found += [
        f"{file.relative_to(root)} is of no definition there is"
        for file in sorted((root / CRDS).glob("*"))
        if file not in known
    ]
    return found


def main(order: str) -> int:
    files = wanted()
    if order == "write":
        for path, text in files.items():
            (ROOT / path).write_text(text, encoding="utf-8")
        return 0
    troubles = stale(files)
    for trouble in troubles:
        print(trouble, file=sys.stderr)
    if troubles:
        print("run: make generate", file=sys.stderr)
    return 1 if troubles else 0


if __name__ == "__main__":
    if sys.argv[1:] not in (["write"], ["verify"]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
