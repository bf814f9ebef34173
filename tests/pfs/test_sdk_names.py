"""Names that are no text, and names that are spelled in two ways."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from paddlecloud.core.errors import InvalidInput
from paddlecloud.sdk.pfs import Files
from tests.pfs.sdk_fixtures import base, check, files, listing, own_cache, service, stored

__all__ = ["base", "files", "own_cache", "service", "stored"]  # fixtures


@pytest.fixture
def latin(tmp_path: Path) -> Path:
    """A folder with files, whose own name is no UTF-8."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    (folder / "src").mkdir(parents=True)
    for number in range(10):
        (folder / "src" / f"f{number}").write_bytes(b"%d" % number)
    return folder


@pytest.mark.needs("linux")
def test_a_folder_whose_path_is_no_text_is_sent_and_fetched(
    files: Files, base: str, stored: Path, latin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        check(files.copy([f"{latin}/src/"], f"{base}/t", recursive=True))
    assert listing(stored / "t") == listing(latin / "src")
    for _ in range(2):
        check(files.sync(f"{base}/t/", f"{latin}/back", delete=True))
    assert listing(latin / "back") == listing(latin / "src")
    monkeypatch.chdir(latin / "src")
    check(files.copy(["f1"], f"{base}/one"))
    assert (stored / "one").read_bytes() == b"1"


@pytest.mark.needs("linux")
@pytest.mark.parametrize("is_folder", [True, False])
def test_a_source_whose_name_is_no_text_is_refused_by_name_and_the_others_go(
    files: Files, base: str, stored: Path, latin: Path, tmp_path: Path, is_folder: bool
) -> None:
    (tmp_path / "good").write_bytes(b"x")
    bad = str(latin) if is_folder else os.fsdecode(os.fsencode(tmp_path) + b"/x\xff")
    if not is_folder:
        Path(bad).write_bytes(b"y")
    summary = files.copy([bad, str(tmp_path / "good")], base, recursive=True)
    [(path, error)] = summary.failures
    assert path == bad
    assert isinstance(error, InvalidInput)
    assert ("caf\\udce9" if is_folder else "x\\udcff") in error.message
    assert os.listdir(stored) == ["good"]


# --- one name, spelled in two ways -----------------------------------------------------------

COMPOSED = "é"
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)


@pytest.mark.needs("linux")
@pytest.mark.parametrize("name", ["{}.txt", "sub/{}.txt", "{}/f", "sub/{}/deep/f"])
def test_a_file_here_is_kept_and_brought_up_to_date_however_its_accents_are_spelled(
    files: Files, base: str, stored: Path, tmp_path: Path, name: str
) -> None:
    there, here = stored / name.format(COMPOSED), tmp_path / "got" / name.format(DECOMPOSED)
    for path in (there, here):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"hello")
    (tmp_path / "got" / f"surplus-{DECOMPOSED}").write_bytes(b"x")
    parts = name.format(DECOMPOSED).split("/")
    expected = {"/".join(parts[:n]) for n in range(1, len(parts) + 1)}
    summary = check(files.sync(f"{base}/", str(tmp_path / "got"), delete=True))
    assert (summary.same_files, summary.removed_files) == (1, 1)
    assert set(listing(tmp_path / "got")) == expected
    there.write_bytes(b"something else")
    summary = check(files.sync(f"{base}/", str(tmp_path / "got"), delete=True))
    assert (summary.sent_files, summary.removed_files) == (1, 0)
    assert set(listing(tmp_path / "got")) == expected
    assert here.read_bytes() == b"something else"
