"""`file put|get|ls`: the words of the first client, over scripted files."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.core.errors import Conflict
from paddlecloud.sdk.platform_calls import PlatformCalls
from paddlecloud.sdk.transfers.events import FileDone, Planned
from tests.cli.conftest import Run
from tests.cli.scripted_files import HOME, ScriptedFiles, file, folder, summary
from tests.scripted_server import ScriptedServer


@pytest.fixture
def files(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> ScriptedFiles:
    scripted = ScriptedFiles()
    monkeypatch.setattr(PlatformCalls, "files", scripted)
    scripted.add(f"{HOME}/log", file("log"))
    scripted.add(f"{HOME}/model", folder("model"))
    scripted.add(f"{HOME}/model/w", file("w"))
    return scripted


@pytest.mark.parametrize(
    ("words", "copied"),
    [
        (("data/a", f"{HOME}/x"), (["data/a"], f"{HOME}/x")),
        (("data/a", f"{HOME}/y/"), (["data/a"], f"{HOME}/y/")),
        (("data", f"{HOME}/one"), (["data"], f"{HOME}/one/")),
        (("data/", f"{HOME}/two"), (["data/"], f"{HOME}/two/")),
    ],
)
def test_puts_a_file_and_a_folder_both_ways(
    files: ScriptedFiles,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, str],
    copied: tuple[list[str], str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_bytes(b"A")
    files.events = [Planned(1, 1, 0, 0), FileDone("data/a", f"{HOME}/x", 1, 1, "sent")]
    files.summary = summary(files=1)
    ran = run("file", "put", *words)
    assert ran.out == f"Uploading ... data/a {HOME}/x\n"
    assert ran.err == ("" if words[0] == "data/a" else "1 file uploaded\n")
    assert files.asked[-1][1][:2] == copied


def test_gets_a_file_and_a_folder(files: ScriptedFiles, run: Run, tmp_path: Path) -> None:
    files.events = [Planned(1, 36, 0, 0), FileDone(f"{HOME}/log", "./log", 36, 36, "sent")]
    ran = run("file", "get", f"{HOME}/log", f"{tmp_path}/")
    assert ran.out == f"Downloading {HOME}/log ... Done   ./log, 36 B\n"
    assert files.asked[-1][1][:2] == ([f"{HOME}/log"], f"{tmp_path}/log")
    run("file", "get", f"{HOME}/model", str(tmp_path / "m"))
    assert files.asked[-1][1][:2] == ([f"{HOME}/model/"], f"{tmp_path}/m")


def test_what_failed_is_named(files: ScriptedFiles, run: Run, tmp_path: Path) -> None:
    files.summary = summary(files=1, failures=[(f"{HOME}/model/w", Conflict("it changed"))])
    ran = run("file", "get", f"{HOME}/model", str(tmp_path / "m"))
    assert (ran.code, ran.err) == (1, f"error: {HOME}/model/w: it changed\n")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("get", f"{HOME}/log", "{tmp}/there"), 5, "file already exist: "),
        (("get", f"{HOME}/log", "{tmp}/folder/"), 5, "file already exist: "),
        (("get", f"{HOME}/none", "{tmp}/new"), 4, f"{HOME}/none: no such file"),
        (("get", "/etc/passwd", "{tmp}/new"), 2, "/etc/passwd is not a path under /pfs"),
        (("put", "../x", f"{HOME}/x"), 2, "'..'"),
        (("put", "{tmp}/none", f"{HOME}/x"), 2, "there is no"),
        (("put", "{tmp}/there", f"{HOME}/../bob"), 2, "'..'"),
        (("ls", f"{HOME}/none"), 4, f"{HOME}/none: no such file"),
        (("mv", "a", "b"), 2, "usage: paddlecloud file"),
    ],
)
def test_refuses(
    files: ScriptedFiles,
    run: Run,
    tmp_path: Path,
    words: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    (tmp_path / "there").write_text("mine")
    (tmp_path / "folder" / "log").mkdir(parents=True)
    ran = run("file", *(word.format(tmp=tmp_path) for word in words))
    assert (ran.code, message in ran.err) == (code, True), ran.err
    assert not [call for call, _ in files.asked if call == "copy"]


def test_ls_prints_one_name_per_line(files: ScriptedFiles, run: Run) -> None:
    assert run("file", "ls", HOME).out == "log\nmodel\n"
