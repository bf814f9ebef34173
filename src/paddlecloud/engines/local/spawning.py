"""Starts one attempt: directory made ready, descriptors laid out, one process begun.

`Processes.create` calls `Spawner.spawn`; a failure it can name is `CannotStart`. The process is
begun with posix_spawn, which does not copy the server's memory. The program's environment and
command travel in a memory file, never on a command line or in the environment of bubblewrap,
which runs with our privileges and must not obey a user's LD_PRELOAD.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import py_compile
import signal
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from paddlecloud.clock import SteadyClock
from paddlecloud.engines.local import shim
from paddlecloud.engines.local.attempts import AttemptDir
from paddlecloud.engines.local.config import LocalConfig
from paddlecloud.engines.local.runtimes import (
    Runtime,
    RuntimeMissing,
    find_runtime,
    shim_interpreter,
)
from paddlecloud.engines.local.sandbox import LIBRARY_PATH, Sandbox
from paddlecloud.engines.protocols import Launch
from paddlecloud.runtime import delivery

GO = b"g"
COOKIE = "PADDLECLOUD_COOKIE"
_LOWEST_SOURCE_FD = 64  # above every number the child gets, so that no dup2 overwrites a source
_DEFAULTED = [n for n in signal.valid_signals() if n not in (signal.SIGKILL, signal.SIGSTOP)]


class CannotStart(Exception):
    """The attempt cannot be started; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Spawned:
    """A process that waits for the word to go on. The caller closes the descriptors."""

    pid: int
    shim_fd: int  # write GO and the program starts; read what the shim records
    info_fd: int  # bubblewrap tells here which process is the shim; -1: `pid` is


@dataclass(frozen=True, slots=True)
class View:
    """Where the program finds its things: inside the sandbox, or on the host without one."""

    home: str
    public: str
    workdir: str
    root_files: str
    tmp: str
    termination_log: str
    library: str


def compile_shim(state_dir: Path) -> Path:
    """The shim as byte code: compiling the source would be a tenth of a replica's start."""
    source = Path(shim.__file__).read_bytes()
    digest = hashlib.sha256(source).hexdigest()[:12]
    target = state_dir / "sandbox" / f"shim-{digest}.{sys.implementation.cache_tag}.pyc"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        py_compile.compile(shim.__file__, cfile=str(target), doraise=True)
    return target


def place_library(state_dir: Path) -> Path:
    """The folder that a program imports `paddlecloud_runtime` from, readable for every account."""
    text = delivery.source().encode()
    folder = state_dir / "sandbox" / f"runtime-{hashlib.sha256(text).hexdigest()[:12]}"
    target = folder / delivery.FILE_NAME
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{delivery.FILE_NAME}.{os.getpid()}"
        part.write_bytes(text)
        part.chmod(0o644)
        part.rename(target)
        folder.chmod(0o755)
    return folder


def encode_plan(
    flags: bytes,
    uid: int | None,
    data_limit_bytes: int,
    machine_started_at: float,
    entrances: Iterable[int],
    workdir: str,
    entry: str,
) -> bytes:
    """All of the plan but the environment, in the order `shim.Plan` reads."""
    user = "" if uid is None else str(uid)
    numbers = (str(data_limit_bytes), repr(machine_started_at), " ".join(map(str, entrances)))
    words = (user, *numbers, workdir, entry)
    return b"\0".join((flags, *(os.fsencode(word) for word in words)))


def encode_env(env: Mapping[str, str]) -> bytes:
    for name, value in env.items():
        if not name or "=" in name or "\0" in name + value:
            raise CannotStart(f"the environment variable {name!r} cannot be set")
    return b"\0".join(os.fsencode(f"{name}={value}") for name, value in env.items())


def _opened(stack: ExitStack, path: str | Path, flags: int, mode: int = 0o600) -> int:
    fd = os.open(path, flags | os.O_CLOEXEC, mode)
    stack.callback(os.close, fd)
    return fd


def _memory_file(stack: ExitStack, name: str, data: bytes) -> int:
    fd = os.memfd_create(name)
    stack.callback(os.close, fd)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _socket_pair(theirs: ExitStack, ours: ExitStack) -> tuple[int, int]:
    """(our end, the child's end), each closed by its stack."""
    here, there = socket.socketpair()
    here.setblocking(False)
    fds = here.detach(), there.detach()
    ours.callback(os.close, fds[0])
    theirs.callback(os.close, fds[1])
    return fds


