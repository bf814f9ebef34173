"""Files through the real command line and platform: there, back, across, and after cuts."""

from __future__ import annotations

import filecmp
import os
import pty
import re
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.e2e.platform import CLI, Platform, until
from tests.patience import PATIENCE_S

HOME = "/pfs/local/home/alice"
MIB = 1 << 20
LEAF_BYTES = 4 * MIB
CONNECTIONS = 2


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of all that a name, a size and a mode can be."""
    folder = tmp_path / "data"
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "empty folder").mkdir()
    (folder / "a.txt").write_text("a\n")
    (folder / "empty").write_bytes(b"")
    (folder / "with space & ümläut 数据").write_bytes(os.urandom(1000))
    (folder / ("n" * 255)).write_bytes(b"long name")
    (folder / "sub" / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (folder / "sub" / "run.sh").chmod(0o755)
    (folder / "sub" / "deep" / "large").write_bytes(os.urandom(9 * MIB + 17))
    for number in range(300):
        (folder / "sub" / f"small-{number}").write_text(f"{number}\n")
    return folder


def assert_same(one: Path, other: Path) -> None:
    compared = filecmp.dircmp(one, other, ignore=[])
    assert compared.left_only == []
    assert compared.right_only == []
    assert filecmp.cmpfiles(one, other, compared.common_files, shallow=False)[1:] == ([], [])
    for name in compared.common_files:
        assert os.access(one / name, os.X_OK) == os.access(other / name, os.X_OK)
    for name in compared.common_dirs:
        assert_same(one / name, other / name)


def test_a_folder_goes_there_across_and_back(
    platform: Platform, data: Path, tmp_path: Path
) -> None:
    out = platform.ok("pfs", "cp", "-r", str(data), f"{HOME}/there/")
    assert out.startswith("306 files, 9.0 MiB: sent 9.0 MiB, ")
    assert out.count("\n") == 1
    platform.ok("pfs", "cp", "-r", f"{HOME}/there/data/", f"{HOME}/across")
    platform.ok("pfs", "cp", "-r", f"{HOME}/across", f"{tmp_path}/")
    assert_same(data, tmp_path / "across")


def test_sends_only_what_changed(platform: Platform, data: Path) -> None:
    platform.ok("pfs", "cp", "-r", str(data), f"{HOME}/changing/")
    again = platform.ok("pfs", "cp", "-r", str(data), f"{HOME}/changing/")
    assert again.startswith("306 files, 9.0 MiB: already there 9.0 MiB, ")
    with (data / "sub" / "deep" / "large").open("r+b") as file:
        file.seek(5 * MIB)
        file.write(b"one line")
    told = platform.json("pfs", "cp", "-r", str(data), f"{HOME}/changing/")
    assert isinstance(told, dict)
    assert (told["sent_files"], told["same_files"]) == (1, 305)
    assert told["sent_bytes"] == LEAF_BYTES


def test_sync_makes_the_target_the_same(platform: Platform, data: Path, tmp_path: Path) -> None:
    platform.ok("pfs", "sync", f"{data}/", f"{HOME}/synced")
    (data / "a.txt").unlink()
    (data / "new").write_text("new")
    before = platform.ok("pfs", "ls", "-r", f"{HOME}/synced")
    shown = platform.ok("pfs", "sync", "--delete", "--dry-run", f"{data}/", f"{HOME}/synced")
    assert f"would send {data}/new -> {HOME}/synced/new\n" in shown
    assert f"would remove {HOME}/synced/a.txt\n" in shown
    assert platform.ok("pfs", "ls", "-r", f"{HOME}/synced") == before
    out = platform.ok("pfs", "sync", "--delete", f"{data}/", f"{HOME}/synced")
    assert f"removed {HOME}/synced/a.txt\n" in out
    target = tmp_path / "back"
    target.mkdir()
    (target / "leftover").write_text("not in the source")
    platform.ok("pfs", "sync", "--delete", f"{HOME}/synced/", str(target))
    assert_same(data, target)


def test_patterns_are_expanded_there(platform: Platform, data: Path, tmp_path: Path) -> None:
    platform.ok("pfs", "cp", "-r", f"{data}/sub", f"{HOME}/patterns/")
    platform.ok("pfs", "cp", f"{HOME}/patterns/sub/small-29?", f"{tmp_path}/got/")
    assert sorted(os.listdir(tmp_path / "got")) == [f"small-29{n}" for n in range(10)]
    platform.ok("pfs", "rm", f"{HOME}/patterns/sub/small-*")
    assert platform.ok("pfs", "ls", f"{HOME}/patterns/sub") == "deep/\nrun.sh\n"


def test_the_first_clients_words_work(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("36 bytes are what this line amounts.")
    assert platform.ok("mkdir", f"{HOME}/old/a") == f"mkdir {HOME}/old/a\n"
    sent = platform.ok("cp", "-chunksize", "4096", f"{tmp_path}/x", f"{HOME}/old/a/")
    assert sent.startswith(f"[INFO]  Uploaded {tmp_path}/x\n")
    rows = platform.ok("ls", "-r", f"{HOME}/old").splitlines()
    assert rows[0] == f"{HOME}/old :"
    assert rows[2].split()[2:] == ["f", "36", f"{HOME}/old/a/x"]
    assert rows[-1] == ""
    assert platform.ok("mv", f"{HOME}/old/a/x", f"{HOME}/old/y") == (
        f"mv {HOME}/old/a/x {HOME}/old/y\n"
    )
    assert platform.ok("rm", "-rf", f"{HOME}/old", f"{HOME}/none") == f"rm {HOME}/old\n"
    gone = platform.run("ls", f"{HOME}/old")
    assert gone.returncode == 4
    assert f"  error:no such file or directory: {HOME}/old\n" in gone.stdout


def test_a_job_reads_what_was_put_and_its_output_is_fetched(
    platform: Platform, tmp_path: Path
) -> None:
    (tmp_path / "numbers").write_text("1\n2\n3\n")
    platform.ok("pfs", "cp", f"{tmp_path}/numbers", f"{HOME}/input/")
    package = platform.package(
        "summing",
        train_py="import os\n"
        f"total = sum(int(line) for line in open('{HOME}/input/numbers'))\n"
        "open(os.environ['OUTPUT_PATH'] + '/total', 'w').write(str(total))\n",
    )
    platform.ok(
        *("submit", "-jobname", "summing", "--mode", "single", "-entry", "python train.py"),
        *("-memory", "64Mi", "--wait", str(package)),
    )
    output = f"{HOME}/jobs/summing/output"
    assert platform.ok("pfs", "cat", f"{output}/total") == "6"
    fetched = platform.ok("pfs", "cp", "-r", output, f"{tmp_path}/")
    assert fetched.startswith(f"Downloading {output} ... Done\n1 file, 1 B: received 1 B, ")
    assert (tmp_path / "output" / "total").read_text() == "6"


def test_what_cannot_be_sent_is_named_and_the_rest_goes(platform: Platform, tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "good").write_text("good")
    (folder / "good-too").write_text("good")
    platform.ok("pfs", "mkdir", f"{HOME}/mixed/good")
    done = platform.run("pfs", "cp", "-r", f"{folder}/", f"{HOME}/mixed")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert f"{folder}/good" in done.stderr or f"{HOME}/mixed/good" in done.stderr
    assert "failed 1 file" in done.stdout
    assert platform.ok("pfs", "cat", f"{HOME}/mixed/good-too") == "good"


def test_a_link_is_fetched_without_a_login_until_revoked(
    platform: Platform, tmp_path: Path
) -> None:
    (tmp_path / "model").write_bytes(b"weights")
    platform.ok("pfs", "cp", f"{tmp_path}/model", f"{HOME}/")
    link = platform.ok("publish", "--expires", "1h", f"{HOME}/model").strip()
    with urllib.request.urlopen(link) as answer:
        assert answer.read() == b"weights"
    told = platform.json("publish")
    assert isinstance(told, dict)
    platform.ok("publish", "--revoke", told["items"][0]["id"])
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(link)


# --- cuts ------------------------------------------------------------------------------------


def under_way(platform: Platform, source: Path, target: str) -> tuple[subprocess.Popen[bytes], int]:
    """A copy on a terminal, to be stopped in its tracks: it has shown a tenth or more."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [str(CLI), "pfs", "cp", str(source), target],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**platform.env, "TERM": "xterm"},
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    while not re.search(rb"[1-9]\d%", shown):
        try:
            shown += os.read(ours, 65536)
        except OSError:  # it ended before it had anything to show
            break
    return child, ours


