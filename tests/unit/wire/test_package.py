from __future__ import annotations

import json
import posixpath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.errors import TooLarge
from paddlecloud.wire.package import (
    MAGIC,
    PREFIX_BYTES,
    BadPackage,
    File,
    Limits,
    Manifest,
    check_path,
    encode_header,
    is_digest,
    make_manifest,
    manifest_bytes,
    parse_header,
    parse_manifest,
)


def raw(files: Any = (), dirs: Any = (), **more: Any) -> bytes:
    """The JSON of a manifest, well-formed or not."""
    return json.dumps({"files": list(files), "dirs": list(dirs), **more}).encode()


def row(path: Any, size: Any = 0, executable: Any = False) -> dict[str, Any]:
    return {"path": path, "size": size, "exec": executable}


# --- the stream -------------------------------------------------------------------------------


def test_writes_the_documented_bytes() -> None:
    manifest = make_manifest([File("b/run.sh", 3, True), File("a.py", 10)], ["empty", "b"])
    body = (
        b'{"files":[{"path":"a.py","size":10,"exec":false},'
        b'{"path":"b/run.sh","size":3,"exec":true}],"dirs":["empty"]}'
    )
    header = encode_header(manifest)
    assert header == b"PCPKG\0\0\1" + len(body).to_bytes(8, "big") + body
    assert manifest.total_bytes == 13


def test_keeps_unicode_readable() -> None:
    assert "数据.py".encode() in encode_header(make_manifest([File("数据.py", 1)]))


def test_reads_the_header_off_a_stream() -> None:
    manifest = make_manifest([File("a", 2), File("b", 1)])
    stream = encode_header(manifest) + b"xyz"
    found, start = parse_header(stream)
    assert found == manifest
    assert stream[start:] == b"xyz"


def test_knows_every_directory_to_make_parents_first() -> None:
    manifest = make_manifest([File("a/b/c.py", 1), File("x", 1)], ["d/e"])
    assert manifest.all_dirs == ("a", "a/b", "d", "d/e")


def test_sorts_by_bytes_whatever_the_order_of_walking() -> None:
    files = [File("b", 1), File("Z", 2), File("é", 3), File("a/x", 4), File("a-b", 5)]
    manifest = make_manifest(files)
    assert [file.path for file in manifest.files] == ["Z", "a-b", "a/x", "b", "é"]
    assert make_manifest(reversed(files)) == manifest


def test_an_empty_folder_is_a_package() -> None:
    assert parse_header(encode_header(make_manifest([])))[0] == Manifest()


parts = st.text(
    st.characters(categories=["Ll", "Lu", "Nd", "Lo"]) | st.sampled_from(" .-_\\~"),
    min_size=1,
    max_size=5,
)
paths = st.lists(parts, min_size=1, max_size=4).map("/".join)


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    files = draw(
        st.lists(
            st.builds(File, paths, st.integers(0, 2**30), st.booleans()),
            max_size=6,
            unique_by=lambda file: file.path,
        )
    )
    dirs = draw(st.lists(paths, max_size=3))
    return Manifest(tuple(files), tuple(dirs))


@given(manifests())
def test_reads_back_what_it_wrote(drawn: Manifest) -> None:
    try:
        manifest = make_manifest(drawn.files, drawn.dirs)
    except BadPackage:
        return
    assert parse_header(encode_header(manifest))[0] == manifest
    assert set(manifest.dirs) <= set(drawn.dirs)
    # Nothing that was asked for is missing.
    made = set(manifest.all_dirs)
    assert set(drawn.dirs) <= made


@given(manifests())
def test_accepts_only_what_stays_in_place(drawn: Manifest) -> None:
    """Whatever is accepted can be made in any order of kinds without one meeting another."""
    by_bytes = sorted(drawn.files, key=lambda file: file.path.encode())
    files = [row(file.path, file.size_bytes, file.executable) for file in by_bytes]
    try:
        manifest = parse_manifest(raw(files, sorted(set(drawn.dirs), key=str.encode)))
    except BadPackage:
        return
    directories = set(manifest.all_dirs)
    seen: set[str] = set()
    for file in manifest.files:
        joined = posixpath.normpath(posixpath.join("/root", file.path))
        assert joined == f"/root/{file.path}"
        assert file.path not in directories | seen
        seen.add(file.path)


# --- the first bytes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "says"),
    [
        (b"", "ends within its first bytes"),
        (MAGIC, "ends within its first bytes"),
        (b"PK\3\4" + bytes(12), "not a package stream"),
        (b"PCPKG\0\0\2" + bytes(8), "not a package stream"),
        (b"\x1f\x8b" + bytes(14), "not a package stream"),
    ],
)
def test_refuses_other_first_bytes(prefix: bytes, says: str) -> None:
    with pytest.raises(BadPackage, match=says):
        manifest_bytes(prefix)


@pytest.mark.parametrize("size", [32 * 2**20 + 1, 2**63, 2**64 - 1])
def test_refuses_a_huge_manifest_before_reading_it(size: int) -> None:
    with pytest.raises(TooLarge):
        manifest_bytes(MAGIC + size.to_bytes(8, "big"))


def test_says_how_much_to_read() -> None:
    assert manifest_bytes(MAGIC + (77).to_bytes(8, "big")) == 77


