"""What a command imports: nothing it does not need, and nothing that exists on Unix only."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.shapes import job, page
from tests.patience import PATIENCE_S
from tests.scripted_server import Answer, ScriptedServer

# Costly (each some milliseconds of every start), or a sign that a wrong layer was reached.
NOT_FOR_A_LIST = set(
    """
    argparse asyncio concurrent dataclasses email http inspect logging multiprocessing pathlib
    ssl subprocess tempfile threading urllib uuid shutil decimal hashlib random yaml django msgspec
    uvicorn psycopg encodings.idna datetime difflib paddlecloud.server paddlecloud.engines
    paddlecloud.scheduling paddlecloud.core.jobspec paddlecloud.core.resources
    """.split()
)
NOT_FOR_THE_VERSION = NOT_FOR_A_LIST | set("json re socket typing enum collections".split())

SHOW = """
import sys
from paddlecloud.cli.main import main
code = main(sys.argv[1:])
sys.stderr.write("\\n".join(sorted(sys.modules)))
sys.exit(code)
"""
WITHOUT_UNIX = """
import sys
for name in ("fcntl", "pwd", "grp", "resource", "termios", "tty", "pty", "syslog", "crypt"):
    sys.modules[name] = None
from paddlecloud.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def imported_by(*words: str) -> set[str]:
    # -S and -E: what the environment adds to every start of Python is not ours.
    source = str(__import__("paddlecloud").__path__[0]).rsplit("/", 1)[0]
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {source!r})\n{SHOW}", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def heavy(found: set[str], listed: set[str]) -> set[str]:
    return {
        name
        for name in found
        if any(name == word or name.startswith(word + ".") for word in listed)
    }


def test_listing_jobs_imports_nothing_heavy(server: ScriptedServer) -> None:
    server.routes["GET /api/v2/jobs"] = page(job())
    assert heavy(imported_by("get", "jobs"), NOT_FOR_A_LIST) == set()


LISTED = {
    "path": "/pfs/local/home/alice",
    "entries": [
        {
            **{"name": "a", "type": "file", "size": 1, "mtime_ns": 1},
            **{"executable": False, "digest": None},
        }
    ],
    "next": None,
    "left_out": 0,
}
STATUS = {"cluster": "local", "account": "alice", "pfs": {"port": 0, "url": ""}}


@pytest.mark.parametrize("words", [("pfs", "ls"), ("ls", "/pfs/local/home/alice")])
def test_listing_files_imports_nothing_heavy(
    server: ScriptedServer, words: tuple[str, ...]
) -> None:
    server.routes["GET /api/v2/status"] = Answer(STATUS)
    server.routes["GET /api/v2/pfs/entries"] = Answer(LISTED)
    assert heavy(imported_by(*words), NOT_FOR_A_LIST) == set()


def test_the_version_imports_next_to_nothing() -> None:
    assert heavy(imported_by("--version"), NOT_FOR_THE_VERSION) == set()


@pytest.mark.parametrize(
    "words",
    [
        ("get", "jobs"),
        ("get", "jobs", "-o", "wide"),
        ("get", "jobs", "-o", "yaml"),
        ("jobs",),
        ("help",),
        ("submit", "--dry-run", "-entry", "x", "./p"),
        ("job", "train", "--dry-run", "--job-name", "x", "--start-cmd", "y"),
        ("job", "list", "--type", "favorite"),
        ("config",),
        ("completion", "bash"),
        ("help", "pfs", "cp"),
        ("pfs", "ls"),
    ],
)
def test_verbs_run_without_unix(server: ScriptedServer, words: tuple[str, ...]) -> None:
    server.routes["GET /api/v2/jobs"] = page(job())
    server.routes[f"GET /api/v2/jobs/{job()['id']}"] = Answer(job())
    server.routes["GET /api/v2/status"] = Answer(STATUS)
    server.routes["GET /api/v2/pfs/entries"] = Answer(LISTED)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_UNIX, *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
