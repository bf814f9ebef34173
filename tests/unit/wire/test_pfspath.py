from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.errors import InvalidInput
from paddlecloud.wire.pfspath import BadPath, PfsPath


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/pfs/dc/home/u", PfsPath("dc", "home", "u")),
        ("/pfs/dc/home/u/", PfsPath("dc", "home", "u", is_directory=True)),
        ("/pfs/dc/home/u/a/b.txt", PfsPath("dc", "home", "u", ("a", "b.txt"))),
        ("/pfs/dc/home/u/a/", PfsPath("dc", "home", "u", ("a",), is_directory=True)),
        ("/pfs//dc/./home/u///a/./b", PfsPath("dc", "home", "u", ("a", "b"))),
        ("/pfs/dc/home/u/a/.", PfsPath("dc", "home", "u", ("a",), is_directory=True)),
        ("/pfs/dc/home/u/...", PfsPath("dc", "home", "u", ("...",))),
        ("/pfs/dc/home/u/..a/b..", PfsPath("dc", "home", "u", ("..a", "b.."))),
        ("/pfs/dc/home/u/ a b ", PfsPath("dc", "home", "u", (" a b ",))),
        ("/pfs/dc/home/u/a\\b", PfsPath("dc", "home", "u", ("a\\b",))),
        ("/pfs/dc/home/u/%2e%2e/x", PfsPath("dc", "home", "u", ("%2e%2e", "x"))),  # never decoded
        ("/pfs/dc/home/u@x.com/数据", PfsPath("dc", "home", "u@x.com", ("数据",))),
        ("/pfs/dc/home/u/e\u0301", PfsPath("dc", "home", "u", ("é",))),  # made NFC
        ("/pfs/dc/public", PfsPath("dc", "public", "")),
        ("/pfs/dc/public/mnist/x", PfsPath("dc", "public", "", ("mnist", "x"))),
        ("/pfs/home/home/home/home", PfsPath("home", "home", "home", ("home",))),
        ("/pfs/public/home/u", PfsPath("public", "home", "u")),
    ],
)
def test_reads_a_path(text: str, path: PfsPath) -> None:
    assert PfsPath.parse(text) == path


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "path must start with /pfs"),
        ("/", "path must start with /pfs"),
        ("pfs/dc/home/u", "path must start with /pfs"),
        ("/pfsx/dc/home/u", "path must start with /pfs"),
        ("//pfs/dc/home/u", "path must start with /pfs"),
        ("/etc/passwd", "path must start with /pfs"),
        ("/pfs", "path must like /pfs/[dc]/home/[user]"),
        ("/pfs/dc", "path must like /pfs/[dc]/home/[user]"),
        ("/pfs/dc/home", "path must like /pfs/[dc]/home/[user]"),
        ("/pfs/dc/home/", "path must like /pfs/[dc]/home/[user]"),
        ("/pfs/dc/home/.", "path must like /pfs/[dc]/home/[user]"),
        ("/pfs/dc/other/u", "path must like /pfs/[dc]/home/[user]"),
        ("/pfs/dc/Home/u", "path must like /pfs/[dc]/home/[user]"),
        ("/pfs/dc/home/u/../v", "cannot contain '..'"),
        ("/pfs/dc/home/..", "cannot contain '..'"),
        ("/pfs/../etc/passwd", "cannot contain '..'"),
        ("/pfs/dc/home/u/a/..", "cannot contain '..'"),
        ("/pfs/dc/home/u/a\0b", "control characters"),
        ("/pfs/dc/home/u/a\nb", "control characters"),
        ("/pfs/dc/home/u/\x7f", "control characters"),
        ("/pfs/dc/home/u/\x85", "control characters"),
        ("/pfs/dc/home/u/\udcff", "valid Unicode"),
        ("/pfs/dc/home/u/" + "x" * 256, "255 bytes"),
        ("/pfs/dc/home/u/" + "数" * 86, "255 bytes"),
        ("/pfs/dc/home/u/" + "x/" * 2048, "4096 bytes"),
        ("/pfs/dc/home/u" + ("/" + "数" * 80) * 17, "4096 bytes"),
    ],
)
def test_refuses_other_texts_and_says_why(text: str, says: str) -> None:
    with pytest.raises(BadPath) as caught:
        PfsPath.parse(text)
    assert says in caught.value.message
    assert caught.value.field == "path"
    assert isinstance(caught.value, InvalidInput)