def rest_of(terminal: int) -> str:
    """What is still shown until the command ends."""
    shown = b""
    try:
        while piece := os.read(terminal, 65536):
            shown += piece
    except OSError:
        pass  # the last program on the other side has gone
    finally:
        os.close(terminal)
    return shown.decode()


def large_file(path: Path, size_bytes: int) -> None:
    """Every leaf differs; most of it is a hole, so that it is made at once."""
    with path.open("wb") as file:
        for offset in range(0, size_bytes, LEAF_BYTES):
            file.seek(offset)
            file.write(b"%d" % offset)
        file.truncate(size_bytes)


@pytest.mark.parametrize("cut", [signal.SIGKILL, signal.SIGINT])
def test_goes_on_after_the_command_was_cut(
    platform: Platform, tmp_path: Path, cut: signal.Signals
) -> None:
    source, target = tmp_path / f"large-{cut}", f"{HOME}/large-{cut}"
    for size_bytes in (256 * MIB, 1024 * MIB, 4096 * MIB):  # a fast machine needs a larger one
        large_file(source, size_bytes)
        child, terminal = under_way(platform, source, target)
        os.kill(child.pid, cut)
        said = rest_of(terminal)
        code = child.wait(PATIENCE_S)
        if code != 0:
            break
        platform.ok("pfs", "rm", target)
    assert code == (-signal.SIGKILL if cut == signal.SIGKILL else 130)
    if cut == signal.SIGINT:
        assert "Run the same command again to go on from there." in said
        assert "Traceback" not in said
    gone = platform.run("pfs", "stat", target)
    assert gone.returncode == 4  # nothing is seen under its name yet
    with platform.client() as client:
        (left,) = [upload for upload in client.files.uploads() if upload["path"] == target]
    told = platform.json("pfs", "cp", str(source), target)
    assert isinstance(told, dict)
    assert left["received_bytes"] > 0
    most = size_bytes - left["received_bytes"] + CONNECTIONS * LEAF_BYTES
    assert told["sent_bytes"] <= most
    platform.ok("pfs", "cp", target, f"{tmp_path}/back")
    assert filecmp.cmp(source, tmp_path / "back", shallow=False)
    with platform.client() as client:
        assert [upload for upload in client.files.uploads() if upload["path"] == target] == []
    platform.ok("pfs", "rm", target)


