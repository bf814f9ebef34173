"""What every example owes its reader, checked without running any training."""

from __future__ import annotations

import ast
import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# Objects for kubectl, applied by tests/kube; scripts that use other examples.
WITHOUT_PROGRAM = {"paddlejob", "trainingjob", "run_scripts"}
FOLDERS = sorted(
    path for path in EXAMPLES.iterdir() if path.is_dir() and path.name not in WITHOUT_PROGRAM
)
PROGRAMS = sorted(EXAMPLES.glob("*/*.py"))


def _name(path: Path) -> str:
    return path.relative_to(EXAMPLES).as_posix()


def test_finds_the_examples() -> None:
    assert {path.name for path in FOLDERS} >= {
        "collective",
        "plain",
        "resnet",
        "usage_manual",
        "wide_and_deep",
    }


@pytest.mark.parametrize("folder", FOLDERS, ids=_name)
def test_has_a_readme_that_shows_how_to_submit_it(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert "paddlecloud submit" in text
    assert f"examples/{folder.name}" in text


@pytest.mark.parametrize("folder", FOLDERS, ids=_name)
def test_has_a_train_program(folder: Path) -> None:
    # The published PaddleJob calls it so.
    program = "train_fleet.py" if folder.name == "resnet" else "train.py"
    assert (folder / program).is_file()


@pytest.mark.parametrize("folder", ["resnet", "wide_and_deep"])
def test_has_a_dockerfile_that_starts_a_program_of_its_own(folder: str) -> None:
    text = (EXAMPLES / folder / "Dockerfile").read_text(encoding="utf-8")
    steps = dict(line.split(" ", 1) for line in text.splitlines() if line and line[0] != "#")
    assert steps["COPY"] == f". {steps['WORKDIR']}"
    started = json.loads(steps.get("ENTRYPOINT") or steps["CMD"])
    assert (EXAMPLES / folder / started[-1]).is_file()


@pytest.mark.parametrize("program", PROGRAMS, ids=_name)
def test_compiles(program: Path) -> None:
    compile(program.read_text(encoding="utf-8"), str(program), "exec")


@pytest.mark.parametrize("program", PROGRAMS, ids=_name)
def test_says_what_it_does(program: Path) -> None:
    assert ast.get_docstring(ast.parse(program.read_text(encoding="utf-8")))


@pytest.mark.parametrize("folder", FOLDERS, ids=_name)
def test_readme_names_only_programs_that_exist(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+\.py)`", text)) | set(re.findall(r"python (\w+\.py)", text))
    assert named
    missing = {name for name in named if not (folder / name).is_file()}
    assert not missing


@pytest.mark.slow
def test_plain_program_learns_the_line_and_writes_it(tmp_path: Path) -> None:
    environment = {**os.environ, "OUTPUT_PATH": str(tmp_path / "out")}
    run = subprocess.run(
        [sys.executable, str(EXAMPLES / "plain" / "train.py")],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    losses = [float(value) for value in re.findall(r"loss ([0-9.]+)", run.stdout)]
    assert len(losses) == 10
    assert losses[-1] < losses[0] / 10
    learnt = json.loads((tmp_path / "out" / "model.json").read_text(encoding="utf-8"))
    assert learnt["slope"] == pytest.approx(3.0, abs=0.1)
    assert learnt["offset"] == pytest.approx(-2.0, abs=0.1)


@pytest.mark.needs("no-job")
def test_manual_program_refuses_to_run_outside_a_job(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(EXAMPLES / "usage_manual" / "train.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    assert "/trainer_id" in run.stderr
    assert "Traceback" not in run.stderr


def test_manual_data_has_the_files_the_patterns_look_for(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, str(EXAMPLES / "usage_manual" / "make_data.py"), str(tmp_path)],
        capture_output=True,
        check=True,
    )
    parts = sorted((tmp_path / "user001_space").glob("part-*.gz"))
    assert [part.name for part in parts] == [f"part-{number:05d}.gz" for number in range(5)]
    with gzip.open(parts[0], "rt") as part:
        assert len(part.readlines()) == 10
