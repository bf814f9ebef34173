"""A replica cannot get out of its sandbox.

Each escape is tried for real by a program inside; the attempt prints what it got. The controls, so
that a sandbox that forbids everything fails as well, are in `test_sandboxed_programs`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from paddlecloud.core.observed import EndCause
from paddlecloud.engines.local import seccomp
from tests.engines.local.bench import ACCOUNT_UID, OTHER_UID, Bench, a_mark, processes_with, until
from tests.engines.local.sandboxed import bench, inside

__all__ = ["bench"]  # a fixture

pytestmark = pytest.mark.needs("bubblewrap")


@pytest.fixture
def unfiltered_bench(make_bench, monkeypatch) -> Bench:
    """As on a machine whose system call numbers we do not know: user namespaces are to be had."""
    monkeypatch.setattr(seccomp, "make_filter", lambda: None)
    return make_bench("sandbox")


# --- what it is ---------------------------------------------------------------------------------


def test_the_program_has_the_accounts_uid_and_no_capability_at_all(bench: Bench):
    told = inside(
        bench,
        "status = dict(l.split(':', 1) for l in open('/proc/self/status').read().splitlines())\n"
        "tell(status={k: v.split() for k, v in status.items()}, groups=os.getgroups())",
    )
    status = told["status"]
    assert status["Uid"] == status["Gid"] == [str(ACCOUNT_UID)] * 4
    assert told["groups"] in ([], [ACCOUNT_UID])
    capabilities = {name: status[name] for name in status if name.startswith("Cap")}
    assert set(capabilities) == {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}
    assert all(value == ["0000000000000000"] for value in capabilities.values())
    assert status["NoNewPrivs"] == ["1"]


def test_it_inherits_its_three_descriptors_and_nothing_else(bench: Bench):
    assert bench.output_of("ls /proc/self/fd | wc -l; echo; ls -l /proc/$$/fd").startswith("4\n")
    told = inside(bench, "tell(fds=sorted(os.listdir('/proc/self/fd')))")
    assert told["fds"] == ["0", "1", "2", "3"]  # 3 is the directory it reads


def test_only_the_allow_list_is_there(bench: Bench):
    names = set(bench.output_of("ls -A /", files={"/trainer_id": "0\n"}).split())
    top = {Path(sys.prefix).parts[1], Path(sys.base_prefix).parts[1], Path(__file__).parts[1]}
    allowed = {"bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "pfs", "proc", "run", "sbin"}
    allowed |= {"sys", "tmp", "trainer_id", "usr", "var"} | top
    assert names <= allowed
    assert {"usr", "etc", "pfs", "tmp", "trainer_id"} <= names


def test_its_environment_holds_nothing_of_the_platforms(bench: Bench, monkeypatch):
    monkeypatch.setenv("DJANGO_SECRET", "do-not-tell")
    text = bench.output_of("env; tr '\\0' '\\n' < /proc/1/environ || true")
    assert "do-not-tell" not in text


def test_secrets_are_on_no_command_line(bench: Bench):
    key = bench.start("echo ready; sleep 1000", env={"PADDLECLOUD_TOKEN": "pct_very_secret_token"})
    bench.says(key, "ready")
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert b"pct_very_secret_token" not in path.read_bytes()
        except OSError:
            continue
    assert not any(
        b"pct_very_secret_token" in path.read_bytes()
        for path in bench.attempt_dir(key).rglob("*")
        if path.is_file()
    )


def test_a_users_library_is_not_loaded_into_our_own_processes(bench: Bench):
    """bubblewrap runs with our privileges: LD_PRELOAD is for the program alone."""
    planted = bench.home() / "jobs" / "x" / "evil.so"
    planted.write_bytes(b"not even a library")
    key = bench.start("true", env={"LD_PRELOAD": str(planted), "PYTHONHOME": "/nowhere"})
    bench.exit_of(key)
    status = (bench.attempt_dir(key) / "status").read_text()
    assert "evil.so" not in status  # our loaders would have complained here
    assert "evil.so" in bench.log(key)  # the program's did, in the program's log


# --- reading what is not its own ---------------------------------------------------------------


def test_it_reads_no_file_of_the_platform_nor_of_others(bench: Bench):
    bench.make_home("bob", OTHER_UID)
    theirs = bench.put("secret", "bob's", account="bob")
    database = bench.config.state_dir / "server.db"
    database.write_text("accounts")
    other = bench.start("echo private; sleep 1000", account="bob")
    bench.says(other, "private")
    paths = [
        str(database),
        str(theirs),
        "/pfs/local/home/bob/jobs/x/secret",
        str(bench.processes.log_path(other)),
        str(bench.config.state_dir),
        str(bench.root),
        "/root",
        f"{Path.home()}/.ssh",
        "/etc/shadow",
        "/etc/ssl/private",
        "/proc/1/root/etc/shadow",
        "/proc/1/environ",
        "/proc/1/fd",
        "/proc/1/mem",
        "/proc/1/cwd/etc/shadow",
        "/var/lib",
        "/home",
        "/srv",
        "/boot",
        "/sys/kernel",
        "/sys/fs/cgroup",
        "/run/docker.sock",
        "/dev/kmsg",
        "/dev/mem",
        "/dev/vda",
    ]
    told = inside(
        bench,
        "look = lambda p: os.listdir(p) if os.path.isdir(p) else open(p, 'rb').read(100)\n"
        f"tell(**{{p: attempt(lambda: look(p)) for p in {paths!r}}})",
    )
    seen = {path: answer for path, answer in told.items() if answer[0] != "refused"}
    # Directories that lead to the runtime are there, empty but for the way to it.
    ways = {str(p) for p in (*Path(sys.prefix).parents, *Path(sys.base_prefix).parents)}
    assert {path for path in seen if path not in ways} == set()
    assert not any("shadow" in answer[1] or ".ssh" in answer[1] for answer in seen.values())


def test_it_sees_and_signals_only_its_own_processes(bench: Bench):
    mark = a_mark()
    other = bench.start(f"echo ready; exec sleep {mark}", account="ann")
    bench.says(other, "ready")
    until(lambda: any("sleep" in _comm(pid) for pid in processes_with(mark)), "sleeping")
    (victim,) = [pid for pid in processes_with(mark) if "sleep" in _comm(pid)]
    told = inside(
        bench,
        "pids = [p for p in os.listdir('/proc') if p.isdigit()]\n"
        "tell(pids=len(pids), ppid=os.getppid(),\n"
        f"     kill=attempt(lambda: os.kill({victim}, 9)),\n"
        "     all=attempt(lambda: os.kill(-1, 0)))",
    )
    assert told["pids"] <= 3  # the shim, the program, nobody else
    assert told["ppid"] == 1
    assert told["kill"][0] == "refused"
    assert bench.look(other).alive


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


# --- touching the shim -------------------------------------------------------------------------


def test_it_cannot_trace_kill_or_rob_the_shim(bench: Bench):
    told = inside(
        bench,
        "tell(attach=attempt(lambda: call('ptrace', 16, 1, 0, 0)),\n"
        "     seize=attempt(lambda: call('ptrace', 0x4206, 1, 0, 0)),\n"
        "     getfd=attempt(lambda: call('syscall', 438, os.pidfd_open(1), 2, 0)),\n"
        "     status=attempt(lambda: open('/proc/1/fd/2', 'a').write('ended 0 1')),\n"
        "     memory=attempt(lambda: open('/proc/1/mem', 'r+b').write(b'x')),\n"
        "     kill=attempt(lambda: os.kill(1, 9)),\n"
        "     stop=attempt(lambda: os.kill(1, 19)))",
    )
    for what in ("attach", "seize", "getfd", "status", "memory"):
        assert told[what][0] == "refused", told
    # The kernel takes these two and does not act: process 1 is deaf to its own namespace.


def test_it_cannot_forge_its_own_end(bench: Bench):
    key = bench.start("for fd in 0 1 2 3 4 5 6 7 8 9; do echo 'ended 0 1' >&$fd; done; exit 9")
    end = bench.exit_of(key)
    assert (end.cause, end.code) == (EndCause.EXITED, 9)


# --- mounts, devices, namespaces ----------------------------------------------------------------

MS_REMOUNT_BIND_RW = 32 | 4096
IN_A_USER_NAMESPACE = (
    "call('unshare', 0x10000000 | 0x00020000)\n"  # CLONE_NEWUSER | CLONE_NEWNS
    "open('/proc/self/setgroups', 'w').write('deny')\n"
    f"open('/proc/self/uid_map', 'w').write('0 {ACCOUNT_UID} 1')\n"
)


TRICKS = [("bench", "", "did"), ("bench", IN_A_USER_NAMESPACE, "refused")]
# Not root, the sandbox itself is a user namespace, and bubblewrap forbids further ones in it.
NESTED = "did" if os.geteuid() == 0 else "refused"
TRICKS += [("unfiltered_bench", "", "did"), ("unfiltered_bench", IN_A_USER_NAMESPACE, NESTED)]


@pytest.fixture(params=TRICKS, ids=["plainly", "filtered", "unfiltered", "user-namespace"])
def trick(request: pytest.FixtureRequest) -> tuple[Bench, str, str]:
    """Where, what to try first, and whether that succeeds."""
    name, first, prepared = request.param
    return request.getfixturevalue(name), first, prepared


def test_it_cannot_make_anything_writable_that_is_not(trick):
    """As root with capabilities a job could remount /usr; in a namespace of its own it has some."""
    bench, first, prepared = trick
    told = inside(
        bench,
        f"prepared = attempt(lambda: exec({first!r}))\n"
        "def remount(path):\n"
        f"    call('mount', b'none', path.encode(), None, {MS_REMOUNT_BIND_RW}, None)\n"
        "    open(path + '/planted', 'w').close()\n"
        "def unmount(path):\n"
        "    call('umount2', path.encode(), 2)\n"
        "    return os.listdir(path)\n"
        "paths = ['/usr', '/etc', '/pfs/local/public', '/etc/ssl/certs', '/proc/sys']\n"
        "tell(prepared=prepared,\n"
        "     remount={p: attempt(lambda: remount(p)) for p in paths},\n"
        "     unmount={p: attempt(lambda: unmount(p)) for p in paths},\n"
        "     write={p: attempt(lambda: open(p + '/planted', 'w')) for p in paths})",
    )
    assert told["prepared"][0] == prepared
    for what in ("remount", "unmount", "write"):
        assert all(answer[0] == "refused" for answer in told[what].values()), told
    assert not Path("/usr/planted").exists()
    assert not (bench.root / "pfs" / "public" / "planted").exists()


def test_it_reaches_no_device_and_no_kernel_setting(trick):
    bench, first, prepared = trick
    told = inside(
        bench,
        f"prepared = attempt(lambda: exec({first!r}))\n"
        "def node(path, kind, major, minor):\n"
        "    os.mknod(path, kind | 0o666, os.makedev(major, minor))\n"
        "    return open(path, 'rb').read(1)\n"
        "def disk():\n"
        "    os.mkdir('/tmp/disk')\n"
        "    call('mount', b'/dev/vda', b'/tmp/disk', b'ext4', 0, None)\n"
        "tell(prepared=prepared,\n"
        "     mem=attempt(lambda: node('/tmp/mem', stat.S_IFCHR, 1, 1)),\n"
        "     disk=attempt(lambda: node('/tmp/vda', stat.S_IFBLK, 254, 0)),\n"
        "     mount=attempt(disk),\n"
        "     core=attempt(lambda: open('/proc/sys/kernel/core_pattern', 'w').write('|/tmp/x')),\n"
        "     sysrq=attempt(lambda: open('/proc/sysrq-trigger', 'w').write('b')),\n"
        "     hostname=attempt(lambda: call('sethostname', b'evil', 4)),\n"
        "     time=attempt(lambda: __import__('time').clock_settime(0, 0)),\n"
        "     module=attempt(lambda: call('syscall', 313, 0, b'', 0)),\n"
        "     reboot=attempt(lambda: call('reboot', 0)),\n"
        "     raw=attempt(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)))",
    )
    assert told.pop("prepared")[0] == prepared
    assert {what for what, answer in told.items() if answer[0] != "refused"} == set()


def test_it_gains_nothing_from_a_set_uid_file_or_chroot(bench: Bench):
    told = inside(
        bench,
        "import shutil\n"
        "shutil.copy('/bin/sh', 'shell'); os.chmod('shell', 0o6755)\n"
        "tell(setuid=attempt(lambda: os.setuid(0)),\n"
        "     su=attempt(lambda: subprocess.check_output(['/bin/su', '-c', 'id'], stderr=-1)),\n"
        "     own=attempt(lambda: subprocess.check_output(['./shell', '-pc', 'id -u'])),\n"
        "     chown=attempt(lambda: os.chown('shell', 0, 0)),\n"
        "     chroot=attempt(lambda: os.chroot('/tmp')),\n"
        "     setns=attempt(lambda: call('setns', os.open('/proc/1/ns/mnt', 0), 0)))",
    )
    assert f"{ACCOUNT_UID}" in told.pop("own")[1]
    assert {what for what, answer in told.items() if answer[0] != "refused"} == set()


def test_public_files_and_the_contract_are_read_only(bench: Bench):
    (bench.root / "pfs" / "public" / "data").write_text("common")
    told = inside(
        bench,
        "tell(read=attempt(lambda: open('/pfs/local/public/data').read()),\n"
        "     write=attempt(lambda: open('/pfs/local/public/data', 'w')),\n"
        "     forge=attempt(lambda: open('/trainer_id', 'w')),\n"
        "     unlink=attempt(lambda: os.unlink('/trainer_id')),\n"
        "     move=attempt(lambda: os.rename('/trainer_id', '/x')),\n"
        "     neighbours=attempt(lambda: os.mkdir('/pfs/local/home/bob')))",
        files={"/trainer_id": "0\n"},
    )
    assert told.pop("read") == ["did", "'common'"]
    if os.geteuid() != 0:  # the way to its home is then the program's own, in its own memory
        assert told.pop("neighbours")[0] == "did"
    assert not (bench.root / "pfs" / "home" / "bob").exists()
    assert {what for what, answer in told.items() if answer[0] != "refused"} == set()
