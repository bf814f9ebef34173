"""What an answer promises for ever is on the disk when it is given."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

# In a process of its own: Django is set up once per process.
PROGRAM = """
import json, os, sys
from paddlecloud.server import configuration, database, starting
chosen = configuration.load()
starting.make_directories(chosen.storage.state_dir)
starting.set_up_django(chosen)
from paddlecloud.server.accounts.models import FailedLogins
synced, sync = [], os.fsync
def fsync(fd):
    synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))
    sync(fd)
os.fsync = fsync
def write(name, outer, inner):
    synced.clear()
    with database.writing(is_durable=outer):
        with database.writing(is_durable=inner):
            FailedLogins.objects.create(subject=name)
        during = list(synced)
    return during, list(synced)
print(json.dumps([write("a", False, False), write("b", True, False), write("c", False, True)]))
"""


@pytest.mark.needs("linux")
def test_a_durable_write_is_on_the_disk_when_its_outermost_transaction_returns(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PADDLECLOUD_HOME": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    log = ["server.db-wal"]
    assert json.loads(done.stdout) == [[[], []], [[], log], [[], log]]


@pytest.mark.parametrize("module", ["access_keys", "credentials", "signatures", "tokens"])
def test_all_that_changes_credentials_is_written_so(module: str):
    services = Path(sys.modules["paddlecloud"].__file__ or "").parent / "server" / "services"
    text = (services / f"{module}.py").read_text()
    assert "with writing(is_durable=True):" in text
    assert "with writing():" not in text
