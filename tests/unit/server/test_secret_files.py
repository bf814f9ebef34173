"""Secrets are whole or refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paddlecloud.core.errors import Conflict
from paddlecloud.server import file_server, secretfiles
from paddlecloud.server.secretfiles import NAMES, secret_text
from paddlecloud.server.starting import hold_state


def test_one_is_made_once_and_is_the_owners_alone(tmp_path: Path):
    value = secret_text(tmp_path, "x")
    assert len(value) == 64
    assert secret_text(tmp_path, "x") == value
    assert (tmp_path / "secrets" / "x").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / "secrets").iterdir()] == ["x"]


@pytest.mark.parametrize("left", ["", "\n", "short", "x" * 31 + "\n"])
def test_an_empty_or_short_one_is_refused(tmp_path: Path, left: str):
    secret_text(tmp_path, "x")
    (tmp_path / "secrets" / "x").write_text(left)
    with pytest.raises(Conflict, match="at least 32"):
        secret_text(tmp_path, "x")


@pytest.mark.parametrize("name", NAMES)
def test_no_server_starts_on_one(tmp_path: Path, name: str):
    secret_text(tmp_path, name)
    hold_state(tmp_path).close()
    (tmp_path / "secrets" / name).write_text("")
    with pytest.raises(Conflict, match=f"secrets/{name} has 0 characters"):
        hold_state(tmp_path)


def test_every_secret_that_is_used_is_looked_at_before():
    package = Path(secretfiles.__file__).parent
    used = {
        name
        for path in package.rglob("*.py")
        for name in re.findall(r'secret_text\(.*?, "([^"]+)"\)', path.read_text())
    }
    assert used | {file_server.SECRET} == set(NAMES)
