"""The command line where Unix is not: a real platform, used without what Windows lacks.

The modules and names below do not exist there; a verb that touches one of them fails here.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.e2e.platform import Platform
from tests.patience import PATIENCE_S

WITHOUT_UNIX = """
import os, select, signal, socket, sys, types

LACKING = {
    os: '''fork forkpty getuid geteuid getgid getegid getpgid getsid setsid setuid killpg chown
        lchown fchown fchmod O_DIRECTORY O_NOFOLLOW O_CLOEXEC O_NONBLOCK O_PATH O_NOATIME pread
        pwrite preadv pwritev readv writev posix_fadvise posix_fallocate sendfile splice
        copy_file_range memfd_create statvfs fstatvfs mkfifo mknod openpty getxattr setxattr
        listxattr uname sync fchdir eventfd pidfd_open sched_getaffinity waitid posix_spawn
        confstr sysconf fdatasync getloadavg''',
    signal: '''SIGKILL SIGHUP SIGUSR1 SIGUSR2 SIGALRM SIGCHLD SIGPIPE SIGWINCH SIGQUIT SIGTSTP
        pthread_sigmask pthread_kill sigwait sigtimedwait setitimer''',
    socket: "AF_UNIX SO_REUSEPORT MSG_DONTWAIT MSG_WAITALL",
    select: "poll epoll",
}
for module, names in LACKING.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
os.supports_dir_fd = os.supports_fd = os.supports_follow_symlinks = frozenset()
for name in ("fcntl", "pwd", "grp", "resource", "termios", "tty", "pty", "syslog", "crypt"):
    sys.modules[name] = None
# What Windows has instead.
locks = types.ModuleType("msvcrt")
locks.LK_NBLCK, locks.locking = 2, lambda descriptor, mode, count: None
sys.modules["msvcrt"] = locks

from paddlecloud.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def run(platform: Platform):
    def run_without_unix(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_UNIX, *words],
            env=platform.env,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run_without_unix


def test_submits_follows_and_looks_at_a_job(platform: Platform, run) -> None:
    folder = str(platform.package("away", train_py="print('trained')\n"))
    words = ("-jobname", "away", "--mode", "single", "-memory", "64Mi", "-entry", "python train.py")
    assert "trainer-0   | trained" in run("submit", *words, "--follow", folder)
    assert "away-trainer-0" in run("get", "workers", "away", "-o", "wide")
    assert run("logs", "-w", "trainer-0", "away") == "trained\n"
    assert "Succeeded" in run("describe", "away")
    assert "Succeeded" in run("events", "away", "-o", "json") + run(
        "get", "jobs", "-a", "-o", "yaml"
    )
    assert "run 2" in run("rerun", "--wait", "away")
    assert "removed" in run("kill", "-rm", "away")


def test_moves_files_in_both_directions(platform: Platform, run, tmp_path) -> None:
    source = platform.package("data", a_txt="a", b_txt="b" * 100_000)
    (source / "large").write_bytes(bytes(range(256)) * 80_000)  # goes and comes in pieces
    home = "/pfs/local/home/alice"
    assert "3 files" in run("pfs", "cp", "-r", str(source), f"{home}/")
    assert "already there" in run("pfs", "cp", "-r", str(source), f"{home}/")
    run("pfs", "sync", "--delete", f"{home}/data/", str(tmp_path / "back"))
    for name in ("a.txt", "b.txt", "large"):
        assert (tmp_path / "back" / name).read_bytes() == (source / name).read_bytes()
    run("file", "get", f"{home}/data/a.txt", str(tmp_path / "one"))
    assert (tmp_path / "one").read_text() == "a"
    assert run("pfs", "rm", "-r", f"{home}/data") == f"rm {home}/data\n"
