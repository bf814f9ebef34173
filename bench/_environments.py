"""Python environments of what benchmarks compare with, one per peer, in the user's cache.

Made by the first run that needs them, at the versions of constraints-peers.txt; the index is
whatever the machine's pip is configured to use.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from _report import CannotMeasure

_PINS = Path(__file__).parent / "constraints-peers.txt"
_INSTALL_TIMEOUT_S = 600
_PIP_INSTALL = "-m pip -q --disable-pip-version-check install".split()


def pinned(package: str) -> str:
    """The version of a package that is compared with."""
    for line in _PINS.read_text().splitlines():
        name, _, version = line.partition("==")
        if name == package:
            return version
    raise CannotMeasure(f"{_PINS.name} does not pin {package}")


def python(name: str, packages: Sequence[str]) -> Path:
    """The interpreter of an environment with these packages; installs what is missing."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    venv = Path(cache) / "paddlecloud" / "bench" / f"{name}-venv"
    program = venv / "bin" / "python"
    stamp = venv / "installed-as-pinned"
    recipe = _PINS.read_text() + sys.version + " ".join(packages)
    wanted = hashlib.sha256(recipe.encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted and program.exists():
        return program
    print(f"bench: installing {', '.join(packages)} to compare with", file=sys.stderr)
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(venv)],
        [str(program), *_PIP_INSTALL, "-c", str(_PINS), *packages],
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S)
        if done.returncode:
            raise CannotMeasure(f"{name} could not be installed: {done.stderr.strip()[-400:]}")
    stamp.write_text(wanted)
    return program
