"""Unpacking a package stream into a directory."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.unpack import unpack
from paddlecloud.wire import package
from paddlecloud.wire.package import BadPackage, File


def _stream(files: dict[str, bytes], dirs: tuple[str, ...] = (), exe: str = "") -> bytes:
    manifest = package.make_manifest(
        (File(path, len(data), path == exe) for path, data in files.items()), dirs
    )
    return package.encode_header(manifest) + b"".join(files[f.path] for f in manifest.files)


def _unpack(data: bytes, tree: Tree) -> None:
    unpack(io.BytesIO(data), tree, ["jobs", "x"], package.DEFAULT_LIMITS)


def test_writes_files_directories_and_the_executable_bit(tmp_path: Path) -> None:
    files = {"run.sh": b"#!", "lib/a.py": b"a" * 3_000_000, "empty": b""}
    _unpack(_stream(files, ("data/none",), exe="run.sh"), Tree(tmp_path))
    root = tmp_path / "jobs" / "x"
    for path, data in files.items():
        assert (root / path).read_bytes() == data
    assert (root / "data" / "none").is_dir()
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o700
    assert (root / "empty").stat().st_mode & 0o777 == 0o600


def test_doing_it_twice_is_doing_it_once(tmp_path: Path) -> None:
    data = _stream({"a": b"1", "d/b": b"2"})
    _unpack(data, Tree(tmp_path))
    _unpack(data, Tree(tmp_path))
    found = sorted(
        str(p.relative_to(tmp_path / "jobs/x")) for p in tmp_path.rglob("*") if p.is_file()
    )
    assert found == ["a", "d/b"]


@pytest.mark.parametrize("cut", [1, 5])
def test_refuses_a_stream_that_is_too_short_or_too_long(tmp_path: Path, cut: int) -> None:
    data = _stream({"a": b"12345", "b": b"67"})
    with pytest.raises(BadPackage):
        _unpack(data[:-cut], Tree(tmp_path))
    with pytest.raises(BadPackage):
        _unpack(data + b"x", Tree(tmp_path))


def test_never_writes_through_a_planted_link(tmp_path: Path) -> None:
    (tmp_path / "home" / "jobs" / "x").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "home" / "jobs" / "x" / "lib").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError):
        _unpack(_stream({"lib/a.py": b"evil"}), Tree(tmp_path / "home"))
    assert list((tmp_path / "outside").iterdir()) == []
