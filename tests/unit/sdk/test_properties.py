"""What must hold for every input: framing of answers, and configurations written and read back."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.sdk import settings_file
from paddlecloud.sdk.config import Config, Profile, _interpret
from paddlecloud.sdk.config_writing import render
from paddlecloud.sdk.http import Response, quote


class OneAnswer:
    """Stands for a connection whose bytes are all there already."""

    def __init__(self, data: bytes) -> None:
        self.file = io.BufferedReader(io.BytesIO(data))  # type: ignore[arg-type]
        self.ended: list[bool] = []

    def finished(self, is_reusable: bool) -> None:
        self.ended.append(is_reusable)


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=20))
def test_a_chunked_body_is_its_chunks_and_leaves_the_rest(pieces: list[bytes]) -> None:
    body = b"".join(b"%X\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    connection = OneAnswer(head + body + b"HTTP/1.1 next")
    response = Response(connection, "GET")  # type: ignore[arg-type]
    assert response.read() == b"".join(pieces)
    assert connection.ended == [True]
    assert connection.file.read() == b"HTTP/1.1 next"


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 7))
def test_lines_do_not_depend_on_how_they_arrive(lines: list[bytes], size: int) -> None:
    wanted = [line.replace(b"\n", b"") for line in lines]
    data = b"".join(line + b"\n" for line in wanted)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    response = Response(OneAnswer(head + body), "GET")  # type: ignore[arg-type]
    assert list(response.lines()) == wanted


@given(st.text())
def test_a_quoted_text_can_stand_anywhere_in_an_address(text: str) -> None:
    from urllib.parse import unquote

    try:
        quoted = quote(text)
    except UnicodeEncodeError:
        return  # half a character: no file name, no job name
    assert unquote(quoted) == text
    assert set(quoted) <= set(quote("".join(map(chr, range(128))))) | set("%")


WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=30)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=4, unique_by=lambda t: t[0]))
def test_a_written_configuration_is_read_back_by_both_readers(
    rows: list[tuple[str, str, str]],
) -> None:
    profiles = [
        Profile(name, "http://h", username=user, password=password) for name, user, password in rows
    ]
    text = render(Config("x", profiles, profiles[-1]))
    root = settings_file.read(text)
    assert root == settings_file._read_with_pyyaml(text)
    config = _interpret("x", root)
    read = [(p.name, p.username, p.password) for p in config.profiles]
    assert read == rows
    assert config.current is config.profiles[-1]
