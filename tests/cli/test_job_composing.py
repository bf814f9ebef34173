"""The folder a `job train` sends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddlecloud.cli.job import composing
from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.faults import FaultList
from paddlecloud.forms.train_flags import Training, parse
from paddlecloud.wire.job_workspace import FOLDER, SCRIPT, SCRIPT_NAME


@pytest.fixture
def here(elsewhere: Path) -> Path:
    """sub/{a.py,deep/b.py,x.log,link.py}, c.sh"""
    (elsewhere / "sub" / "deep").mkdir(parents=True)
    (elsewhere / "sub" / "a.py").write_text("a")
    (elsewhere / "sub" / "deep" / "b.py").write_text("b")
    (elsewhere / "sub" / "x.log").write_text("x")
    (elsewhere / "sub" / ".paddleignore").write_text("*.log\n")
    os.symlink("/etc/passwd", elsewhere / "sub" / "link.py")
    (elsewhere / "c.sh").write_text("c")
    (elsewhere / "c.sh").chmod(0o755)
    return elsewhere


def training(*words: str) -> Training:
    return parse(["--job-name", "x", "--start-cmd", "y", *words])


def checked(*words: str) -> None:
    faults = FaultList()
    composing.check(training(*words), faults)
    faults.raise_if_any()


def composed(target: Path, *words: str) -> dict[str, str]:
    """Path below the workspace → content."""
    target.mkdir()
    composing.compose(training(*words), str(target))
    assert (target / SCRIPT_NAME).read_text() == SCRIPT
    top = target / FOLDER
    return {str(p.relative_to(top)): p.read_text() for p in top.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ((), {}),
        (("--files", "c.sh", "sub/a.py"), {"c.sh": "c", "a.py": "a"}),
        (("--files", "./c.sh", "c.sh"), {"c.sh": "c"}),
        (("--files", "sub"), {"a.py": "a", "b.py": "b", ".paddleignore": "*.log\n"}),
        (("--files", "sub/x.log"), {"x.log": "x"}),  # named by itself
        (
            ("--file-dir", "sub"),
            {"sub/a.py": "a", "sub/deep/b.py": "b", "sub/.paddleignore": "*.log\n"},
        ),
        (("--file-dir", "./sub/deep/"), {"deep/b.py": "b"}),
        (("--file-dir", "sub/deep", "--files", "c.sh"), {"deep/b.py": "b", "c.sh": "c"}),
    ],
)
def test_puts_everything_in_its_place(
    here: Path, tmp_path: Path, words: tuple[str, ...], found: dict[str, str]
) -> None:
    assert composed(tmp_path / "package", *words) == found


@pytest.mark.parametrize("dot", [".", "./", "sub/.."])
def test_this_folder_is_the_workspace(here: Path, tmp_path: Path, dot: str) -> None:
    found = composed(tmp_path / "package", "--file-dir", dot)
    assert {"c.sh", "sub/a.py", "sub/deep/b.py"} <= set(found)
    assert "sub/link.py" not in found


def test_what_is_named_by_itself_wins_over_a_folder(here: Path, tmp_path: Path) -> None:
    (here / "other").mkdir()
    (here / "other" / "c.sh").write_text("newer")
    found = composed(tmp_path / "package", "--file-dir", ".", "--files", "other/c.sh")
    assert found["c.sh"] == "newer"
    assert (here / "c.sh").read_text() == "c"


def test_a_file_stays_executable(here: Path, tmp_path: Path) -> None:
    composed(tmp_path / "package", "--files", "c.sh")
    assert os.access(tmp_path / "package" / FOLDER / "c.sh", os.X_OK)


def test_a_link_that_is_named_is_followed(here: Path, tmp_path: Path) -> None:
    os.symlink("c.sh", here / "d.sh")
    assert composed(tmp_path / "package", "--files", "d.sh") == {"d.sh": "c"}


@pytest.mark.parametrize(
    ("words", "field", "problem"),
    [
        (("--files", "none"), "--files", "there is no such file"),
        (("--fil", "none"), "--fil", "is not clear"),
        (("--file-d", "none"), "--file-d", "there is no such folder"),
        (("--file-dir", "c.sh"), "--file-dir", "is not a folder"),
    ],
)
def test_names_what_is_missing(
    here: Path, words: tuple[str, ...], field: str, problem: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        checked(*words)
    (fault,) = caught.value.faults
    assert fault.field == field
    assert problem in fault.problem
