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
import tempfile
from pathlib import Path

from paddlecloud.engines.local import seccomp
from paddlecloud.engines.local.attempts import AttemptDir
from paddlecloud.engines.local.config import LocalConfig
from paddlecloud.engines.local.etc import Etc, Mounts
from paddlecloud.engines.local.runtimes import Runtime, shim_interpreter
from paddlecloud.engines.protocols import Launch

SHIM_PATH = "/run/paddlecloud/shim"
LIBRARY_PATH = "/run/paddlecloud/runtime"
_PROBE_TIMEOUT_S = 10
_ROOT_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# The shim needs these to take the account's uid; it gives them up before the program runs.
_SHIM_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_KILL")
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
    # Where jobs of the second client expect their workspace; their start script puts it there.
    args += ["--dir", "/root", "--perms", "1777", "--dir", "/root/paddlejob"]
    return args


def _hostname(launch: Launch) -> str:
    return f"{launch.job_name}-{launch.key.short}"[:64]


class Sandbox:
    """Knows how to wrap a replica on this machine. One per engine."""

    def __init__(self, config: LocalConfig, shim: Path, library: Path) -> None:
        self.bwrap = shutil.which("bwrap") or ""
        self._config = config
        self._etc = Etc(config.state_dir / "sandbox")
        self.filter = seccomp.make_filter()
        interpreter, binds = shim_interpreter()
        self.command = (str(interpreter), "-I", "-S", SHIM_PATH)
        self._interpreter_binds = binds
        self._fixed = [*_namespaces(os.geteuid() == 0), *_system_root()]
        self._fixed += ["--ro-bind", str(shim), SHIM_PATH]
        self._fixed += ["--ro-bind", str(library), LIBRARY_PATH]

    def probe(self) -> str:
        """Empty if a sandbox can be made here, else why not."""
        if not self.bwrap:
            return "bubblewrap (bwrap) is not installed"
        problem = self._try()
        if problem and self.filter is not None:
            self.filter = None  # a kernel without seccomp
            problem = self._try()
        return problem

    def _try(self) -> str:
        with tempfile.TemporaryFile() as file:
            file.write(self.filter or b"")
            file.seek(0)
            filtering = ["--seccomp", str(file.fileno())] if self.filter else []
            command = [self.bwrap, *self._fixed, *filtering, "--", "/bin/true"]
            try:
                done = subprocess.run(
                    command,
                    capture_output=True,
                    stdin=subprocess.DEVNULL,
                    pass_fds=[file.fileno()],
                    timeout=_PROBE_TIMEOUT_S,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                return f"bubblewrap cannot be run: {error}"
        if done.returncode == 0:
            return ""
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return f"bubblewrap does not work here: {said[-1] if said else done.returncode}"

    def arguments(self, launch: Launch, attempt: AttemptDir, runtime: Runtime) -> list[str]:
        """Bubblewrap's options for this replica, all but `contents`. They hold no secret."""
        pfs = f"/pfs/{launch.cluster}"
        home = self._config.pfs_root / "home" / launch.account
        public = self._config.pfs_root / "public"
        mounts = Mounts()
        mounts.add("--bind", attempt.tmp, "/tmp")  # first: a runtime may live below it
        self._etc.mount(launch, mounts)
        for path in dict.fromkeys((*self._interpreter_binds, *runtime.binds)):
            mounts.add("--ro-bind", path, str(path))
        for path in self._config.read_only_binds:
            mounts.add("--ro-bind-try", path, str(path))
        mounts.add("--bind", home, f"{pfs}/home/{launch.account}")
        mounts.add("--ro-bind-try", public, f"{pfs}/public")
        mounts.add("--bind", attempt.termination, "/dev/termination-log")
        self._gpus(launch, mounts)
        return [*self._fixed, "--hostname", _hostname(launch), *mounts.args]

    def contents(self, launch: Launch) -> dict[str, str]:
        """Small read-only files of the sandbox: where → what."""
        hosts = self._etc.read("hosts") + f"{launch.address or '127.0.0.1'}\t{_hostname(launch)}\n"
        return {"/etc/hosts": hosts, **launch.files}

    def _gpus(self, launch: Launch, mounts: Mounts) -> None:
        """The devices given to this replica and no other."""
        if not launch.gpus:
            return
        names = [f"nvidia{number}" for number in launch.gpus]
        for name in (*names, *_GPU_DEVICES):
            mounts.add("--dev-bind-try", f"/dev/{name}", f"/dev/{name}")
