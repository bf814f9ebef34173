"""A new database is made by a script; it must be what the migrations make."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from paddlecloud.server import first_tables


def test_the_script_is_what_the_migrations_make():
    command = [sys.executable, "-m", "paddlecloud.server.first_tables", "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr or "run: python -m paddlecloud.server.first_tables"


def _tables(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def test_fills_an_empty_database(tmp_path):
    path = tmp_path / "server.db"
    first_tables.fill(path)
    assert _tables(path) > 10


def test_leaves_a_database_with_tables_alone(tmp_path):
    path = tmp_path / "server.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mine (value)")
    first_tables.fill(path)
    assert _tables(path) == 1


def test_fills_it_whole_or_not_at_all(tmp_path, monkeypatch):
    broken = tmp_path / "broken.sql"
    broken.write_text(first_tables.SCRIPT.read_text() + "CREATE TABLE (;\n")
    monkeypatch.setattr(first_tables, "SCRIPT", broken)
    path = tmp_path / "server.db"
    try:
        first_tables.fill(path)
    except sqlite3.OperationalError:
        pass
    assert _tables(path) == 0
