"""A platform that is not root keeps the same promises.

There the jobs of all accounts have the platform's own uid, so what keeps them away from it is not
the uid. Each module below runs once more as an ordinary user; `pytest` there, without root, runs
the very same tests.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests import ordinary_user

HERE = Path(__file__).parent
MODULES = (
    "test_crashes",
    "test_hostile_programs",
    "test_leftovers",
    "test_plain",
    "test_sandbox",
    "test_sandboxed_programs",
    "test_seccomp",
)


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.parametrize("module", MODULES)
def test_it_holds_without_root_too(module: str):
    # Not below tmp_path, whose parents are shut to others.
    with tempfile.TemporaryDirectory(prefix="paddlecloud-user-") as folder:
        Path(folder).chmod(0o755)
        home = Path(folder, "home")
        pytest_there = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        pytest_there += ["--basetemp", str(home / "tests"), str(HERE / f"{module}.py")]
        done = subprocess.run(
            ordinary_user.command(pytest_there),
            env=ordinary_user.environment(home),
            cwd=HERE.parent.parent.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout, done.stdout