def test_accepts_the_longest_name() -> None:
    assert PfsPath.parse("/pfs/dc/home/u/" + "x" * 255).name == "x" * 255


# Pieces of which trouble is made.
pieces = st.sampled_from(
    ["/", "//", ".", "..", "/../", "pfs", "/pfs", "/home", "/public", "/dc", "u", "\0", "é", "%2e"]
)
nasty = st.lists(pieces | st.text(max_size=3), max_size=10).map("".join)
texts = nasty | nasty.map(lambda tail: f"/pfs/dc/home/u{tail}")


@given(texts)
def test_writes_back_what_it_read(text: str) -> None:
    try:
        path = PfsPath.parse(text)
    except BadPath:
        return
    assert PfsPath.parse(str(path)) == path


@given(texts)
def test_holds_only_safe_parts(text: str) -> None:
    try:
        path = PfsPath.parse(text)
    except BadPath:
        return
    held = (path.datacenter, *([path.user] if path.area == "home" else []), *path.parts)
    assert path.area in ("home", "public")
    for part in held:
        assert part not in ("", ".", "..")
        assert "/" not in part
        assert "\0" not in part
        assert len(part.encode()) <= 255
    assert len(str(path).encode()) <= 4096


# --- moving around ----------------------------------------------------------------------------


def test_walks_the_tree() -> None:
    path = PfsPath.parse("/pfs/dc/home/u/a/b")
    assert path.name == "b"
    assert str(path.parent) == "/pfs/dc/home/u/a/"
    assert str(path.root) == "/pfs/dc/home/u/"
    assert str(path.root.parent) == "/pfs/dc/home/u/"  # nothing is above a home
    assert path.root.is_root
    assert path.root.name == ""
    assert path.parent.child("b") == path
    assert str(PfsPath.home("dc", "u").child("x")) == "/pfs/dc/home/u/x"
    assert str(PfsPath.parse("/pfs/dc/public/m").parent) == "/pfs/dc/public/"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/", "\0", "x" * 256])
def test_checks_the_name_of_a_child(name: str) -> None:
    with pytest.raises(BadPath):
        PfsPath.home("dc", "u").child(name)


def test_lets_no_child_grow_too_long() -> None:
    path = PfsPath.parse("/pfs/dc/home/u" + ("/" + "x" * 203) * 20)
    assert len(str(path)) == 4094
    assert path.child("x").name == "x"
    with pytest.raises(BadPath, match="4096 bytes"):
        path.child("xx")


@pytest.mark.parametrize(("datacenter", "user"), [("..", "u"), ("dc", ".."), ("dc", ""), ("", "u")])
def test_checks_the_parts_of_a_home(datacenter: str, user: str) -> None:
    with pytest.raises(BadPath):
        PfsPath.home(datacenter, user)


@pytest.mark.parametrize(
    ("inner", "outer", "is_below"),
    [
        ("/pfs/dc/home/u/a/b", "/pfs/dc/home/u/a", True),
        ("/pfs/dc/home/u/a", "/pfs/dc/home/u/a/", True),
        ("/pfs/dc/home/u/ab", "/pfs/dc/home/u/a", False),
        ("/pfs/dc/home/u", "/pfs/dc/home/u/a", False),
        ("/pfs/dc/home/v/a", "/pfs/dc/home/u", False),
        ("/pfs/x/home/u/a", "/pfs/dc/home/u", False),
        ("/pfs/dc/public/a", "/pfs/dc/public", True),
        ("/pfs/dc/public/u", "/pfs/dc/home/u", False),
    ],
)
def test_knows_what_lies_below(inner: str, outer: str, is_below: bool) -> None:
    assert PfsPath.parse(inner).is_below(PfsPath.parse(outer)) is is_below