def test_refuses_a_stream_cut_short() -> None:
    header = encode_header(make_manifest([File("a", 1)]))
    for end in (0, 5, PREFIX_BYTES, len(header) - 1):
        with pytest.raises(BadPackage, match="ends within"):
            parse_header(header[:end])


# --- every danger -----------------------------------------------------------------------------

BAD_PATHS = [
    ("", "relative path"),
    ("/etc/passwd", "relative path"),
    ("a/", "relative path"),
    ("../x", "part '..'"),
    ("a/../../x", "part '..'"),
    ("..", "part '..'"),
    (".", "part '.'"),
    ("./a", "part '.'"),
    ("a//b", "part ''"),
    ("a\0b", "control character"),
    ("a\nb", "control character"),
    ("\x1b[31m", "control character"),
    ("e\u0301", "NFC"),
    ("\ud800", "valid Unicode"),
    ("x" * 256, "more than 255 bytes"),
    ("数" * 86, "more than 255 bytes"),
    ("/".join(["x" * 200] * 6), "1024"),
    ("/".join("x" * 65), "65 levels"),
]


@pytest.mark.parametrize(("path", "says"), BAD_PATHS)
def test_refuses_a_dangerous_path(path: str, says: str) -> None:
    with pytest.raises(BadPackage) as caught:
        parse_manifest(raw([row(path)]))
    assert says in caught.value.message
    with pytest.raises(BadPackage):
        parse_manifest(raw([], [path]))
    with pytest.raises(BadPackage):
        make_manifest([File(path, 0)])


@pytest.mark.parametrize("path", ["a", "a/b.py", "..a", "a..", "a b", "...", "x" * 255, "C:\\x"])
def test_accepts_an_unusual_but_harmless_path(path: str) -> None:
    check_path(path)
    assert parse_manifest(raw([row(path)])).files[0].path == path


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (raw([row("a"), row("a")]), "twice"),
        (raw([], ["d", "d"]), "twice"),
        (raw([row("b"), row("a")]), "not sorted"),
        (raw([], ["b", "a"]), "not sorted"),
        (raw([row("a"), row("a/b")]), "both a file and a directory"),
        (raw([row("a"), row("a-b"), row("a/b")]), "both a file and a directory"),  # not neighbours
        (raw([row("a")], ["a"]), "both a file and a directory"),
        (raw([row("a")], ["a/b/c"]), "both a file and a directory"),
        (raw([row("a", -1)]), "negative"),
        (raw([row("a", 1.5)]), "wrong type"),
        (raw([row("a", "1")]), "wrong type"),
        (raw([row("a", True)]), "wrong type"),
        (raw([row("a", None)]), "wrong type"),
        (raw([row(5)]), "wrong type"),
        (raw([row(None)]), "wrong type"),
        (raw([row("a", 1, 0)]), "wrong type"),
        (raw([{"path": "a"}]), "must have 'path'"),
        (raw([{**row("a"), "link": "/etc"}]), "must have 'path'"),
        (raw(["a"]), "must have 'path'"),
        (raw([], [5]), "must be texts"),
        (raw(mode=1), "must have 'files' and 'dirs'"),
        (b'{"files": []}', "must have 'files' and 'dirs'"),
        (b'{"files": {}, "dirs": []}', "must be lists"),
        (b'{"files": [], "dirs": "x"}', "must be lists"),
        (b"[]", "must have 'files' and 'dirs'"),
        (b"null", "must have 'files' and 'dirs'"),
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"files": [{"path": "a", "size": ' + b"9" * 5000 + b', "exec": false}]}', "not JSON"),
    ],
)
def test_refuses_a_manifest_and_says_why(body: bytes, says: str) -> None:
    with pytest.raises(BadPackage) as caught:
        parse_manifest(body)
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("body", "limits"),
    [
        (raw([row("a", 11)]), Limits(max_total_bytes=10)),
        (raw([row("a", 6), row("b", 6)]), Limits(max_total_bytes=10)),
        (raw([row("a", 2**70)]), Limits()),
        (raw([row("a"), row("b")], ["c"]), Limits(max_entries=2)),
        # Three files, but a hundred directories to make.
        (raw([row("/".join(f"{n}{i}" for i in range(40))) for n in "abc"]), Limits(max_entries=99)),
    ],
)
def test_refuses_what_is_too_large(body: bytes, limits: Limits) -> None:
    with pytest.raises(TooLarge):
        parse_manifest(body, limits)


def test_takes_what_is_just_small_enough() -> None:
    limits = Limits(max_total_bytes=12, max_entries=2)
    assert parse_manifest(raw([row("a", 6), row("b", 6)]), limits).total_bytes == 12


@given(st.binary(max_size=200) | st.builds(lambda tail: MAGIC + bytes(7) + tail, st.binary()))
def test_reads_any_bytes_or_refuses_them(data: bytes) -> None:
    try:
        manifest, start = parse_header(data)
    except (BadPackage, TooLarge):
        return
    assert 0 < start <= len(data)
    assert isinstance(manifest, Manifest)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("ab" * 32, True),
        ("AB" * 32, False),
        ("ab" * 31, False),
        ("", False),
        ("a" * 64 + "\n", False),
    ],
)
def test_knows_a_digest(text: str, known: bool) -> None:
    assert is_digest(text) is known
