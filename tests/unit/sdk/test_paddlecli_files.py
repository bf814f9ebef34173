"""`~/.paddlecli/config`, as the old client wrote it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddlecloud.core.errors import InvalidInput
from paddlecloud.sdk import paddlecli_files as files


def test_reads_what_the_old_client_wrote(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(
        "[token]\ntoken_name = mine\nuser_ak = a1\nuser_sk = s%1\n\n[server]\nhost=h\nport = 80\n"
    )
    stored = files.read(str(path))
    assert (stored.host, stored.port, stored.token_name) == ("h", "80", "mine")
    assert (stored.ak, stored.sk) == ("a1", "s%1")
    assert "s%1" not in repr(stored)


def test_a_file_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert files.read(str(tmp_path / "none")).host == ""


@pytest.mark.parametrize("content", [b"user_sk = hunter2\n", b"[a]\nhunter2\n", b"\xff[hunter2"])
def test_refuses_another_kind_of_file_without_quoting_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config"
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        files.read(str(path))
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_writes_one_section_and_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config"
    files.write(str(path), files.SERVER, {"host": "h", "port": "80"})
    files.write(str(path), files.TOKEN, {"user_ak": "a1"})
    files.write(str(path), files.SERVER, {"port": "81"})
    stored = files.read(str(path))
    assert (stored.host, stored.port, stored.ak) == ("h", "81", "a1")
    assert os.listdir(path.parent) == ["config"]
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("host", "port", "url"),
    [
        ("h", "80", "http://h:80"),
        ("https://h", "443", "https://h:443"),
        ("http://h/", "8000", "http://h:8000"),
        ("[::1]", "80", "http://[::1]:80"),
    ],
)
def test_makes_an_address(host: str, port: str, url: str) -> None:
    assert files.endpoint(host, port) == url


@pytest.mark.parametrize("text", ["", "a b", "a/b", "é", "x" * 129])
def test_refuses_an_odd_key_without_showing_it(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        files.check_key(text, "--sk")
    assert str(caught.value) == "--sk must be letters and digits only"


@pytest.mark.parametrize("text", ["", "0", "65536", "99999999999", "x", "-1", "٣"])
def test_refuses_an_odd_port(text: str) -> None:
    with pytest.raises(InvalidInput):
        files.check_port(text, "--port")
