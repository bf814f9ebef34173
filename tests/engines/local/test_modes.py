"""What the engine keeps is the platform's own, under any umask."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddlecloud.core.phases import Phase
from tests.engine_bench import on_this_machine


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077], ids=oct)
def test_others_reach_no_environment_no_log_and_no_job(tmp_path: Path, umask: int):
    before = os.umask(umask)
    try:
        with on_this_machine("plain", tmp_path) as bench:
            job = bench.put("echo hello; sleep 1000")
            bench.until(job, Phase.RUNNING)
            state = next(tmp_path.rglob("engine.db")).parent
            open_to_others = [path.name for path in _reachable(state)]
    finally:
        os.umask(before)
    assert open_to_others == []


def _reachable(folder: Path) -> list[Path]:
    """Every file that another user could read or write, given that they may pass the top."""
    found = []
    for path in folder.iterdir():
        if path.name == "pfs":  # the file store's, with modes of its own
            continue
        mode = path.lstat().st_mode
        if path.is_dir():
            if mode & 0o002:
                found.append(path)
            if mode & 0o001:
                found += _reachable(path)
        elif mode & 0o066:
            found.append(path)
    return found
