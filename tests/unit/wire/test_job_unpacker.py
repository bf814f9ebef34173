"""The unpacker of code archives, run as jobs run it: what is hostile leaves nothing behind."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from paddlecloud.wire.job_unpacker import PROGRAM

pytestmark = pytest.mark.needs("linux")
BLOCK = 512


def unpack(archive: Path, folder: Path, program: str = PROGRAM) -> tuple[int, str]:
    """Its exit code and what it said; in this process, which is faster than a new one."""
    folder.mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["-", str(archive), str(folder)])
        try:
            exec(compile(program, "unpacker", "exec"), {})
        except SystemExit as end:
            return 1, str(end.code)
    return 0, ""


def there(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in folder.rglob("*")
    }


def header(
    name: bytes,
    size: int = 0,
    kind: bytes = b"0",
    mode: int = 0o644,
    *,
    size_field: bytes = b"",
    link: bytes = b"",
) -> bytes:
    """One block, with a right checksum, whatever it says."""
    block = bytearray(BLOCK)
    block[: len(name)] = name
    block[100:108] = b"%07o\0" % mode
    block[124:136] = size_field or b"%011o\0" % size
    block[136:148] = b"%011o\0" % 0
    block[156:157] = kind
    block[157 : 157 + len(link)] = link
    block[257:265] = b"ustar\x0000"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def file(name: bytes, data: bytes = b"data", **more: object) -> bytes:
    return header(name, len(data), **more) + data + bytes(-len(data) % BLOCK)  # type: ignore[arg-type]


def extended(kind: bytes, records: bytes) -> bytes:
    return file(b"extra", records, kind=kind)


def record(key: bytes, value: bytes) -> bytes:
    rest = b" " + key + b"=" + value + b"\n"
    length = len(rest) + 1
    while len(b"%d" % length + rest) != length:
        length += 1
    return b"%d" % length + rest


END = bytes(2 * BLOCK)
GOOD = file(b"good", b"good")


# --- controls: what people pack must come out -----------------------------------------------------


def _tree(folder: Path) -> dict[str, bytes | None]:
    for name, data in {
        "main.py": b"print()",
        "run.sh": b"#!/bin/sh\n",
        "empty": b"",
        "lib/a name with blanks": b"x" * 100_000,
        "lib/" + "n" * 200: b"long",
        "/".join(["deep" * 20] * 8) + "/f": b"deep",
        "ünï/ço∂é": b"unicode",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / "run.sh").chmod(0o755)
    (folder / "nothing").mkdir()
    return there(folder)


@pytest.mark.parametrize("form", ["gnu", "pax", "ustar", "v7"])
@pytest.mark.parametrize("packed", ["", "z", "j", "J"])
def test_unpacks_what_tar_packs(tmp_path: Path, form: str, packed: str) -> None:
    (tmp_path / "code").mkdir()
    expected = _tree(tmp_path / "code")
    if form in ("ustar", "v7"):  # which know no long names
        for name in [name for name in expected if len(name.encode()) > 90]:
            if expected[name] is not None:
                (tmp_path / "code" / name).unlink()
        for path in sorted((tmp_path / "code").rglob("*"), reverse=True):
            if path.is_dir() and len(str(path.relative_to(tmp_path / "code"))) > 90:
                path.rmdir()
        expected = there(tmp_path / "code")
    archive = tmp_path / "code.tar"
    words = ["tar", f"--format={form}", f"-c{packed}f", archive, "-C", tmp_path / "code", "."]
    subprocess.run(words, check=True)
    assert unpack(archive, tmp_path / "out") == (0, "")
    assert there(tmp_path / "out") == expected
    assert os.access(tmp_path / "out/run.sh", os.X_OK)
    assert (tmp_path / "out/main.py").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_unpacks_what_python_packs(tmp_path: Path, form: int) -> None:
    (tmp_path / "code").mkdir()
    expected = _tree(tmp_path / "code")
    with tarfile.open(tmp_path / "code.tgz", "w:gz", format=form) as archive:
        archive.add(tmp_path / "code", ".")
    assert unpack(tmp_path / "code.tgz", tmp_path / "out") == (0, "")
    assert there(tmp_path / "out") == expected


def test_unpacks_what_git_packs(tmp_path: Path) -> None:
    comment = extended(b"g", record(b"comment", b"0123abc"))
    (tmp_path / "a").write_bytes(comment + GOOD + END)
    assert unpack(tmp_path / "a", tmp_path / "out") == (0, "")
    assert there(tmp_path / "out") == {"good": b"good"}


def test_replaces_files_that_are_there_and_keeps_the_others(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/good").write_text("old and longer")
    (tmp_path / "out/other").write_text("other")
    (tmp_path / "a").write_bytes(GOOD + END)
    assert unpack(tmp_path / "a", tmp_path / "out") == (0, "")
    assert there(tmp_path / "out") == {"good": b"good", "other": b"other"}


# --- what is hostile ------------------------------------------------------------------------------

HOSTILE = {
    "a parent": file(b"../evil"),
    "a parent in the middle": file(b"a/../../evil"),
    "an absolute path": file(b"/tmp/evil"),
    "a symbolic link": header(b"l", kind=b"2", link=b"/etc"),
    "a hard link": header(b"l", kind=b"1", link=b"/etc/passwd"),
    "a character device": header(b"d", kind=b"3"),
    "a block device": header(b"d", kind=b"4"),
    "a pipe": header(b"p", kind=b"6"),
    "a sparse file": header(b"s", kind=b"S"),
    "an unknown kind": header(b"u", kind=b"Z"),
    "setuid": file(b"s", mode=0o4755),
    "setgid": file(b"s", mode=0o2755),
    "a name by PAX that leads out": extended(b"x", record(b"path", b"../evil")) + GOOD,
    "an absolute name by PAX": extended(b"x", record(b"path", b"/evil")) + GOOD,
    "a size by PAX": extended(b"x", record(b"size", b"1")) + GOOD,
    "a link by PAX": extended(b"x", record(b"linkpath", b"/etc")) + GOOD,
    "sparse by PAX": extended(b"x", record(b"GNU.sparse.name", b"../e")) + GOOD,
    "a name for all by PAX": extended(b"g", record(b"path", b"evil")) + GOOD,
    "records that lie about their length": extended(b"x", b"999 path=evil\n") + GOOD,
    "a long name that leads out": extended(b"L", b"../" + b"e" * 120 + b"\0") + GOOD,
    "two long names": extended(b"L", b"a\0") + extended(b"x", record(b"path", b"b")) + GOOD,
    "a name without an entry": extended(b"L", b"a\0"),
    "headers without end": extended(b"x", record(b"comment", b"c")) * 5 + GOOD,
    "an endless header": header(b"x", 1 << 33, kind=b"x", size_field=b"%011o\0" % (1 << 32)),
    "a size beyond the end": header(b"big", 1 << 20) + b"little",
    "a size in another base": header(b"big", size_field=b"\x80" + b"\xff" * 11),
    "a size that is none": header(b"big", size_field=b"-1234567890\0"),
    "a folder with content": header(b"d/", 512, kind=b"5") + bytes(512),
    "a name twice": GOOD + GOOD,
    "a file that is a folder": file(b"a") + file(b"a/b"),
    "a folder that is a file": file(b"a/b") + file(b"a"),
    "no name": file(b""),
    "a name that is no UTF-8": file(b"\xff\xfe"),
    "a part that is too long": extended(b"L", b"e" * 256 + b"\0") + GOOD,
    "a damaged header": GOOD[:10] + b"X" + GOOD[11:],
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("is_packed", [False, True])
def test_refuses_before_the_first_byte(tmp_path: Path, kind: str, is_packed: bool) -> None:
    first = file(b"first", b"first")
    data = first + HOSTILE[kind] + END
    (tmp_path / "a").write_bytes(gzip.compress(data) if is_packed else data)
    code, said = unpack(tmp_path / "a", tmp_path / "work" / "out")
    assert code == 1
    assert said.startswith(f"paddlejob: cannot unpack {tmp_path}/a: ")
    assert there(tmp_path / "work") == {"out": None}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no archive at all" * 100,
        GOOD,
        GOOD[:-100],
        GOOD + bytes(BLOCK),
        bytes(BLOCK),
        GOOD + END + b"more",
        GOOD + END + GOOD + END,
    ],
    ids="nothing|text|no end|cut|half an end|half an end only|more|another".split("|"),
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_refuses_what_is_not_whole(
    tmp_path: Path, data: bytes, pack: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "a").write_bytes(pack(data))
    code, said = unpack(tmp_path / "a", tmp_path / "out")
    assert code == 1, said
    assert there(tmp_path / "out") == {}


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_refuses_a_packed_stream_that_is_cut_or_damaged(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    whole = pack(file(b"random", os.urandom(5000)) + END)
    middle = len(whole) // 2
    damaged = whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :]
    for data in (whole[:middle], damaged):
        (tmp_path / "a").write_bytes(data)
        code, said = unpack(tmp_path / "a", tmp_path / "out")
        assert code == 1, said
        assert there(tmp_path / "out") == {}


def test_refuses_a_bomb(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as archive:
        archive.write(header(b"bomb", 300 << 20))
        for _ in range(300):
            archive.write(bytes(1 << 20))
        archive.write(END)
    # As much as it says, in a hundredth of a hundredth: the size alone tells.
    (tmp_path / "a").write_bytes(packed.getvalue()[:100_000])
    code, said = unpack(tmp_path / "a", tmp_path / "out")
    assert (code, "it is a bomb" in said) == (1, True)
    assert there(tmp_path / "out") == {}


def test_refuses_more_entries_than_any_code_has(tmp_path: Path) -> None:
    program = PROGRAM.replace("MOST_ENTRIES = 200000", "MOST_ENTRIES = 3")
    assert program != PROGRAM
    (tmp_path / "a").write_bytes(b"".join(file(b"%d" % n) for n in range(4)) + END)
    code, said = unpack(tmp_path / "a", tmp_path / "out", program)
    assert (code, "it is a bomb" in said) == (1, True)
    assert there(tmp_path / "out") == {}


def test_never_writes_through_a_link_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/f").write_text("mine")
    (tmp_path / "out/lib").symlink_to(tmp_path / "outside")
    (tmp_path / "out/f").symlink_to(tmp_path / "outside/f")
    (tmp_path / "a").write_bytes(file(b"f", b"new") + file(b"lib/g") + END)
    code, said = unpack(tmp_path / "a", tmp_path / "out")
    assert (code, "no folder" in said) == (1, True)
    assert there(tmp_path / "outside") == {"f": b"mine"}
    assert (tmp_path / "out/f").read_bytes() == b"new"
    assert not (tmp_path / "out/f").is_symlink()
