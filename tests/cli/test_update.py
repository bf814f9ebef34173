"""`update`: real wheels into real environments, from files and from an index on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import releases
from tests.cli.conftest import Run
from tests.releases import CURRENT, Installation, index_of, make_wheel, sha256_of, with_sum

NEW = "99.1"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release that is installed, as a file."""
    return make_wheel(tmp_path_factory.mktemp("installed"), CURRENT)


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_sum(make_wheel(tmp_path_factory.mktemp("newer"), NEW))


@pytest.fixture
def installed(tmp_path: Path, wheel: Path) -> Installation:
    return Installation(tmp_path / "home", wheel)


def test_says_that_a_development_install_is_left_alone(run: Run) -> None:
    checked = run("update", "--check")
    assert checked.code == 0
    assert checked.out.startswith(f"installed  {CURRENT}, ")
    assert "nothing was changed" in checked.out
    assert run("update").code == 1


@pytest.mark.slow
def test_switches_to_a_wheel_and_back(installed: Installation, newer: Path) -> None:
    before = installed.content()
    done = installed.run("update", "--wheel", str(newer))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"switched   to {NEW}" in done.stdout
    assert installed.version == NEW
    assert installed.content() == before  # what runs from it runs on
    assert [p.name for p in (installed.home / ".paddlecloud" / "versions").iterdir()] == [
        f"{NEW}-{sha256_of(newer)[:8]}"
    ]
    again = installed.run("update", "--wheel", str(newer))
    assert (again.returncode, "is what is installed" in again.stdout) == (0, True)
    back = installed.run("update", "--rollback")
    assert (back.returncode, back.stdout.splitlines()[-1]) == (
        0,
        f"switched   back to paddlecloud {CURRENT}",
    )
    assert installed.version == CURRENT
    assert "no release to go back to" in installed.run("update", "--rollback").stderr


@pytest.mark.slow
def test_an_update_after_an_update(installed: Installation, newer: Path, tmp_path: Path) -> None:
    newest = with_sum(make_wheel(tmp_path / "w", "99.2"))
    assert installed.run("update", "--wheel", str(newer)).returncode == 0
    done = installed.run("update", "--wheel", str(newest))
    assert done.returncode == 0, done.stderr
    assert installed.version == "99.2"
    assert installed.run("update", "--rollback").returncode == 0
    assert installed.version == NEW
    # The same release once more: in a place of its own, since something may run from the first.
    assert installed.run("update", "--wheel", str(newest)).returncode == 0
    assert installed.version == "99.2"
    assert len(list((installed.home / ".paddlecloud" / "versions").iterdir())) == 3


@pytest.mark.slow
def test_check_says_what_it_would_do_and_does_nothing(installed: Installation, newer: Path) -> None:
    before = installed.launcher.read_text()
    done = installed.run("update", "--check", "--index", str(newer.parent))
    assert done.returncode == 0, done.stderr
    target = installed.home / ".paddlecloud" / "versions" / f"{NEW}-{sha256_of(newer)[:8]}"
    assert done.stdout.splitlines() == [
        f"installed  {CURRENT}   {installed.prefix}",
        f"available  {NEW}   {newer}",
        f"checksum   sha256 {sha256_of(newer)[:16]}…   by {newer}.sha256",
        "checked    the file is whole; nothing was installed",
        f"would      install it into {target}",
        f"would      switch {installed.prefix}/bin/paddlecloud to it",
        f"would      switch {installed.prefix}/bin/paddlectl to it",
    ]
    assert installed.launcher.read_text() == before
    assert not (installed.home / ".paddlecloud").exists()


@pytest.mark.slow
def test_takes_the_newest_final_release_of_an_index(
    installed: Installation, newer: Path, wheel: Path, tmp_path: Path
) -> None:
    early = make_wheel(tmp_path / "w", "100.0rc1")
    with index_of(newer, early, wheel, folder=tmp_path / "served") as url:
        done = installed.run("update", PADDLECLOUD_UPDATE_INDEX=url)
        assert done.returncode == 0, done.stderr
        assert installed.version == NEW
        (installed.home / ".paddlecli").mkdir()
        (installed.home / ".paddlecli" / "config").write_text(f"[update]\nindex = {url}\n")
        assert "available  100.0rc1" in installed.run("update", "--check", "--pre").stdout
        older = installed.run("update", "--to", CURRENT)
        assert older.returncode == 0, older.stderr
        assert installed.version == CURRENT
        assert installed.run("update", "--to", "55").returncode == 4


@pytest.mark.slow
def test_refuses_what_is_not_vouched_for(
    installed: Installation, newer: Path, tmp_path: Path
) -> None:
    lonely = tmp_path / "lonely" / newer.name
    lonely.parent.mkdir()
    lonely.write_bytes(newer.read_bytes())
    no_sum = installed.run("update", "--wheel", str(lonely))
    assert (no_sum.returncode, "which checksum" in no_sum.stderr) == (2, True)
    wrong = installed.run("update", "--wheel", str(lonely), "--sha256", "0" * 64)
    assert (wrong.returncode, "does not have the checksum" in wrong.stderr) == (1, True)
    odd = installed.run("update", "--wheel", str(lonely), "--sha256", "zz")
    assert (odd.returncode, "64 hex digits" in odd.stderr) == (2, True)
    with index_of(newer, folder=tmp_path / "served", hashes=False) as url:
        assert installed.run("update", "--index", url).returncode == 2
    given = installed.run("update", "--check", "--wheel", str(lonely), "--sha256", sha256_of(newer))
    assert given.returncode == 0, given.stderr
    assert installed.version == CURRENT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"spoil": True}, "is not what its list of content says"),
        ({"python": ">=9"}, "needs Python >=9"),
        ({"replace": {"paddlecloud/cli/main.py": "def main(: broken"}}, "does not start"),
        ({"replace": {"paddlecloud/cli/version.py": "1 / 0"}}, "does not start"),
        ({"requires": ("no-such-package>=1",)}, "needs packages that could not be installed"),
        ({"replace": {"../outside.py": ""}}, "would land outside"),
    ],
)
def test_a_release_that_does_not_work_changes_nothing(
    installed: Installation, tmp_path: Path, changes: dict, said: str
) -> None:
    bad = with_sum(make_wheel(tmp_path / "w", NEW, **changes))
    before = installed.launcher.read_text()
    done = installed.run("update", "--wheel", str(bad))
    assert done.returncode in (1, 5), done.stdout
    assert said in done.stderr
    assert installed.launcher.read_text() == before
    assert installed.version == CURRENT


@pytest.mark.slow
def test_refuses_a_wrong_command_line(installed: Installation, newer: Path) -> None:
    for words, said in (
        ((), "no index is configured"),
        (("--index", "/nowhere"), "there is no folder /nowhere"),
        (("--wheel", "/nowhere/x.whl"), "is not the name of a wheel"),
        (("--wheel", f"/nowhere/{newer.name}"), "there is no file"),
        (("--wheel", str(newer), "--index", "x"), "exclude each other"),
        (("now",), "what is now?"),
    ):
        done = installed.run("update", *words)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    gone = installed.run("update", "--index", "http://127.0.0.1:1/simple")
    assert (gone.returncode, "cannot read http://127.0.0.1:1" in gone.stderr) == (6, True)
    assert "Traceback" not in gone.stderr


def test_the_wheels_of_these_tests_have_the_name_of_the_program() -> None:
    assert releases.SOURCE.name == "paddlecloud"
