"""`pfs cp`, `pfs sync` and `cp`: what is said while files move, on a terminal and beside it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from paddlecloud.core.errors import Conflict, InvalidInput, OutOfSpace, ServerUnreachable
from paddlecloud.sdk.platform_calls import PlatformCalls
from paddlecloud.sdk.transfers.events import FileDone, Moved, Note, Planned
from tests.cli.conftest import Run
from tests.cli.scripted_files import HOME, ScriptedFiles, summary
from tests.scripted_server import ScriptedServer

GIB = 1 << 30
MIB = 1 << 20


@pytest.fixture
def files(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> ScriptedFiles:
    scripted = ScriptedFiles()
    monkeypatch.setattr(PlatformCalls, "files", scripted)
    return scripted


def many(files: ScriptedFiles) -> None:
    """6,000 files, part of them there already."""
    files.events = [
        Planned(6000, 2 * GIB, 3600, 1229 * MIB),
        Moved(819 * MIB),
        FileDone("data/a", f"{HOME}/data/a", 5, 5, "sent"),
    ]
    files.summary = summary(
        files=6000,
        size_bytes=2 * GIB,
        sent_files=2400,
        sent_bytes=819 * MIB,
        same_files=3600,
        same_bytes=1229 * MIB,
        seconds=1.13,
    )


def one(files: ScriptedFiles, source: str, target: str, size_bytes: int = 36) -> None:
    files.events = [
        Planned(1, size_bytes, 0, 0),
        Moved(size_bytes),
        FileDone(source, target, size_bytes, size_bytes, "sent"),
    ]
    files.summary = summary(
        files=1, size_bytes=size_bytes, sent_files=1, sent_bytes=size_bytes, seconds=0.04
    )


# --- beside a terminal -----------------------------------------------------------------------


def test_the_summary_is_one_line(files: ScriptedFiles, run: Run) -> None:
    many(files)
    ran = run("pfs", "cp", "-r", "./data", f"{HOME}/")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "6,000 files, 2.0 GiB: sent 0.8 GiB, already there 1.2 GiB, 1.1 s\n"


def test_a_folder_that_is_fetched_is_named(files: ScriptedFiles, run: Run) -> None:
    many(files)
    ran = run("pfs", "cp", f"{HOME}/job_word_emb/output", "./output")
    assert ran.out.startswith(f"Downloading {HOME}/job_word_emb/output ... Done\n6,000 files, ")


def test_one_file_is_named(files: ScriptedFiles, run: Run) -> None:
    one(files, f"{HOME}/model", "model")
    ran = run("pfs", "cp", f"{HOME}/model", "./")
    assert ran.out == f"Downloading {HOME}/model ... Done\n1 file, 36 B: received 36 B, 0.0 s\n"
    ran = run("pfs", "cp", "model", f"{HOME}/model")
    assert ran.out == "Uploading model ... Done\n1 file, 36 B: sent 36 B, 0.0 s\n"
    ran = run("pfs", "cp", f"{HOME}/model", f"{HOME}/again")
    assert ran.out.startswith(f"Copying {HOME}/model ... Done\n1 file, 36 B: copied 1 file on")


def test_what_is_there_already_is_not_said_to_travel(files: ScriptedFiles, run: Run) -> None:
    files.events = [Planned(1, 36, 1, 36)]
    files.summary = summary(files=1, size_bytes=36, same_files=1, same_bytes=36)
    ran = run("pfs", "cp", "model", HOME)
    assert ran.out == "1 file, 36 B: already there 36 B, 0.0 s\n"


def test_verbose_is_one_line_per_file(files: ScriptedFiles, run: Run) -> None:
    files.events = [
        Planned(3, 10, 1, 3),
        FileDone("data/a", f"{HOME}/data/a", 3, 0, "same"),
        Note("data/link is a symbolic link and was not sent"),
        FileDone("data/b", f"{HOME}/data/b", 7, 7, "sent"),
        FileDone("data/c", f"{HOME}/data/c", 0, 0, "skipped"),
    ]
    ran = run("pfs", "cp", "-rv", "data", HOME)
    assert ran.out.splitlines()[:-1] == [
        f"same data/a -> {HOME}/data/a",
        f"sent data/b -> {HOME}/data/b",
        f"skipped data/c -> {HOME}/data/c",
    ]
    assert ran.err == "note: data/link is a symbolic link and was not sent\n"


def test_a_line_says_which_way_a_file_went(files: ScriptedFiles, run: Run) -> None:
    one(files, f"{HOME}/m", "./m")
    for target, word in (("./", "received"), (f"{HOME}/n", "copied")):
        ran = run("pfs", "cp", "-v", f"{HOME}/m", target)
        assert ran.out.startswith(f"{word} {HOME}/m -> ./m\n")


@pytest.mark.parametrize(
    ("words", "how"),
    [
        ((), {"replace": "changed", "recursive": False, "preserve_times": False}),
        (("-f",), {"replace": "always"}),
        (("-n",), {"replace": "never"}),
        (("-r", "-p"), {"recursive": True, "preserve_times": True}),
        (("--chunksize", "4096"), {"chunk_bytes": 4096}),
        (("-chunksize=4Mi",), {"chunk_bytes": 4 * MIB}),
        (("-v",), {"tell_same": True}),
    ],
)
def test_flags_reach_the_sdk(
    files: ScriptedFiles, run: Run, words: tuple[str, ...], how: dict[str, Any]
) -> None:
    assert run("pfs", "cp", *words, "a", "b", f"{HOME}/").code == 0
    assert run("pfs", "cp", "a", "b", f"{HOME}/", *words).code == 0
    (_, first), (_, second) = files.asked
    assert first == second
    assert first[:2] == (["a", "b"], f"{HOME}/")
    assert first[2].items() >= how.items()


@pytest.mark.parametrize(("text", "size_bytes"), [("4096", 4 * MIB), ("4Mi", 4 * MIB)])
def test_the_old_chunk_size_counts_in_kb(
    files: ScriptedFiles, run: Run, text: str, size_bytes: int
) -> None:
    run("cp", "-chunksize", text, "a", f"{HOME}/a")
    assert files.asked[0][1][2]["chunk_bytes"] == size_bytes


def test_the_old_copy_has_its_lines(files: ScriptedFiles, run: Run) -> None:
    one(files, "model", f"{HOME}/model")
    assert run("cp", "model", HOME).out.splitlines()[0] == "[INFO]  Uploaded model"
    one(files, f"{HOME}/model", "./model")
    assert run("cp", f"{HOME}/model", ".").out.splitlines()[0] == f"[INFO]  Downloaded {HOME}/model"


def test_failures_are_named_and_the_rest_is_summed_up(files: ScriptedFiles, run: Run) -> None:
    files.events = [Planned(3, 10, 0, 0)]
    files.summary = summary(
        files=3,
        size_bytes=10,
        sent_files=1,
        sent_bytes=4,
        failures=[
            ("data/a", InvalidInput("Permission denied")),
            (f"{HOME}/b", Conflict(f"{HOME}/b is a folder")),
        ],
    )
    ran = run("pfs", "cp", "-r", "data", HOME)
    assert ran.err == f"error: data/a: Permission denied\nerror: {HOME}/b is a folder\n"
    assert ran.out == "3 files, 10 B: sent 4 B, failed 2 files, 0.0 s\n"
    assert ran.code == 1


def test_a_single_file_that_fails_is_not_done(files: ScriptedFiles, run: Run) -> None:
    files.events = [Planned(1, 10, 0, 0)]
    files.summary = summary(files=1, size_bytes=10, failures=[("a", Conflict("changed"))])
    ran = run("pfs", "cp", "a", HOME)
    assert ran.out.startswith("Uploading a ... failed\n")
    assert (ran.err, ran.code) == ("error: a: changed\n", 1)


def test_a_lost_server_says_how_far_it_got(files: ScriptedFiles, run: Run) -> None:
    files.events = [Planned(2, 100, 0, 0), Moved(40), ServerUnreachable("no server answers")]
    ran = run("pfs", "cp", "-r", "data", HOME)
    assert ran.code == 6
    assert ran.err == (
        "error: no server answers\n"
        "hint:  stopped at 40%. Run the same command again to go on from there.\n"
    )


def test_a_full_disk_does_not_ask_to_try_again(files: ScriptedFiles, run: Run) -> None:
    files.events = [Planned(2, 100, 0, 0), Moved(40), OutOfSpace("the disk is full")]
    ran = run("pfs", "cp", "-r", "data", HOME)
    assert (ran.code, ran.err) == (1, "error: the disk is full\n")


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([Planned(2, 100, 1, 50), Moved(11)], "stopped at 61%. "),
        ([Planned(2, 100, 1, 50), Moved(11), Moved(-11)], "stopped at 61%. "),
        ([], "stopped before anything was moved. "),
    ],
)
def test_ctrl_c_says_how_to_go_on(
    files: ScriptedFiles, run: Run, events: list[Any], said: str
) -> None:
    files.events = [*events, KeyboardInterrupt()]
    for words in (("cp", "-r"), ("sync",)):
        ran = run("pfs", *words, "data", HOME)
        assert (ran.code, ran.out) == (130, "")
        assert ran.err == f"{said}Run the same command again to go on from there.\n"


@pytest.mark.parametrize(
    ("name", "text"), [("a\nb", "a\\nb"), ("\udcff", "\\udcff"), ("\x1b[2J", "\\x1b[2J")]
)
def test_names_that_cannot_be_shown_are_spelt_out(
    files: ScriptedFiles, run: Run, name: str, text: str
) -> None:
    one(files, name, f"{HOME}/x")
    assert run("pfs", "cp", name, HOME).out.startswith(f"Uploading {text} ... Done\n")
    assert run("pfs", "cp", "-v", name, HOME).out.startswith(f"sent {text} -> ")
    assert run("cp", name, HOME).out.startswith(f"[INFO]  Uploaded {text}\n")
    files.summary = summary(files=1, failures=[(name, InvalidInput(f"{name}: no"))])
    assert run("pfs", "cp", name, HOME).err == f"error: {text}: no\n"
    files.events = [InvalidInput("a path must be valid Unicode")]
    assert run("pfs", "cp", name, HOME).err == f"error: {text}: a path must be valid Unicode\n"


def test_json_is_the_summary(files: ScriptedFiles, run: Run) -> None:
    many(files)
    files.summary.failures = [("x", Conflict("no"))]
    ran = run("pfs", "cp", "-r", "data", HOME, "-o", "json")
    told = json.loads(ran.out)
    assert (told["files"], told["sent_bytes"], told["seconds"]) == (6000, 819 * MIB, 1.13)
    assert told["failures"] == [{"path": "x", "code": "conflict", "message": "no"}]
    assert "items" not in told
    assert ran.code == 1
    told = json.loads(run("pfs", "cp", "-rv", "data", HOME, "-o", "json").out)
    assert [item["action"] for item in told["items"]] == ["sent"]


def test_sync_shows_what_it_would_do(files: ScriptedFiles, run: Run) -> None:
    files.events = [
        Planned(2, 20, 1, 10),
        FileDone("data/a", f"{HOME}/data/a", 10, 10, "would send"),
        FileDone("", f"{HOME}/data/old", 5, 0, "would remove"),
    ]
    files.summary = summary(
        files=2, size_bytes=20, sent_files=1, sent_bytes=10, same_files=1, removed_files=1
    )
    ran = run("pfs", "sync", "--delete", "--dry-run", "data/", f"{HOME}/data")
    assert ran.out == (
        f"would send data/a -> {HOME}/data/a\n"
        f"would remove {HOME}/data/old\n"
        "dry run, nothing was done. It would send 1 file, 10 B and remove 1 file; "
        "1 file already there\n"
    )
    assert files.asked[0][1][2].items() >= {"delete": True, "dry_run": True}.items()
    items = json.loads(run("pfs", "sync", "--dry-run", "d", HOME, "-o", "json").out)["items"]
    assert [item["action"] for item in items] == ["would send", "would remove"]


def test_sync_says_what_it_removed(files: ScriptedFiles, run: Run) -> None:
    files.events = [
        Planned(1, 10, 1, 10),
        FileDone("", f"{HOME}/data/old", 5, 0, "removed"),
    ]
    files.summary = summary(files=1, size_bytes=10, same_files=1, same_bytes=10, removed_files=1)
    ran = run("pfs", "sync", "--delete", "data/", f"{HOME}/data")
    assert ran.out == (
        f"removed {HOME}/data/old\n1 file, 10 B: already there 10 B, removed 1 file, 0.0 s\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("cp", "a", "b"), "a and b are both here; one side must begin with /pfs/"),
        (("cp", "a", f"{HOME}/b", "c"), f"a is here and {HOME}/b is on the platform"),
        (("cp", "a"), "usage: paddlecloud pfs cp"),
        (("cp", "-f", "-n", "a", HOME), "-f and -n say opposite things"),
        (("cp", "a", "/pfs/local"), "/pfs/local names no home"),
        (("cp", "a", f"{HOME}/{'x' * 256}"), f"{HOME}/{'x' * 256}: a name in a path can have"),
        (("cp", "--chunksize", "4GB", "a", HOME), "--chunksize 4GB"),
        (("cp", "--chunksize", "0", "a", HOME), "must be more than 0"),
        (("sync", "a", "b", HOME), "usage: paddlecloud pfs sync"),
        (("sync", "a", "b"), "both here"),
    ],
)
def test_refuses_and_says_what_to_type(
    files: ScriptedFiles, run: Run, words: tuple[str, ...], message: str
) -> None:
    ran = run("pfs", *words)
    assert (ran.code, message in ran.err) == (2, True), ran.err
    assert files.asked == []
