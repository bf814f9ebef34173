"""`pfs ls|rm|mkdir|mv|stat|cat|du` and their old spellings, against scripted files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from paddlecloud.cli.verbs import SUBVERBS
from paddlecloud.core.errors import NotAllowed, NotFound
from paddlecloud.sdk.platform_calls import PlatformCalls
from tests.cli.conftest import Run
from tests.cli.scripted_files import HOME, ScriptedFiles, file, folder
from tests.scripted_server import Answer, ScriptedServer


@pytest.fixture
def files(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> ScriptedFiles:
    scripted = ScriptedFiles()
    server.routes["GET /api/v2/status"] = Answer({"cluster": "local", "account": "alice"})
    monkeypatch.setattr(PlatformCalls, "files", scripted)
    scripted.add(f"{HOME}/data", folder("data"))
    scripted.add(f"{HOME}/data/a.gz", file("a.gz", 5))
    scripted.add(f"{HOME}/data/run.sh", file("run.sh", 1234567, executable=True))
    scripted.add(f"{HOME}/data/sub", folder("sub"))
    scripted.add(f"{HOME}/data/sub/b.gz", file("b.gz", 7))
    return scripted


# --- ls --------------------------------------------------------------------------------------


def test_lists_one_name_per_line_with_folders_marked(files: ScriptedFiles, run: Run) -> None:
    assert run("pfs", "ls", f"{HOME}/data").out == "a.gz\nrun.sh\nsub/\n"
    assert run("pfs", "ls", f"{HOME}/data", "-o", "name").out == "a.gz\nrun.sh\nsub/\n"
    assert run("pfs", "ls", "-r", f"{HOME}/data").out == "a.gz\nrun.sh\nsub/\nsub/b.gz\n"
    assert run("pfs", "ls").out == "data/\n"


def test_the_long_list_has_type_size_and_time(files: ScriptedFiles, run: Run) -> None:
    assert run("pfs", "ls", f"{HOME}/data", "-l").out == (
        "f             5  2025-11-15 07:52:45  a.gz\n"
        "x       1234567  2025-11-15 07:52:45  run.sh\n"
        "d             -  2025-11-15 07:52:45  sub/\n"
    )
    wide = run("pfs", "ls", f"{HOME}/data/a.gz", "-o", "wide").out
    assert wide == f"f             5  2025-11-15 07:52:45  {'ab' * 32}  a.gz\n"


def test_json_says_the_whole_path_of_each(files: ScriptedFiles, run: Run) -> None:
    items = json.loads(run("pfs", "ls", "-o", "json", f"{HOME}/data").out)["items"]
    assert [item["path"] for item in items] == [
        f"{HOME}/data/{n}" for n in ("a.gz", "run.sh", "sub")
    ]
    items = json.loads(run("pfs", "ls", "-o", "json", f"{HOME}/data/a.gz").out)["items"]
    assert [item["path"] for item in items] == [f"{HOME}/data/a.gz"]
    files.add(f"{HOME}/twin", folder("twin"))
    files.add(f"{HOME}/twin/twin", file("twin"))
    items = json.loads(run("pfs", "ls", "-o", "json", f"{HOME}/twin").out)["items"]
    assert [item["path"] for item in items] == [f"{HOME}/twin/twin"]


def test_several_folders_have_heads_and_the_missing_one_is_named(
    files: ScriptedFiles, run: Run
) -> None:
    ran = run("pfs", "ls", f"{HOME}/data/sub", f"{HOME}/none", f"{HOME}/data/sub")
    assert ran.out == f"{HOME}/data/sub:\nb.gz\n\n{HOME}/data/sub:\nb.gz\n"
    assert ran.err == f"error: {HOME}/none: no such file or directory\n"
    assert ran.code == 1
    ran = run("pfs", "ls", f"{HOME}/none")
    assert (ran.err, ran.code) == (f"error: {HOME}/none: no such file or directory\n", 4)


def test_a_pattern_is_looked_up_on_the_platform(files: ScriptedFiles, run: Run) -> None:
    assert run("pfs", "ls", f"{HOME}/data/*.gz").out == "a.gz\n"
    ran = run("pfs", "ls", f"{HOME}/data/*.bz2")
    assert (ran.code, ran.err) == (4, f"error: nothing matches {HOME}/data/*.bz2\n")


def test_the_old_list_is_as_it_was(files: ScriptedFiles, run: Run) -> None:
    ran = run("ls", f"{HOME}/data", f"{HOME}/none", "data")
    assert ran.out == (
        f"{HOME}/data :\n"
        f"2025-11-15 07:52:45 f           5 {HOME}/data/a.gz\n"
        f"2025-11-15 07:52:45 f     1234567 {HOME}/data/run.sh\n"
        f"2025-11-15 07:52:45 d        4096 {HOME}/data/sub\n"
        "\n"
        f"{HOME}/none :\n"
        f"  error:{HOME}/none: no such file or directory\n"
        "\n"
        "data :\n"
        "  error:data is not a path under /pfs\n"
        "\n"
    )
    assert ran.code == 4
    assert f"{HOME}/data/sub/b.gz\n" in run("ls", "-r", f"{HOME}/data").out


# --- rm, mkdir, mv ---------------------------------------------------------------------------


def test_rm_says_what_went(files: ScriptedFiles, run: Run) -> None:
    for words in (("rm",), ("pfs", "rm")):
        assert run(*words, f"{HOME}/data/a.gz").out == f"rm {HOME}/data/a.gz\n"
    assert files.asked[-1] == ("remove", ([f"{HOME}/data/a.gz"], False, False))
    ran = run("rm", "-rfv", f"{HOME}/data", f"{HOME}/none")
    assert ran.out == f"rm {HOME}/data   2 files, 2.0 KiB\n"
    assert files.asked[-1] == ("remove", ([f"{HOME}/data", f"{HOME}/none"], True, True))
    removed = json.loads(run("pfs", "rm", f"{HOME}/data/a.gz", "-o", "json").out)
    assert removed == {"items": [{"path": f"{HOME}/data/a.gz", "files": 2, "bytes": 2048}]}
    assert run("pfs", "rm", f"{HOME}/data/*.gz").out == f"rm {HOME}/data/a.gz\n"


def test_rm_of_a_folder_asks_for_r(files: ScriptedFiles, run: Run) -> None:
    ran = run("pfs", "rm", f"{HOME}/data")
    assert ran.code == 5
    assert ran.err == (
        f"error: can't del directory:{HOME}/data\n"
        "hint:  -r removes a folder and all that is in it\n"
    )
    assert ran.out == ""


def test_rm_of_a_job_points_to_kill(files: ScriptedFiles, run: Run) -> None:
    ran = run("rm", "wide-deep")
    assert ran.code == 2
    assert ran.err == (
        "error: wide-deep is not a path under /pfs\n"
        "hint:  to stop a job and forget it: paddlecloud kill -rm wide-deep\n"
    )
    assert files.asked == []


@pytest.mark.parametrize("words", [("mkdir",), ("pfs", "mkdir"), ("pfs", "mkdir", "-p")])
def test_mkdir_says_what_it_made(files: ScriptedFiles, run: Run, words: tuple[str, ...]) -> None:
    assert run(*words, f"{HOME}/a/b", f"{HOME}/c").out == f"mkdir {HOME}/a/b\nmkdir {HOME}/c\n"
    assert files.asked == [("make_directories", [f"{HOME}/a/b", f"{HOME}/c"])]


@pytest.mark.parametrize(
    ("words", "moves"),
    [
        ((f"{HOME}/data/a.gz", f"{HOME}/new"), [(f"{HOME}/data/a.gz", f"{HOME}/new", False)]),
        ((f"{HOME}/data/a.gz", f"{HOME}/x/"), [(f"{HOME}/data/a.gz", f"{HOME}/x/a.gz", False)]),
        ((f"{HOME}/data/sub/", f"{HOME}"), [(f"{HOME}/data/sub/", f"{HOME}/sub", False)]),
        (
            ("-f", f"{HOME}/data/a.gz", f"{HOME}/data/run.sh"),
            [(f"{HOME}/data/a.gz", f"{HOME}/data/run.sh", True)],
        ),
    ],
)
def test_mv_renames_or_moves_into(
    files: ScriptedFiles, run: Run, words: tuple[str, ...], moves: list[tuple[str, str, bool]]
) -> None:
    ran = run("pfs", "mv", *words)
    assert (ran.code, ran.err) == (0, "")
    assert [what for call, what in files.asked if call == "move"] == moves
    assert ran.out == "".join(f"mv {source} {target}\n" for source, target, _ in moves)


def test_mv_keeps_what_is_there(files: ScriptedFiles, run: Run) -> None:
    there = (f"{HOME}/data/a.gz", f"{HOME}/data/run.sh")
    ran = run("mv", *there)
    assert (ran.code, "-f replaces what is there" in ran.err) == (5, True)
    ran = run("mv", "-n", *there)
    assert (ran.code, "was left" in ran.err) == (0, True)


def test_mv_of_several_needs_a_folder(files: ScriptedFiles, run: Run) -> None:
    ran = run("pfs", "mv", f"{HOME}/data/a.gz", f"{HOME}/data/run.sh", f"{HOME}/one")
    assert (ran.code, f"write {HOME}/one/" in ran.err) == (2, True)
    assert not [call for call, _ in files.asked if call == "move"]


# --- stat, cat, du ---------------------------------------------------------------------------


def test_stat_tells_all(files: ScriptedFiles, run: Run) -> None:
    ran = run("pfs", "stat", f"{HOME}/data/run.sh", "--verify")
    assert ran.out == (
        f"path        {HOME}/data/run.sh\n"
        "type        file\n"
        "size        1,234,567 bytes (1.2 MiB)\n"
        "executable  yes\n"
        "changed     2025-11-15 07:52:45\n"
        f"digest      {'ab' * 32}\n"
        "verified    every byte was read again and is as it was stored\n"
    )
    assert files.asked[-1] == ("entry", (f"{HOME}/data/run.sh", {"verify": True, "digest": True}))
    assert json.loads(run("pfs", "stat", HOME, "-o", "json").out)["type"] == "directory"
    several = json.loads(run("pfs", "stat", HOME, f"{HOME}/data", "-o", "json").out)
    assert len(several["items"]) == 2
    assert run("pfs", "stat", f"{HOME}/data").out == (
        f"path        {HOME}/data\ntype        folder\nchanged     2025-11-15 07:52:45\n"
    )


def test_cat_gives_the_very_bytes(
    files: ScriptedFiles, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    from paddlecloud.cli.main import main

    files.contents[f"{HOME}/data/a.gz"] = bytes(range(256))
    files.contents[f"{HOME}/data/run.sh"] = b"\r\n\xff"
    assert main(["pfs", "cat", f"{HOME}/data/a.gz", f"{HOME}/data/run.sh"]) == 0
    assert capfdbinary.readouterr().out == bytes(range(256)) + b"\r\n\xff"


def test_du_adds_up_every_folder(files: ScriptedFiles, run: Run) -> None:
    ran = run("pfs", "du", HOME)
    assert ran.out == f"7\t{HOME}/data/sub\n1234579\t{HOME}/data\n1234579\t{HOME}\n"
    assert run("pfs", "du", "-h", f"{HOME}/data/run.sh").out == f"1.2 MiB\t{HOME}/data/run.sh\n"
    assert run("pfs", "du", "-sh").out == f"1.2 GiB\t{HOME}\n"
    assert json.loads(run("pfs", "du", "-o", "json", HOME).out)["items"][0]["files"] == 1204
    assert run("pfs", "du", "-o", "wide", HOME).out == (
        "FILES   FOLDERS   SIZE      UNFINISHED   PATH\n"
        f"1,204   3         1.2 GiB   4.0 KiB      {HOME}\n"
        "account   1.2 GiB of 10.0 GiB used, 1,204 files\n"
    )


# --- errors, help ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("pfs",), "It can cp, ls, rm, mkdir, mv, stat, cat, sync, du"),
        (("pfs", "lss", "x"), "pfs cannot lss. Did you mean ls?"),
        (("pfs", "ls", "data"), "data is not a path under /pfs"),
        (("pfs", "ls", "pfs/local/home/alice"), "did you mean /pfs/local/home/alice?"),
        (("pfs", "ls", ""), "'' is not a path"),
        (("pfs", "ls", "/pfs"), "/pfs names no home"),
        (("pfs", "ls", "/pfs/local"), "/pfs/local names no home"),
        (("pfs", "ls", "/pfs/local/home"), "/pfs/<datacenter>/home/<user>"),
        (("pfs", "ls", f"{HOME}/../bob"), "cannot contain '..'"),
        (("pfs", "rm"), "usage: paddlecloud pfs rm"),
        (("pfs", "rm", "-x", HOME), "usage: paddlecloud pfs rm [-r]"),
        (("rm", "-x", HOME), "usage: paddlecloud rm [-r]"),
        (("pfs", "mv", HOME, "./here"), "paddlecloud pfs cp"),
        (("pfs", "mv", HOME), "usage: paddlecloud pfs mv"),
        (("du", HOME), "paddlecloud pfs du PATH"),
    ],
)
def test_refuses_and_says_what_to_type(
    files: ScriptedFiles, run: Run, words: tuple[str, ...], message: str
) -> None:
    ran = run(*words)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert files.asked == []


def test_another_home_is_answered_with_ones_own(files: ScriptedFiles, run: Run) -> None:
    files.failing = NotAllowed("not a valid user: bob")
    ran = run("pfs", "stat", "/pfs/local/home/bob/x")
    assert ran.code == 3
    assert ran.err == (
        "error: /pfs/local/home/bob/x: not a valid user: bob\n"
        f"hint:  your own files are below {HOME}; paddlecloud publish shares one\n"
    )


def test_an_unknown_datacenter_is_answered_with_the_known_one(
    files: ScriptedFiles, run: Run
) -> None:
    files.failing = NotFound("no datacenter other")
    ran = run("pfs", "stat", "/pfs/other/home/alice")
    assert ran.code == 4
    assert ran.err == (
        "error: /pfs/other/home/alice: no datacenter other\n"
        "hint:  this server has the datacenter local\n"
    )


@pytest.mark.parametrize("verb", SUBVERBS)
def test_every_action_has_help_with_examples(run: Run, verb: str) -> None:
    for words in ((*verb.split(), "--help"), ("help", *verb.split())):
        ran = run(*words)
        assert ran.code == 0
        assert ran.out.startswith(f"Usage: paddlecloud {verb} ")
        assert f"\n  paddlecloud {verb} " in ran.out.split("Examples:")[1]


def test_help_of_the_word_lists_its_actions(run: Run) -> None:
    out = run("help", "pfs").out
    for verb, (_, summary) in SUBVERBS.items():
        assert f"  {verb[4:]:<6} {summary}\n" in out
    assert "Usage: paddlecloud rm [-r]" in run("help", "rm").out
    assert "paddlecloud pfs rm" not in run("help", "rm").out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["pfs", "s"], ["stat", "sync"]),
        (["pfs", "sync", "--d"], ["--delete", "--dry-run", "--datacenter", "--debug"]),
        (["pfs", "-v", "cp", "--chunk"], ["--chunksize"]),
        (["pfs", "ls", "/pfs/lo"], [f"{HOME}/"]),
        (["pfs", "ls", f"{HOME}/da"], [f"{HOME}/data/"]),
        (["cp", "x", f"{HOME}/data/"], [f"{HOME}/data/{n}" for n in ("a.gz", "run.sh", "sub/")]),
        (["pfs", "cp", "./"], []),
        (["pfs", "ls", "/pfs/local/home/eve/"], []),
    ],
)
def test_completes_actions_flags_and_remote_paths(
    files: ScriptedFiles, run: Run, line: list[str], words: list[str]
) -> None:
    assert run("completion", "words", "--", *line).out.split() == words


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from paddlecloud.cli.main import main\n"
        "from paddlecloud.sdk.platform_calls import PlatformCalls\n"
        "from tests.cli.scripted_files import ScriptedFiles, file, HOME\n"
        "files = ScriptedFiles(); files.add(HOME + '/x', file('x'))\n"
        "files.contents[HOME + '/x'] = b'x' * 20_000_000\n"
        "PlatformCalls.files = files\n"
        "sys.exit(main(['pfs', 'cat', HOME + '/x']))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).resolve().parents[2],
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.read(10)
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 1