def _pipe(theirs: ExitStack, ours: ExitStack) -> tuple[int, int]:
    """(our end, the child's end), each closed by its stack."""
    here, there = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(here, False)
    ours.callback(os.close, here)
    theirs.callback(os.close, there)
    return here, there


def _start(argv: list[str], env: Mapping[str, str], fds: Mapping[int, int]) -> int:
    """Begin a process with exactly these descriptors: number there → ours."""
    with ExitStack() as stack:
        actions = []
        for number, fd in fds.items():
            source = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _LOWEST_SOURCE_FD)
            stack.callback(os.close, source)
            actions.append((os.POSIX_SPAWN_DUP2, source, number))
        return os.posix_spawn(
            argv[0], argv, env, file_actions=actions, setsid=True,
            setsigmask=(), setsigdef=_DEFAULTED,
        )  # fmt: skip


class Spawner:
    """Knows how this machine starts replicas. `sandbox` None: plain processes."""

    def __init__(
        self,
        config: LocalConfig,
        shim_file: Path,
        library: Path,
        sandbox: Sandbox | None,
        clock: SteadyClock,
    ) -> None:
        self._config = config
        self._shim_file = shim_file
        self._library = library
        self._sandbox = sandbox
        self._clock = clock

    # --- where things are ---------------------------------------------------------------------

    def view(self, launch: Launch, attempt: AttemptDir) -> View:
        pfs, root = f"/pfs/{launch.cluster}", self._config.pfs_root
        if self._sandbox is not None:
            return View(
                home=f"{pfs}/home/{launch.account}",
                public=f"{pfs}/public",
                workdir=launch.workdir,
                root_files="/",
                tmp="/tmp",
                termination_log="/dev/termination-log",
                library=LIBRARY_PATH,
            )
        return View(
            home=str(root / "home" / launch.account),
            public=str(root / "public"),
            workdir=self._on_host(launch, launch.workdir),
            root_files=str(attempt.files),
            tmp=str(attempt.tmp),
            termination_log=str(attempt.termination),
            library=str(self._library),
        )

    def _on_host(self, launch: Launch, text: str) -> str:
        """`text` with this account's /pfs paths replaced by the host's."""
        pfs, root = f"/pfs/{launch.cluster}", self._config.pfs_root
        for part in (f"home/{launch.account}", "public"):
            inside, outside = f"{pfs}/{part}", str(root / part)
            pieces = text.split(inside)
            text = pieces[0]
            for piece in pieces[1:]:
                is_whole_name = not piece or not (piece[0].isalnum() or piece[0] in "._-@")
                text += (outside if is_whole_name else inside) + piece
        return text

    def environment(
        self, launch: Launch, view: View, runtime: Runtime, cookie: str, has_gpus: bool
    ) -> dict[str, str]:
        env = {
            "HOME": view.home,
            "TMPDIR": view.tmp,
            "LANG": "C.UTF-8",
            "USER": launch.account,
            "LOGNAME": launch.account,
            "SHELL": "/bin/sh",
            "PYTHONUNBUFFERED": "1",  # so that a log shows a line when it is printed
            "PADDLECLOUD_PFS_HOME": view.home,
            "PADDLECLOUD_PFS_PUBLIC": view.public,
            "PADDLECLOUD_ROOT_FILES": view.root_files,
            "PADDLECLOUD_TERMINATION_LOG": view.termination_log,
            **runtime.env(),
        }
        if self._sandbox is None:
            env.update((k, self._on_host(launch, v)) for k, v in launch.env.items())
        else:
            env.update(launch.env)
        # Last, so that nothing of the program's own is hidden.
        env["PYTHONPATH"] = ":".join(filter(None, (env.get("PYTHONPATH"), view.library)))
        if has_gpus or launch.gpus:
            env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, launch.gpus))
        env[COOKIE] = cookie
        return env

    # --- starting -----------------------------------------------------------------------------

    def _check_workdir(self, launch: Launch) -> None:
        if not launch.workdir.startswith("/"):
            raise CannotStart(f"the working directory {launch.workdir!r} is not an absolute path")
        on_host = self._on_host(launch, launch.workdir)
        is_ours = on_host != launch.workdir or self._sandbox is None
        if is_ours and not os.path.isdir(on_host):
            raise CannotStart(f"the working directory {launch.workdir} does not exist")

    def _prepare_files(self, launch: Launch, attempt: AttemptDir) -> None:
        os.mkdir(attempt.tmp)
        os.chmod(attempt.tmp, 0o1777)
        fd = os.open(attempt.termination, os.O_CREAT | os.O_CLOEXEC, 0o600)
        if launch.uid is not None and os.geteuid() == 0:
            os.fchown(fd, launch.uid, launch.uid)
        os.close(fd)
        for name in launch.files:
            if not name.startswith("/") or ".." in name.split("/"):
                raise CannotStart(f"the file {name!r} has no absolute path")
        if self._sandbox is None:
            for name, text in launch.files.items():
                path = attempt.files / name.lstrip("/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)

    def _runtime(self, launch: Launch) -> Runtime:
        try:
            return find_runtime(launch.runtime, self._config.runtimes, self._config.state_dir)
        except RuntimeMissing as error:
            raise CannotStart(str(error)) from error

    def spawn(
        self,
        launch: Launch,
        attempt: AttemptDir,
        cookie: str,
        *,
        data_limit_bytes: int,
        entrances: Sequence[Path],
        has_gpus: bool,
    ) -> Spawned:
        """Start all but the program itself, which waits for GO.

        Through `entrances` the shim then puts itself into its cgroups. The status file is locked
        until the last process that could write it ends.
        """
        self._check_workdir(launch)
        runtime = self._runtime(launch)
        self._prepare_files(launch, attempt)
        view = self.view(launch, attempt)
        flags = b"" if self._sandbox else shim.FLAG_SUBREAPER
        env = self.environment(launch, view, runtime, cookie, has_gpus)
        numbers = itertools.count(shim.FREE_FD)
        with ExitStack() as stack, ExitStack() as ours:
            fds = self._descriptors(stack, attempt)
            doors = {next(numbers): _opened(stack, path, os.O_WRONLY) for path in entrances}
            fds |= doors
            plan = encode_plan(
                flags,
                launch.uid,
                data_limit_bytes,
                self._clock.started_at,
                doors,
                view.workdir,
                launch.entry,
            )
            fds[shim.PLAN_FD] = _memory_file(stack, "plan", plan + b"\0" + encode_env(env))
            shim_fd, fds[shim.PLATFORM_FD] = _socket_pair(stack, ours)
            info_fd = -1
            argv = [str(shim_interpreter()[0]), "-I", "-S", str(self._shim_file)]
            if self._sandbox is not None:
                info_fd, there = _pipe(stack, ours)
                pipe = (info_fd, there)
                argv = self._wrap(stack, launch, attempt, runtime, fds, numbers, pipe)
            try:
                pid = _start(argv, {COOKIE: cookie}, fds)
            except OSError as error:
                raise CannotStart(f"cannot run {argv[0]}: {error.strerror}") from error
            ours.pop_all()  # from here on they are the caller's
        return Spawned(pid, shim_fd, info_fd)

    def _descriptors(self, stack: ExitStack, attempt: AttemptDir) -> dict[int, int]:
        append = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        status = _opened(stack, attempt.status, append)
        fcntl.flock(status, fcntl.LOCK_EX | fcntl.LOCK_NB)
        null = _opened(stack, "/dev/null", os.O_RDWR)
        # Read-only for whoever opens it later: `echo lost > /dev/stderr` must not empty the log.
        log = _opened(stack, attempt.log, append, 0o400)
        return {0: null, 1: null, shim.STATUS_FD: status, shim.LOG_FD: log}

    def _wrap(
        self,
        stack: ExitStack,
        launch: Launch,
        attempt: AttemptDir,
        runtime: Runtime,
        fds: dict[int, int],
        numbers: Iterator[int],
        info_pipe: tuple[int, int],
    ) -> list[str]:
        """The command that makes the sandbox with the shim in it; adds what it reads to `fds`."""
        assert self._sandbox is not None
        arguments = self._sandbox.arguments(launch, attempt, runtime)
        for place, text in self._sandbox.contents(launch).items():
            number = next(numbers)
            fds[number] = _memory_file(stack, "file", os.fsencode(text))
            arguments += ["--perms", "0444", "--ro-bind-data", str(number), place]
        if self._sandbox.filter is not None:
            number = next(numbers)
            fds[number] = _memory_file(stack, "seccomp", self._sandbox.filter)
            arguments += ["--seccomp", str(number)]
        # Both ends: were we killed and the last reader gone, its writing would kill bubblewrap,
        # and the process it made would wait for its word for ever.
        fds[next(numbers)], fds[number := next(numbers)] = info_pipe
        arguments += ["--info-fd", str(number)]
        number = next(numbers)
        fds[number] = _memory_file(stack, "sandbox", nul_separated(arguments))
        return [self._sandbox.bwrap, "--args", str(number), "--", *self._sandbox.command]


def nul_separated(words: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(word) + b"\0" for word in words)
