"""`~` is the caller's home on the platform, in every argument that is a path there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.cli.main import main
from tests.cli.conftest import Run
from tests.cli.scripted_files import ScriptedFiles, file, folder
from tests.scripted_server import Answer, ScriptedServer

BOB = "/pfs/dc2/home/bob"


@pytest.fixture(autouse=True)
def tree(files: ScriptedFiles) -> None:
    files.add(BOB, folder("bob"))
    files.add(f"{BOB}/data", folder("data"))
    files.add(f"{BOB}/data/a.gz", file("a.gz", 5))
    files.contents[f"{BOB}/data/a.gz"] = b"hello"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("pfs", "ls", "~"), "data/\n"),
        (("pfs", "ls", "~/data"), "a.gz\n"),
        (("pfs", "ls", "~/data/*.gz"), "a.gz\n"),
        (("pfs", "du", "~/data"), f"5\t{BOB}/data\n"),
        (("pfs", "rm", "~/data/a.gz"), f"rm {BOB}/data/a.gz\n"),
        (("rm", "~/data/a.gz"), f"rm {BOB}/data/a.gz\n"),
        (("pfs", "mkdir", "~/new"), f"mkdir {BOB}/new\n"),
        (("pfs", "mv", "~/data/a.gz", "~/b.gz"), f"mv {BOB}/data/a.gz {BOB}/b.gz\n"),
        (("file", "ls", "~/data"), "a.gz\n"),
    ],
)
def test_every_verb_knows_it(run: Run, words: tuple[str, ...], said: str) -> None:
    ran = run(*words)
    assert (ran.code, ran.out, ran.err) == (0, said, "")


def test_the_old_list_and_the_facts_of_a_file_say_the_whole_path(run: Run) -> None:
    assert f"{BOB}/data/a.gz\n" in run("ls", "~/data").out
    assert f"path        {BOB}/data/a.gz\n" in run("pfs", "stat", "~/data/a.gz").out


def test_prints_a_file_of_it(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["pfs", "cat", "~/data/a.gz"]) == 0
    assert capfdbinary.readouterr().out == b"hello"


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (("pfs", "cp", "here", "~/data/"), (["here"], f"{BOB}/data/")),
        (("cp", "~/data", "there"), ([f"{BOB}/data"], "there")),
        (("pfs", "cp", "~/data", "~/copy"), ([f"{BOB}/data"], f"{BOB}/copy")),
        (("file", "put", "here", "~/x"), (["here"], f"{BOB}/x")),
        (("file", "get", "~/data/a.gz", "there"), ([f"{BOB}/data/a.gz"], "there")),
    ],
)
def test_copies_to_and_from_it(
    files: ScriptedFiles, run: Run, elsewhere: Path, words: tuple[str, ...], asked: Any
) -> None:
    (elsewhere / "here").write_text("x")
    assert run(*words).code == 0
    [copied] = [what for verb, what in files.asked if verb == "copy"]
    assert copied[:2] == asked


def test_syncs_it(files: ScriptedFiles, run: Run) -> None:
    run("pfs", "sync", "~/data/", "./d")
    [synced] = [what for verb, what in files.asked if verb == "sync"]
    assert synced[:2] == (f"{BOB}/data/", "./d")


def test_publishes_from_it(server: ScriptedServer, run: Run) -> None:
    link = {"id": "1", "url": "http://x", "path": "p", "expires_at": "2026-11-16T00:00:00.000Z"}
    server.routes["POST /api/v2/publications"] = Answer(link, 201)
    assert run("publish", "~/data/a.gz").code == 0
    assert server.requests[-1].json["path"] == f"{BOB}/data/a.gz"


def test_completes_names_in_it(run: Run) -> None:
    assert run("completion", "words", "--", "pfs", "ls", "~/da").out == "~/data/\n"
    assert run("completion", "words", "--", "pfs", "ls", "'~/data/").out == "~/data/a.gz\n"


# --- what a shell has made of it --------------------------------------------------------------


def test_understands_a_home_the_shell_has_put_in_where_only_the_platform_is_meant(run: Run) -> None:
    here = os.path.expanduser("~")
    ran = run("pfs", "ls", f"{here}/data")
    assert (ran.code, ran.out) == (0, "a.gz\n")
    assert ran.err == (
        "note: your shell has replaced ~ by the home on this machine; taken as '~/data'. "
        "Quote it so.\n"
    )
    ran = run("pfs", "stat", f"{here}/data", f"{here}/data/a.gz")
    assert "taken as '~/data' (and 1 more)" in ran.err


@pytest.mark.parametrize("words", [("rm", "{}/data/a.gz"), ("mv", "{}/data/a.gz", "~/b")])
def test_removes_nothing_on_a_guess(files: ScriptedFiles, run: Run, words: tuple[str, ...]) -> None:
    ran = run("pfs", *(word.format(os.path.expanduser("~")) for word in words))
    assert ran.code == 2
    assert "quote it: '~/data/a.gz'" in ran.err
    assert not [verb for verb, _ in files.asked if verb in ("remove", "move")]


def test_a_local_path_is_local_where_both_sides_may_be(files: ScriptedFiles, run: Run) -> None:
    here = os.path.expanduser("~")
    assert run("pfs", "cp", f"{BOB}/data/a.gz", f"{here}/data/").code == 0
    assert files.asked[-1][1][1] == f"{here}/data/"
    ran = run("pfs", "cp", "./x", f"{here}/data/")
    assert ran.code == 2
    assert "hint:  to mean your home on the platform, quote it: '~/data/'\n" in ran.err


def test_a_path_elsewhere_on_this_machine_is_refused(run: Run) -> None:
    ran = run("pfs", "ls", "/etc")
    assert (ran.code, ran.out) == (2, "")
    assert "/etc is not a path under /pfs" in ran.err


def test_the_home_of_somebody_else_has_no_short_name(run: Run) -> None:
    ran = run("pfs", "ls", "~carol/data")
    assert ran.code == 2
    assert "~ is your own home" in ran.err
