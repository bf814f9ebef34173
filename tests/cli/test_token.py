"""`token` and `config`: several named key pairs in the files of the second client."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("elsewhere")
LONG = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "paddlecli"


def test_bare_says_which_pair_is_in_use(run: Run) -> None:
    assert run("token").out == "no key pair is in use\n"
    assert run("config", "--ak", LONG, "--sk", "s1").code == 0
    ran = run("token")
    assert (ran.code, ran.out) == (0, "default   access key 0123******\n")
    assert json.loads(run("token", "--json").out) == {
        "token_name": "default",
        "user_ak": "0123******",
    }


def test_adds_by_asking_and_the_first_is_used(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = iter(["work", "a1", "s1", "play", "a2", "s2"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    first = run("token", "-a")
    assert (first.code, first.out, first.err) == (0, "Configure done.\n", "")
    assert "switch play" in run("token", "--add").err
    assert (home / "token").read_text() == (
        "[work]\nuser_ak = a1\nuser_sk = s1\n\n[play]\nuser_ak = a2\nuser_sk = s2\n\n"
    )
    assert "token_name = work\nuser_ak = a1\n" in (home / "config").read_text()
    for name in ("token", "config"):
        assert (home / name).stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700


def add(run: Run, name: str, ak: str = LONG, sk: str = "s1") -> None:
    ran = run("token", "-a", "--token-name", name, "--ak", ak, "--sk", sk)
    assert (ran.code, ran.out) == (0, "Configure done.\n")


def test_lists_switches_and_removes(run: Run, home: Path) -> None:
    assert run("token", "-l").out == "No data.\n"
    add(run, "work")
    add(run, "play", "a2")
    assert run("token", "-l").out == (
        "=================================\n"
        "token_name | user_ak    | current\n"
        "---------------------------------\n"
        "play       | ******     |\n"
        "work       | 0123****** | *\n"
    )
    assert run("token", "--switch", "play").out == "using play\n"
    assert "token_name = play\nuser_ak = a2\n" in (home / "config").read_text()
    listed = json.loads(run("token", "--list", "--json").out)
    assert [each["token_name"] for each in listed if each["current"]] == ["play"]
    ran = run("token", "--remove", "play")
    assert (ran.code, ran.out) == (0, "removed play\n")
    assert "it was the one in use" in ran.err
    assert "a2" not in (home / "config").read_text() + (home / "token").read_text()
    assert run("token").out == "no key pair is in use\n"
    assert run("token", "--remove=work").err == ""


def test_knows_the_pair_of_a_file_that_has_only_one(run: Run, home: Path) -> None:
    home.mkdir()
    old = "[token]\ntoken_name = old\nuser_ak = a1\nuser_sk = s1\n[server]\nhost = h\nport = 80\n"
    (home / "config").write_text(old)
    add(run, "new", "a2", "s2")
    assert "old" in run("token", "-l").out
    assert run("token", "--switch", "new").code == 0
    assert run("token", "--switch", "old").code == 0
    assert run("token").out == "old   access key ******\n"
    assert "host = h\n" in (home / "config").read_text()


def test_changing_the_pair_in_use_changes_it_everywhere(run: Run, home: Path) -> None:
    add(run, "work")
    add(run, "work", "a9", "s9")
    assert "user_ak = a9" in (home / "config").read_text()
    assert run("config", "--ak", "a8", "--sk", "s8", "--token-name", "play").code == 0
    assert "token_name = play" in (home / "config").read_text()
    assert "[play]" in (home / "token").read_text()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--switch", "x"), 4, "there is no key pair called x"),
        (("--switch", "x"), 4, "known: work"),
        (("--remove", "x"), 4, "there is no key pair called x"),
        (("--switch",), 2, "--switch    needs a value"),
        (("-a", "-l"), 2, "token cannot do -l as well"),
        (("nonsense",), 2, "token cannot do nonsense as well"),
        (("--ak", "a", "--sk", "b"), 2, "--ak goes with -a only"),
        (("-a", "--ak", "a"), 2, "--ak    needs --sk beside it"),
        (("-a", "--ak", "a/b", "--sk", "c d"), 2, "error: 2 problems"),
        (("-a", "--token-name", "DEFAULT", "--ak", "a", "--sk", "b"), 2, "and not DEFAULT"),
        (("-a", "--token-name", "a]b", "--ak", "a", "--sk", "b"), 2, "must be 1 to 64"),
        (("--nonsense",), 2, "unknown flag"),
    ],
)
def test_refuses(run: Run, home: Path, words: tuple[str, ...], code: int, said: str) -> None:
    add(run, "work")
    before = (home / "token").read_text()
    ran = run("token", *words)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert "a/b" not in ran.err
    assert (home / "token").read_text() == before


def test_an_open_file_left_by_a_crash_is_closed(run: Run, home: Path) -> None:
    home.mkdir()
    (home / "config").write_text("[server]\nhost = h\nport = 80\n")
    (home / "config").chmod(0o644)
    add(run, "work")
    assert (home / "config").stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in home.iterdir()) == ["config", "token"]


def test_sets_the_server_without_asking(run: Run, home: Path) -> None:
    ran = run("config", "--host", "10.0.0.1", "--port", "8080")
    assert (ran.code, ran.out) == (0, "Configure done.\n")
    assert (home / "config").read_text() == "[server]\nhost = 10.0.0.1\nport = 8080\n\n"
