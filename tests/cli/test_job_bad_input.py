"""Bad command lines of `job train` through the whole program: what is said, and the exit code.

Which text of which flag is wrong is in tests/unit/forms/test_train_flags_table.py; here it is that
nothing reaches a server, all is told at once, and the exit code is that of the old client.
"""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run
from tests.cli.second_client import TRAIN, accept
from tests.scripted_server import ScriptedServer
from tests.unit.forms.test_train_flags_table import OPTIONS, ROWS

pytestmark = pytest.mark.usefixtures("elsewhere")

CASES = [
    (("--k8s-trainers", "two"), 2, ["--k8s-trainers two"]),
    (("--k8s_memory", "10GB"), 2, ["--k8s_memory 10GB"]),
    (("--k8s-memory=",), 2, ["--k8s-memory"]),
    (("--wall-time", "1:60:00"), 2, ["--wall-time 1:60:00"]),
    (("--is-standalone", "1", "--k8s-trainers", "4"), 2, ["--k8s-trainers 4"]),
    (("--is-standalone", "1", "--k8s-not-local"), 2, ["--k8s-not-local"]),
    (("--job-version", "custom-framework"), 2, ["--job-version custom-framework"]),
    (("--job-version", "custom-framework", "--image-addr", "a b"), 2, ["--image-addr a b"]),
    (("--distribute-job-type", "MPI"), 2, ["--distribute-job-type MPI"]),
    (("--k8s-trainers", "1", "--k8s_trainers", "2"), 2, ["--k8s_trainers 2"]),
    (("--mpi-nodes", "2", "--slurm-nodes", "2"), 2, ["--slurm-nodes"]),
    (("--mpi-nodes", "2", "--k8s-trainers", "2"), 2, ["--k8s-trainers 2"]),
    (("--k8s-priority", "low", "--mpi-priority", "high"), 2, ["--mpi-priority high"]),
    (("--files", ""), 2, ["--files"]),
    (("--files", "nowhere.py"), 2, ["--files nowhere.py"]),
    (("--files",), 2, ["--files"]),
    (("--job-conf", "nowhere.ini"), 2, ["--job-conf nowhere.ini"]),
    (("--file-dir", "nowhere"), 2, ["--file-dir nowhere"]),
    (("--nonsense",), 1, ["--nonsense"]),
    (("--nonsense", "--other=1"), 1, ["--nonsense", "--other"]),
    (("--nonsense", "--k8s-memory", "1G"), 2, ["--nonsense", "--k8s-memory 1G"]),
    (("--k8s",), 2, ["--k8s"]),
    (("--json=maybe",), 2, ["--json maybe"]),
]


def told(err: str) -> list[str]:
    return [line.strip() for line in err.splitlines() if line.startswith("  ")]


@pytest.mark.parametrize(("words", "code", "heads"), CASES)
@pytest.mark.parametrize("dry", [(), ("--dry-run", "--json")])
def test_refuses(
    server: ScriptedServer,
    run: Run,
    words: tuple[str, ...],
    code: int,
    heads: list[str],
    dry: tuple[str, ...],
) -> None:
    accept(server)
    if "--json=maybe" in words:
        dry = ()
    ran = run("job", *TRAIN, *dry, *words)
    assert (ran.code, ran.out, server.requests) == (code, "", [])
    lines = told(ran.err)
    assert len(lines) == len(heads)
    for line, head in zip(lines, heads, strict=True):
        assert line.startswith(head)
        assert len(line) > len(head) + 4  # and what is wrong with it


@pytest.mark.parametrize("name", ROWS)
def test_a_bad_value_of_any_flag_creates_nothing(
    server: ScriptedServer, run: Run, name: str
) -> None:
    accept(server)
    flag = OPTIONS[name].flag.names[0]
    bad = ROWS[name].bad[0]
    base = [] if name in ("name", "entry") else list(TRAIN[1:])
    ran = run("job", "train", *base, f"{flag}={bad}")
    assert (ran.code, ran.out, server.requests) == (2, "", [])
    assert any(line.startswith(flag) for line in told(ran.err))


def test_tells_every_fault_of_a_long_command_line(server: ScriptedServer, run: Run) -> None:
    words = [f"{OPTIONS[name].flag.names[0]}={row.bad[0]}" for name, row in ROWS.items()]
    ran = run("job", "train", *words, "--files", "nowhere.py", "--nonsense")
    assert (ran.code, server.requests) == (2, [])
    assert ran.err.startswith(f"error: {len(ROWS) + 2} problems, nothing was done\n")
    assert len(told(ran.err)) == len(ROWS) + 2


def test_a_value_may_look_like_a_flag_if_it_is_joined(run: Run) -> None:
    ran = run("job", "train", "--job-name=--x", "--start-cmd=-v", "--dry-run", "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["spec"]["name"] == "--x"