def test_a_cut_download_leaves_no_half_file_and_goes_on(platform: Platform, tmp_path: Path) -> None:
    source, target = tmp_path / "large", tmp_path / "back"
    for size_bytes in (256 * MIB, 1024 * MIB, 4096 * MIB):
        large_file(source, size_bytes)
        platform.ok("pfs", "cp", str(source), f"{HOME}/large")
        child, terminal = under_way(platform, Path(f"{HOME}/large"), str(target))
        child.kill()
        rest_of(terminal)
        code = child.wait(PATIENCE_S)
        if code != 0:
            break
        target.unlink()
    assert code == -signal.SIGKILL
    assert not target.exists()
    told = platform.json("pfs", "cp", f"{HOME}/large", str(target))
    assert isinstance(told, dict)
    assert told["sent_bytes"] < size_bytes
    assert filecmp.cmp(source, target, shallow=False)
    assert sorted(os.listdir(tmp_path)) == ["back", "large"]
    platform.ok("pfs", "rm", f"{HOME}/large")


def test_goes_on_while_the_server_is_restarted(breakable: Platform, tmp_path: Path) -> None:
    source = tmp_path / "large"
    for size_bytes in (256 * MIB, 1024 * MIB, 4096 * MIB):
        large_file(source, size_bytes)
        child, terminal = under_way(breakable, source, f"{HOME}/large")
        was_running = child.poll() is None
        breakable.kill_9_server()
        said = rest_of(terminal)
        assert child.wait(PATIENCE_S) == 0, said
        # It may have been through before the server is back.
        until(lambda: breakable.run("status").returncode == 0)
        if was_running:
            break
    assert was_running
    breakable.ok("pfs", "cp", f"{HOME}/large", f"{tmp_path}/back")
    assert filecmp.cmp(source, tmp_path / "back", shallow=False)
