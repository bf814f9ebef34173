"""Ordinary programs do not notice their sandbox, and what goes wrong in making one is said.

The controls of `test_sandbox`: a sandbox that forbids everything fails here.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from paddlecloud.core.observed import EndCause, ReplicaKey
from paddlecloud.engines.local.config import LocalConfig
from paddlecloud.engines.local.processes import Processes
from tests.engines.local.bench import ACCOUNT_UID, Bench
from tests.engines.local.sandboxed import bench, inside

__all__ = ["bench"]  # a fixture

pytestmark = pytest.mark.needs("bubblewrap")


def test_a_program_reads_and_writes_its_own_files(bench: Bench):
    told = inside(
        bench,
        "def keep(path):\n"
        "    open(path, 'w').write('kept'); return open(path).read()\n"
        "tell(**{p: attempt(lambda: keep(p)) for p in (\n"
        "    'here', '/pfs/local/home/ann/there', '/tmp/scratch', '/var/tmp/mine', '/train.list',\n"
        "    '/test.list', '/dev/shm/shared', '/dev/termination-log', '/dev/null')},\n"
        "     home=attempt(lambda: os.path.expanduser('~')),\n"
        "     user=attempt(lambda: __import__('getpass').getuser()),\n"
        "     name=attempt(lambda: __import__('pwd').getpwuid(os.getuid()).pw_dir))",
    )
    assert told.pop("/dev/null") == ["did", "''"]
    assert told.pop("home") == told.pop("name") == ["did", "'/pfs/local/home/ann'"]
    assert told.pop("user") == ["did", "'ann'"]
    assert all(answer == ["did", "'kept'"] for answer in told.values()), told
    assert (bench.home() / "there").stat().st_uid == ACCOUNT_UID


def test_python_finds_its_libraries_certificates_and_threads(bench: Bench):
    told = inside(
        bench,
        "import multiprocessing, ssl, sqlite3, threading, tempfile, zoneinfo, hashlib\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from multiprocessing import shared_memory\n"
        "def shared():\n"
        "    block = shared_memory.SharedMemory(create=True, size=100)\n"
        "    block.buf[0] = 7\n"
        "    again = shared_memory.SharedMemory(block.name)\n"
        "    value = again.buf[0]\n"
        "    again.close(); block.close(); block.unlink(); return value\n"
        "def pool():\n"
        "    with ProcessPoolExecutor(2) as workers: return sum(workers.map(abs, [-1, -2]))\n"
        "def thread():\n"
        "    out = []\n"
        "    one = threading.Thread(target=out.append, args=(1,)); one.start(); one.join()\n"
        "    return out\n"
        "if __name__ == '__main__':\n"
        "    tell(ssl=attempt(lambda: len(ssl.create_default_context().get_ca_certs()) >= 0),\n"
        "         shared=attempt(shared), pool=attempt(pool), thread=attempt(thread),\n"
        "         lock=attempt(lambda: multiprocessing.Lock().acquire()),\n"
        "         run=attempt(lambda: subprocess.check_output(['ls', '/']) != b''),\n"
        "         pty=attempt(lambda: len(os.openpty())),\n"
        "         library=attempt(lambda: __import__('paddlecloud').__name__),\n"
        "         cores=attempt(os.cpu_count),\n"
        "         own=attempt(lambda: socket.gethostbyname(socket.gethostname())),\n"
        "         local=attempt(lambda: socket.gethostbyname('localhost')))",
        address="127.0.3.4",
    )
    assert all(answer[0] == "did" for answer in told.values()), told
    assert told["own"][1] == "'127.0.3.4'"
    assert told["local"][1] == "'127.0.0.1'"
    assert told["cores"][1] == str(os.cpu_count())


def test_replicas_meet_on_loopback(bench: Bench):
    server = bench.python(
        "import socket\n"
        "listener = socket.create_server(('127.0.7.7', 0))\n"
        "open('port', 'w').write(str(listener.getsockname()[1]))\n"
        "print('listening', flush=True)\n"
        "print(listener.accept()[0].recv(100).decode(), flush=True)\n"
    )
    bench.says(server, "listening")
    bench.output_of(
        "python -c 'import socket; "
        'socket.create_connection(("127.0.7.7", int(open("port").read()))).send(b"hello")\''
    )
    assert bench.exit_of(server).ok
    assert bench.log(server) == "listening\nhello\n"


def test_the_shell_program_of_generation_a_runs_unmodified(bench: Bench):
    """Reads its id and the count, takes every second file of a glob, writes /train.list."""
    data = bench.home() / "data"
    data.mkdir()
    for number in range(4):
        (data / f"imikolov_train-{number:05d}-of-00004").write_text(f"{number}\n")
    for path in (data, *data.iterdir()):
        os.chown(path, ACCOUNT_UID, ACCOUNT_UID)
    bench.put(
        "train.py",
        "import glob\n"
        "trainer_id = int(open('/trainer_id').readline()[:-1])\n"
        "trainer_count = int(open('/trainer_count').readline()[:-1])\n"
        "files = sorted(glob.glob('/pfs/local/home/ann/data/imikolov_train-*'))\n"
        "own = [f for n, f in enumerate(files) if n % trainer_count == trainer_id]\n"
        "open('/train.list', 'w').write('\\n'.join(own))\n"
        "print(open('/train.list').read())\n",
    )
    text = bench.output_of("python train.py", files={"/trainer_id": "1\n", "/trainer_count": "2\n"})
    assert [line[-14:] for line in text.split()] == ["00001-of-00004", "00003-of-00004"]


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/stderr"])
def test_the_outputs_can_be_opened_by_name_without_harm_to_the_log(bench: Bench, name: str):
    text = bench.output_of(
        f"echo one; echo two > {name}; echo three >> {name}; sleep 0.2; echo four"
    )
    assert text == "one\ntwo\nthree\nfour\n"


def test_much_output_by_name_arrives_whole(bench: Bench):
    key = bench.start("seq 1 200000 > /dev/stdout")
    assert bench.exit_of(key).ok
    assert bench.log(key) == "".join(f"{n}\n" for n in range(1, 200001))


# --- what may go wrong in making one ------------------------------------------------------------


def test_what_bubblewrap_complains_of_is_the_reason_of_the_failed_start(bench: Bench):
    end = bench.exit_of(bench.start("true", files={"/usr/share/planted": "x"}))
    assert end.cause == EndCause.START_FAILED
    assert "bwrap:" in end.message
    assert "planted" in end.message


def test_a_sandbox_that_is_required_and_missing_is_refused(tmp_path: Path, monkeypatch):
    from paddlecloud.core.errors import Unavailable

    monkeypatch.setenv("PATH", "/nowhere")
    config = LocalConfig(tmp_path / "state", tmp_path / "pfs", sandbox="bwrap")
    with pytest.raises(Unavailable, match="bubblewrap"):
        Processes(config, lambda _: None)


def test_without_bubblewrap_the_platform_says_what_that_means(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    processes = Processes(LocalConfig(tmp_path / "state", tmp_path / "pfs"), lambda _: None)
    try:
        assert not processes.sandboxed
        (note,) = [note for note in processes.notes() if note.startswith("no sandbox")]
        assert "bubblewrap (bwrap) is not installed" in note
    finally:
        processes.close()


def test_a_changed_resolv_conf_reaches_the_next_sandbox(bench: Bench, monkeypatch, tmp_path):
    from paddlecloud.engines.local import etc

    host = tmp_path / "etc"
    host.mkdir()
    (host / "resolv.conf").write_text("nameserver 192.0.2.1\n")
    monkeypatch.setattr(etc, "_HOST", host)
    monkeypatch.setattr(etc, "_LOOK_AGAIN_S", 0)
    assert "192.0.2.1" in bench.output_of("cat /etc/resolv.conf")
    (host / "resolv.conf").write_text("nameserver 192.0.2.22\n")
    assert "192.0.2.22" in bench.output_of("cat /etc/resolv.conf")


def test_the_hostname_is_the_replicas(bench: Bench):
    key = ReplicaKey("job-h", 1, bench.key(0).role, 3, 1)
    assert bench.output_of("hostname", key=key, job_name="wide-deep") == "wide-deep-trainer-3\n"
    assert "wide-deep" not in subprocess.check_output(["hostname"], text=True)
