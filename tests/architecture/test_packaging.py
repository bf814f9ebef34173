"""What is installed is what is in the source: no template or data file stays behind."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.architecture.source_tree import SourceTree

REPOSITORY = SourceTree(Path(__file__).resolve().parents[2])


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_source(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(
        REPOSITORY.root / "src",
        checkout / "src",
        ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"),
    )
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(REPOSITORY.root / name, checkout)
    build = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "wheel"]
    offline = ["--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*build, *offline, "-w", tmp_path, checkout], check=True)

    (wheel,) = tmp_path.glob("*.whl")
    shipped = set(zipfile.ZipFile(wheel).namelist())
    source = checkout / "src"
    written = {path.relative_to(source).as_posix() for path in SourceTree(checkout).files("src")}
    assert written - shipped == set()
