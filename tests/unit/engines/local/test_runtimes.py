"""Which Python environments can run a v1 `paddle train`."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.engines.local.runtimes import has_paddle_train

V1 = """case "$1" in
    "train")
        ${DEBUGGER} $MYDIR/../opt/paddle/bin/paddle_trainer ${@:2}
        ;;
    "version")
        version
        ;;
esac
"""
ONLY_A_VERSION = """trainers=`grep -Eo 'trainer_count.[0-9]+' <<< "$@"`
case "$1" in
    "version")
        version
        ;;
    *)
        version
        ;;
esac
"""


def runtime(tmp_path: Path, script: str | None, mode: int = 0o755) -> Path:
    (tmp_path / "bin").mkdir()
    if script is not None:
        program = tmp_path / "bin" / "paddle"
        program.write_text("#!/bin/bash\n" + script)
        program.chmod(mode)
    return tmp_path


@pytest.mark.parametrize(
    ("script", "can"),
    [
        (V1, True),
        ("case $1 in\n  train) shift; exec trainer \"$@\";;\nesac\n", True),
        ("exec paddle_trainer \"$@\"\n", True),
        (ONLY_A_VERSION, False),
        ("", False),
        (None, False),
    ],
)  # fmt: skip
def test_reads_whether_paddle_trains(tmp_path: Path, script: str | None, can: bool) -> None:
    assert has_paddle_train(runtime(tmp_path, script)) is can


def test_a_program_that_may_not_be_run_does_not_train(tmp_path: Path) -> None:
    assert not has_paddle_train(runtime(tmp_path, V1, mode=0o644))
