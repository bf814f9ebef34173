"""Folders whose files are all known are asked about as one, and every change is still found."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.sdk import Client
from paddlecloud.sdk.transfers import settling
from paddlecloud.sdk.transfers.events import Event, Summary
from paddlecloud.testing.chaos_proxy import ChaosProxy
from tests.pfs.sdk_fixtures import check, client, done, own_cache, proxy, service
from tests.pfs.sdk_service import HOME, Service

__all__ = ["client", "own_cache", "proxy", "service"]  # fixtures

N_FOLDERS, N_FILES = 5, 40
ONE_BY_ONE_BYTES = N_FOLDERS * N_FILES * 64  # the digests alone


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files that have been still for long enough to be remembered."""
    monkeypatch.setattr(settling, "is_settled", lambda *_: True)
    root = tmp_path / "tree"
    for folder in range(N_FOLDERS):
        (root / f"sub{folder}").mkdir(parents=True)
        for n in range(N_FILES):
            (root / f"sub{folder}" / f"f{n}").write_bytes(b"%d %d" % (folder, n))
    return root


class Mirror:
    """A tree on the server, brought up to date again and again."""

    def __init__(self, client: Client, service: Service, proxy: ChaosProxy, tree: Path) -> None:
        self.tree = tree
        self.there = service.stored(tree.parent.name) / "tree"
        self._client, self._proxy = client, proxy
        self._target = f"{HOME}/{tree.parent.name}/tree"
        for _ in range(2):  # send; then learn what the folders are
            self.update()

    def update(self) -> tuple[list[str], int, Summary]:
        """Names of the files sent, the bytes that went up, and the rest."""
        before = self._proxy.sent["up"]
        events: list[Event] = []
        summary = check(
            self._client.files.copy(
                [f"{self.tree}/"], self._target, recursive=True, on_event=events.append
            )
        )
        sent = [target.rpartition("/tree/")[2] for action, target in done(events)]
        return sent, self._proxy.sent["up"] - before, summary


@pytest.fixture
def mirror(client: Client, service: Service, proxy: ChaosProxy, tree: Path) -> Mirror:
    return Mirror(client, service, proxy, tree)


def test_an_unchanged_tree_takes_one_question_per_folder(mirror: Mirror) -> None:
    sent, up_bytes, summary = mirror.update()
    assert sent == []
    assert summary.same_files == N_FOLDERS * N_FILES
    assert up_bytes < ONE_BY_ONE_BYTES / 4


def test_a_local_change_is_sent_alone(mirror: Mirror) -> None:
    (mirror.tree / "sub3/f7").write_bytes(b"X X")
    sent, _, summary = mirror.update()
    assert sent == ["sub3/f7"]
    assert (mirror.there / "sub3/f7").read_bytes() == b"X X"
    assert summary.same_files == N_FOLDERS * N_FILES - 1
    assert mirror.update()[0] == []


@pytest.mark.parametrize("change", ["bytes", "gone", "mode", "swapped"])
def test_a_change_on_the_server_is_found(mirror: Mirror, change: str) -> None:
    one, other = mirror.there / "sub1/f1", mirror.there / "sub1/f2"
    if change == "bytes":
        with one.open("r+b") as file:
            file.write(b"9")
    elif change == "gone":
        one.unlink()
    elif change == "mode":
        (mirror.tree / "sub1/f1").chmod(0o755)
        assert mirror.update()[0] == ["sub1/f1"]
        one.chmod(0o644)
    else:
        kept = one.rename(mirror.there / "kept")
        other.rename(one)
        kept.rename(other)
    sent, _, _ = mirror.update()
    assert "sub1/f1" in sent
    assert sent == (["sub1/f1", "sub1/f2"] if change == "swapped" else ["sub1/f1"])
    assert one.read_bytes() == (mirror.tree / "sub1/f1").read_bytes()
    assert other.read_bytes() == (mirror.tree / "sub1/f2").read_bytes()
    assert bool(one.stat().st_mode & 0o100) == (change == "mode")


def test_a_file_too_many_on_the_server_is_left_alone(mirror: Mirror) -> None:
    (mirror.there / "sub1/more").write_bytes(b"from a job")
    sent, _, summary = mirror.update()
    assert sent == []
    assert summary.same_files == N_FOLDERS * N_FILES
    assert (mirror.there / "sub1/more").read_bytes() == b"from a job"


@pytest.mark.needs("linux")
@pytest.mark.parametrize("where", ["here", "there"])
@pytest.mark.parametrize("executable", [True, False])
def test_an_executable_bit_is_brought_over_whatever_else_is_executable(
    mirror: Mirror, where: str, executable: bool
) -> None:
    """`here`: changed on this machine; `there`: on the server, where a job may have done it."""
    here, there = mirror.tree / "sub2/f3", mirror.there / "sub2/f3"
    if executable == (where == "there"):  # it has to have the bit before
        here.chmod(0o755)
        assert mirror.update()[0] == ["sub2/f3"]
    changed, is_set = (here, executable) if where == "here" else (there, not executable)
    changed.chmod(0o755 if is_set else 0o644)
    assert mirror.update()[0] == ["sub2/f3"]
    assert bool((mirror.there / "sub2/f3").stat().st_mode & 0o100) == executable
    assert mirror.update()[0] == []


@pytest.mark.needs("linux")
def test_a_bit_that_is_taken_from_the_only_file_is_taken_there(
    client: Client, service: Service, tmp_path: Path
) -> None:
    (tmp_path / "src").mkdir()
    run = tmp_path / "src/run.sh"
    run.write_text("x")
    for mode in (0o755, 0o644, 0o755):
        run.chmod(mode)
        target = f"{HOME}/{tmp_path.name}"
        check(client.files.copy([f"{tmp_path}/src/"], target, recursive=True))
        there = service.stored(tmp_path.name) / "run.sh"
        assert there.stat().st_mode & 0o100 == mode & 0o100
