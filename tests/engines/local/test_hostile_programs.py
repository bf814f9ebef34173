"""A program that wants to harm its keeper: forged records, and rubbish to trip over."""

from __future__ import annotations

import os
import signal

import pytest

from paddlecloud.core.observed import EndCause, ReplicaState
from paddlecloud.engines.local import linux
from paddlecloud.engines.local.attempts import MAX_STATUS_BYTES, Process, parse_status
from paddlecloud.localfs import trees
from tests.engines.local.bench import EVERY_WAY, OTHER_UID, Bench, a_mark, processes_with, until
from tests.engines.local.sandboxed import bench, inside

__all__ = ["bench"]  # a fixture


# --- the status file ----------------------------------------------------------------------------


def test_of_each_record_the_first_is_believed():
    own = b"process 10 100 11 101\nready 1.0\nstarted 2.0\nended 256 3.0\n"
    forged = b"process 1 1 1 1\nready 9.0\nstarted 9.0\nended 0 9.0\n"
    status = parse_status(own + forged)
    assert (status.process, status.shim) == (Process(10, 100), Process(11, 101))
    assert (status.started_at, status.wait_status, status.ended_at) == (2.0, 256, 3.0)
    assert status.complaints == ()


def test_no_more_than_its_bound_is_read_of_a_status_file():
    rubbish = b"a b\n" * MAX_STATUS_BYTES
    assert parse_status(rubbish + b"process 1 1 1 1\n").process is None


@pytest.mark.needs("bubblewrap")
def test_a_forged_record_saves_no_program_from_a_stop_after_a_restart(bench: Bench):
    mark = a_mark()
    victim = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", mark)
    try:
        named = Process.of(victim)
        assert named is not None
        line = f"process {named.pid} {named.start_ticks} {named.pid} {named.start_ticks}"
        bench.put("forge.sh", f"echo {line} >> /proc/1/fd/2\necho ready\nexec sleep {mark}\n")
        key = bench.start("sh forge.sh")
        bench.says(key, "ready")
        assert "denied" in bench.log(key).lower()
        bench.reopen()
        bench.processes.stop(key, 0)
        assert bench.exit_of(key).signal in (signal.SIGTERM, signal.SIGKILL)
        assert processes_with(mark) == [victim]
        assert named.is_there()
    finally:
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)


@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_status_file_full_of_rubbish_keeps_no_platform_from_coming_up(make_bench, way: str):
    bench: Bench = make_bench(way)
    key = bench.start("echo ready; exec sleep 1000")
    bench.says(key, "ready")
    with open(bench.attempt_dir(key) / "status", "ab") as file:
        file.write(b"process 1 1 1 1\n" + b"a b\n" * (5 << 20))
    bench.reopen()
    bench.processes.stop(key, 0)
    assert bench.ended(key).state == ReplicaState.ENDED
    assert bench.exit_of(key).cause == EndCause.SIGNALED


# --- what it leaves -----------------------------------------------------------------------------

DEEP = """
import os
os.chdir(os.environ['TMPDIR'])
for _ in range(5000):
    os.mkdir('d'); os.chdir('d')
above = os.open('..', os.O_RDONLY)
os.chmod('.', 0)
os.chmod(above, 0)
"""


@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_tree_of_any_depth_in_its_tmp_goes_with_it(make_bench, way: str):
    bench: Bench = make_bench(way)
    key = bench.python(DEEP)
    assert bench.exit_of(key).ok, bench.log(key)
    bench.processes.remove(key)
    assert not (bench.attempt_dir(key) / "tmp").exists()
    until(lambda: not os.listdir(bench.config.state_dir / "removed"), "removing it")
    bench.processes.discard_job(key.job_id)
    assert not bench.attempt_dir(key).exists()


def test_what_a_killed_platform_did_not_get_removed_its_successor_removes(make_bench):
    bench: Bench = make_bench("plain-without-cgroups")
    left = bench.config.state_dir / "removed" / "left"
    (left / "a" / "b").mkdir(parents=True)
    bench.reopen()
    until(lambda: not left.exists(), "removing it")


def test_remains_that_cannot_be_removed_are_nobodys_failure(make_bench, monkeypatch):
    bench: Bench = make_bench("plain-without-cgroups")
    monkeypatch.setattr(trees, "move", _refuse)
    key = bench.start("touch $TMPDIR/file")
    assert bench.exit_of(key).ok
    bench.processes.remove(key)
    bench.processes.discard_job(key.job_id)


def _refuse(*_: object) -> None:
    raise RecursionError


# --- the machine around it ----------------------------------------------------------------------


@pytest.mark.needs("bubblewrap", "landlock-scopes")
def test_it_reaches_its_own_abstract_sockets_and_no_others(bench: Bench):
    import socket

    name = f"paddlecloud-test-{a_mark()}"
    with socket.socket(socket.AF_UNIX) as outside:
        outside.bind("\0" + name)
        outside.listen()
        told = inside(
            bench,
            "def reach(name):\n"
            "    socket.socket(socket.AF_UNIX).connect('\\0' + name)\n"
            "own = socket.socket(socket.AF_UNIX); own.bind('\\0own'); own.listen()\n"
            f"tell(own=attempt(lambda: reach('own')), theirs=attempt(lambda: reach({name!r})))",
        )
    assert told["own"][0] == "did", told
    assert told["theirs"][0] == "refused", told


@pytest.mark.needs("bubblewrap", "landlock-scopes")
def test_a_kernel_that_cannot_keep_them_apart_is_named(bench: Bench, monkeypatch):
    assert not any("abstract sockets" in note for note in bench.processes.notes())
    monkeypatch.setattr(linux, "can_scope_abstract_sockets", lambda: False)
    assert any("abstract sockets" in note for note in bench.processes.notes())


@pytest.mark.needs("bubblewrap")
def test_it_reads_its_own_account_in_passwd_and_no_other(bench: Bench):
    bench.make_home("bob", OTHER_UID)
    for account, other in (("ann", "bob"), ("bob", "ann"), ("ann", "bob")):
        people = bench.output_of("cat /etc/passwd; id -un", account=account)
        assert f"{account}:x:" in people
        assert people.endswith(f"\n{account}\n")
        assert other not in people
