"""The tables of a new SQLite database, as one script: what `migrate` makes, at once.

`first_tables.sql` is written by `python -m paddlecloud.server.first_tables`, from the migrations,
and a test compares. Running migrations one by one costs a third of a second, which is a third of
the very first `paddlecloud up`. It holds the table of migrations too, so a script that is behind
is no harm: what it lacks is migrated as always.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

SCRIPT = Path(__file__).with_name("first_tables.sql")
_APPLIED = re.compile(r"'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+'")


def fill(database: Path) -> None:
    """Make the tables in an empty database; one that has tables is left alone."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            connection.execute("ROLLBACK")
            return
        # In one transaction: after a kill -9 there are all tables or none.
        for statement in SCRIPT.read_text(encoding="utf-8").split(";\n"):
            connection.execute(statement)
        connection.execute("COMMIT")


def script() -> str:
    """What the migrations of today make, in a process that has no database yet."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PADDLECLOUD_HOME"] = folder
        os.environ.pop("PADDLECLOUD_DATABASE_URL", None)
        os.environ["DJANGO_SETTINGS_MODULE"] = "paddlecloud.server.settings"
        import django
        from django.core.management import call_command
        from django.db import connection

        django.setup()
        call_command("migrate", interactive=False, verbosity=0)
        connection.close()
        with closing(sqlite3.connect(Path(folder) / "server.db")) as made:
            lines = [line for line in made.iterdump() if line not in _AROUND]
    # Only the migrations carry a time; when the script was written is nobody's business.
    return "\n".join(_APPLIED.sub("'2026-01-01 00:00:00'", line) for line in lines) + "\n"


_AROUND = ("BEGIN TRANSACTION;", "COMMIT;")

if __name__ == "__main__":
    text = script()
    if "--check" in sys.argv:
        sys.exit(0 if text == SCRIPT.read_text(encoding="utf-8") else 1)
    target = Path(sys.argv[2]) if sys.argv[1:2] == ["--to"] else SCRIPT
    target.write_text(text, encoding="utf-8")
