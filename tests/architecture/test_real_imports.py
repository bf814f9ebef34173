"""What the rules promise by reading, proven by importing: on old Python, and without Unix."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import possible
from tests.architecture import old_python, purity
from tests.architecture.source_tree import SourceTree

REPOSITORY = SourceTree(Path(__file__).resolve().parents[2])

IMPORT_ALL = """
import importlib, sys
source, hidden, names = sys.argv[1], sys.argv[2].split(), sys.argv[3].split()
sys.path.insert(0, source)
for name in hidden:
    sys.modules[name] = None  # importing it raises ImportError
for name in names:
    importlib.import_module(name)
"""


def _import_all(python: list[str], names: list[str], hidden: set[str]) -> None:
    source = str(REPOSITORY.root / "src")
    arguments = [source, " ".join(sorted(hidden)), " ".join(names)]
    run = subprocess.run(
        [*python, "-B", "-c", IMPORT_ALL, *arguments], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.needs("python3.6")
def test_jobs_can_import_the_runtime_on_python_3_6() -> None:
    names = [module.name for module in old_python.old_modules(REPOSITORY)]
    old = possible.old_python()
    assert old is not None
    _import_all([old, "-I"], names, hidden=set())


def test_the_client_imports_without_unix_and_without_third_parties() -> None:
    names = [
        module.name
        for module in REPOSITORY.in_packages(*purity.PORTABLE_PACKAGES)
        if not module.name.endswith(".__main__")
    ]
    # posix is what `os` itself is made of on this machine
    missing = purity.LINUX_ONLY_MODULES - {"posix"}
    _import_all([sys.executable, "-I", "-S"], names, hidden=missing)
