"""The private root of a replica, made by bubblewrap.

An allow-list: the system's programs and libraries, chosen files of /etc, the runtime, the
account's own files, a private /tmp; everything else is absent. This module writes bubblewrap's
arguments and the generated /etc; it starts nothing but a probe. The network is shared with the
host: replicas find each other on loopback addresses.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from paddlecloud.engines.local.attempts import AttemptDir
from paddlecloud.engines.local.config import LocalConfig
from paddlecloud.engines.local.runtimes import Runtime, shim_interpreter
from paddlecloud.engines.protocols import Launch

SHIM_PATH = "/run/paddlecloud/shim"
_PROBE_TIMEOUT_S = 10
_ROOT_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# The shim needs these to take the account's uid; it gives them up before the program runs.
_SHIM_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_KILL")
_ETC_FILES = (
    "debian_version gai.conf host.conf hosts ld.so.cache ld.so.conf localtime magic mime.types "
    "networks nsswitch.conf os-release protocols resolv.conf rpc services shells timezone"
).split()
_ETC_DIRS = ("alternatives", "fonts", "ld.so.conf.d", "pki/tls/certs", "ssl/certs")
_GPU_DEVICES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "nvidia-caps")


def _namespaces(is_root: bool) -> list[str]:
    args = ["--unshare-pid", "--as-pid-1", "--unshare-ipc", "--unshare-uts"]
    args += ["--unshare-cgroup-try", "--cap-drop", "ALL"]
    if not is_root:
        return [*args, "--unshare-user", "--disable-userns"]
    for capability in _SHIM_CAPABILITIES:
        args += ["--cap-add", capability]
    return args


def _system_root() -> list[str]:
    """`/` writable by the program, with the system's programs in it."""
    args = ["--perms", "1777", "--tmpfs", "/", "--ro-bind", "/usr", "/usr"]
    for name in _ROOT_LINKS:
        path = Path("/", name)
        if path.is_symlink():
            args += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            args += ["--ro-bind", str(path), str(path)]
    args += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
    args += ["--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm"]
    args += ["--dir", "/sys", "--dir", "/sys/devices"]
    args += ["--ro-bind-try", "/sys/devices/system", "/sys/devices/system"]
    args += ["--dir", "/run", "--dir", "/var", "--symlink", "/tmp", "/var/tmp"]
    return args


class _Mounts:
    """Options that mount, each after `--dir` for the directories above it: those that bubblewrap
    makes by itself are closed to all but root."""

    def __init__(self) -> None:
        self.args: list[str] = []
        self._made = {"/", "/usr", "/etc", "/dev", "/tmp", "/run", "/var", "/proc", "/sys"}

    def add(self, option: str, source: Path | str, place: str) -> None:
        for parent in reversed(Path(place).parents):
            if str(parent) not in self._made and not place.startswith(("/etc/", "/dev/")):
                self.args += ["--dir", str(parent)]
                self._made.add(str(parent))
        self.args += [option, str(source), place]


class Sandbox:
    """Knows how to wrap a replica on this machine. One per engine."""

    def __init__(self, config: LocalConfig, shim: Path) -> None:
        self.bwrap = shutil.which("bwrap") or ""
        self._config = config
        self._etc_dir = config.state_dir / "sandbox"
        self._is_root = os.geteuid() == 0
        interpreter, binds = shim_interpreter()
        self.command = (str(interpreter), "-I", "-S", SHIM_PATH)
        self._interpreter_binds = binds
        self._fixed = [*_namespaces(self._is_root), *_system_root()]
        self._fixed += ["--ro-bind", str(shim), SHIM_PATH]

    def probe(self) -> str:
        """Empty if a sandbox can be made here, else why not."""
        if not self.bwrap:
            return "bubblewrap (bwrap) is not installed"
        command = [self.bwrap, *self._fixed, "--", "/bin/true"]
        try:
            done = subprocess.run(
                command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_PROBE_TIMEOUT_S
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"bubblewrap cannot be run: {error}"
        if done.returncode == 0:
            return ""
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return f"bubblewrap does not work here: {said[-1] if said else done.returncode}"

    def arguments(self, launch: Launch, attempt: AttemptDir, runtime: Runtime) -> list[str]:
        """All of bubblewrap's options for this replica. They hold no secret."""
        pfs = f"/pfs/{launch.cluster}"
        home = self._config.pfs_root / "home" / launch.account
        public = self._config.pfs_root / "public"
        mounts = _Mounts()
        mounts.add("--bind", attempt.tmp, "/tmp")  # first: a runtime may live below it
        self._etc(launch, mounts)
        extra = tuple(path for path in self._config.read_only_binds if path.exists())
        for path in dict.fromkeys((*self._interpreter_binds, *runtime.binds, *extra)):
            mounts.add("--ro-bind", path, str(path))
        mounts.add("--bind", home, f"{pfs}/home/{launch.account}")
        mounts.add("--ro-bind-try", public, f"{pfs}/public")
        mounts.add("--bind", attempt.termination, "/dev/termination-log")
        for place in launch.files:
            mounts.add("--ro-bind", attempt.files / place.lstrip("/"), place)
        self._gpus(launch, mounts)
        hostname = f"{launch.job_name}-{launch.key.short}"[:64]
        return [*self._fixed, "--hostname", hostname, *mounts.args]

    def _gpus(self, launch: Launch, mounts: _Mounts) -> None:
        """The devices given to this replica and no other."""
        if not launch.gpus:
            return
        names = [f"nvidia{number}" for number in launch.gpus]
        for name in (*names, *_GPU_DEVICES):
            mounts.add("--dev-bind-try", f"/dev/{name}", f"/dev/{name}")

    def _etc(self, launch: Launch, mounts: _Mounts) -> None:
        """One generated directory per account: cheaper than a mount for each file."""
        uid = os.geteuid() if launch.uid is None else launch.uid
        etc = self._etc_dir / f"etc-{uid}"
        refresh_etc(etc, uid, launch.account, f"/pfs/{launch.cluster}/home/{launch.account}")
        mounts.add("--ro-bind", etc, "/etc")
        for name in _ETC_DIRS:
            if Path("/etc", name).is_dir():
                mounts.add("--ro-bind", f"/etc/{name}", f"/etc/{name}")


def _write_if_changed(path: Path, data: bytes) -> None:
    """Replace, never rewrite: a running sandbox has the old file."""
    try:
        if path.read_bytes() == data:
            return
    except FileNotFoundError:
        pass
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(data)
    os.chmod(part, 0o644)
    os.rename(part, path)


def refresh_etc(etc: Path, uid: int, account: str, home: str) -> None:
    """Bring the generated /etc up to date; a host's resolv.conf changes while we run."""
    if not etc.is_dir():
        for name in _ETC_DIRS:
            (etc / name).mkdir(parents=True, exist_ok=True)
    login = "".join(c if c.isalnum() or c in "._-" else "_" for c in account)[:32] or "user"
    people = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
    groups = "root:x:0:\nnogroup:x:65534:\n"
    if uid != 0:
        people = f"{login}:x:{uid}:{uid}:{account}:{home}:/bin/sh\n" + people
        groups = f"{login}:x:{uid}:\n" + groups
    _write_if_changed(etc / "passwd", people.encode())
    _write_if_changed(etc / "group", groups.encode())
    for name in _ETC_FILES:
        try:
            _write_if_changed(etc / name, Path("/etc", name).read_bytes())
        except OSError:
            (etc / name).unlink(missing_ok=True)
