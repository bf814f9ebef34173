"""Keeps attempts: begins them, hears how they fare, stops them, and settles how they ended.

`Processes` is the door; this is the room behind it. Everything that happens to an attempt passes
here in one order that survives a kill -9 between any two steps:

    marker in live/ → directory → launch.json → spawn → process.json → … → result.json → no marker

so a successor looks only at the markers, and finds each attempt either not begun (nothing was
spawned: it is forgotten and may be begun again), alive (its status file is locked), or over.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddlecloud.core.observed import ReplicaKey, ReplicaObserved, ReplicaState
from paddlecloud.engines.local import linux, remains
from paddlecloud.engines.local.attempts import (
    AttemptDir,
    Result,
    Status,
    attempt_path,
    attempts_of_run,
    describe,
    marker_name,
    parse_marker,
)
from paddlecloud.engines.local.cgroups import Cgroups, Group
from paddlecloud.engines.local.config import LocalConfig
from paddlecloud.engines.local.logs import LogFile
from paddlecloud.engines.local.outcomes import MAX_MESSAGE_BYTES, Facts, judge
from paddlecloud.engines.local.spawning import CannotStart, Spawner
from paddlecloud.engines.local.watching import Watcher
from paddlecloud.engines.protocols import Launch

log = logging.getLogger(__name__)

_RETRY_S = 0.02  # looking again for what the kernel is about to finish
_KILL_AGAIN_S = 0.2
_GIVE_UP_ROUNDS = 250  # 5 s: a process stuck in the kernel must not hold its job for ever
_LOG_CHECK_S = 1.0
_LOG_CHECK_BUSY_S = 0.1


@dataclass(slots=True)
class Kept:
    """One attempt as this process knows it; all of it can be read again from `dir`."""

    key: ReplicaKey
    dir: AttemptDir
    cookie: str = ""
    address: str = ""
    memory_bytes: int = 0
    is_sandboxed: bool = False
    group: Group | None = None
    started_at: float | None = None
    result: Result | None = None
    stopping: bool = False
    pidfd: int = -1
    pid: int = 0
    notify_fd: int = -1
    rounds: int = 0  # of killing, or of looking for remains
    log_bytes: int = 0

    @property
    def log(self) -> LogFile:
        return LogFile(self.dir.log, self.dir.dropped)

    def observed(self) -> ReplicaObserved:
        result = self.result
        state = ReplicaState.PENDING if self.started_at is None else ReplicaState.RUNNING
        return ReplicaObserved(
            key=self.key,
            state=state if result is None else result.state,
            started_at=self.started_at if result is None else result.started_at,
            ended_at=None if result is None else result.ended_at,
            exit=None if result is None else result.exit,
            stopping=self.stopping,
            address=self.address,
        )


class Keeper:
    def __init__(
        self,
        config: LocalConfig,
        spawner: Spawner,
        cgroups: Cgroups,
        *,
        is_sandboxed: bool,
        has_gpus: bool,
        on_change: Callable[[str], None],
    ) -> None:
        self._config = config
        self._jobs_dir = config.state_dir / "jobs"
        self._live_dir = config.state_dir / "live"
        self._live_dir.mkdir(parents=True, exist_ok=True)
        self._spawner = spawner
        self._cgroups = cgroups
        self._is_sandboxed = is_sandboxed
        self._has_gpus = has_gpus
        self._on_change = on_change
        self._lock = threading.RLock()
        self._runs: dict[tuple[str, int], dict[ReplicaKey, Kept]] = {}
        self._live: dict[ReplicaKey, Kept] = {}
        self._checks_logs = False
        self._watcher = Watcher("replicas")

    # --- what is known ------------------------------------------------------------------------

    def of_run(self, job_id: str, run: int) -> list[Kept]:
        with self._lock:
            return list(self._run(job_id, run).values())

    def find(self, key: ReplicaKey) -> Kept | None:
        with self._lock:
            return self._run(key.job_id, key.run).get(key)

    def _run(self, job_id: str, run: int) -> dict[ReplicaKey, Kept]:
        known = self._runs.get((job_id, run))
        if known is None:
            known = {}
            for key, directory in attempts_of_run(self._jobs_dir, job_id, run):
                result = directory.read_result()
                launch = directory.read_launch()
                if result is not None and launch is not None:
                    known[key] = self._kept(key, directory, launch)
                    known[key].result = result
            self._runs[job_id, run] = known
        return known

    @staticmethod
    def _kept(key: ReplicaKey, directory: AttemptDir, launch: dict[str, Any]) -> Kept:
        dirs = tuple(Path(path) for path in launch["cgroup_dirs"])
        return Kept(
            key,
            directory,
            cookie=launch["cookie"],
            address=launch["address"],
            memory_bytes=launch["memory_bytes"],
            is_sandboxed=launch["is_sandboxed"],
            group=Group(dirs) if dirs else None,
            stopping=directory.read_stop() is not None,
        )

    def forget_job(self, job_id: str) -> None:
        with self._lock:
            for name in [name for name in self._runs if name[0] == job_id]:
                del self._runs[name]

    def holes_fail(self) -> bool:
        return False

    # --- beginning ----------------------------------------------------------------------------

    def create(self, launch: Launch) -> None:
        key = launch.key
        kept = Kept(key, AttemptDir(attempt_path(self._jobs_dir, key)))
        with self._lock:
            run = self._run(key.job_id, key.run)
            if key in run:
                return
            run[key] = kept
            self._live[key] = kept
        kept.cookie = secrets.token_hex(16)
        kept.address = launch.address
        kept.memory_bytes = launch.resources.memory_bytes
        kept.is_sandboxed = self._is_sandboxed
        try:
            self._begin(kept, launch)
        except (CannotStart, OSError) as error:
            reason = str(error)
            self._watcher.after(0, lambda: self._fail_start(kept, reason))

    def _begin(self, kept: Kept, launch: Launch) -> None:
        (self._live_dir / marker_name(kept.key)).touch()
        kept.dir.path.mkdir(parents=True)
        kept.group = self._cgroups.planned(kept.cookie)
        intent = describe(launch, kept.cookie, linux.boot_id(), time.time())
        intent["is_sandboxed"] = kept.is_sandboxed
        intent["cgroup_dirs"] = [str(path) for path in kept.group.dirs] if kept.group else []
        kept.dir.write_launch(intent)
        if kept.group is not None:
            self._cgroups.make(kept.group, launch.resources)
        spawned = self._spawner.spawn(
            launch,
            kept.dir,
            kept.cookie,
            kept.group,
            data_limit_bytes=0 if self._cgroups.controls_memory else kept.memory_bytes,
            has_gpus=self._has_gpus,
        )
        kept.dir.write_process(spawned.pid, spawned.start_ticks)
        kept.notify_fd = spawned.notify_fd
        self._watcher.watch(kept.notify_fd, lambda: self._on_word(kept))
        self._follow(kept, spawned.pid)
        self._check_logs_soon()

    def _fail_start(self, kept: Kept, reason: str) -> None:
        self._settle(kept, Status(start_failure=reason))

    # --- hearing ------------------------------------------------------------------------------

    def _follow(self, kept: Kept, pid: int) -> None:
        """Be told when this process is gone."""
        kept.pid = pid
        kept.pidfd = os.pidfd_open(pid)
        self._watcher.watch(kept.pidfd, lambda: self._on_gone(kept))

    def _on_word(self, kept: Kept) -> None:
        """The shim said something; what it said is in the status file."""
        if not os.read(kept.notify_fd, 4096):
            self._let_go_of_words(kept)
        self._look(kept)

    def _look(self, kept: Kept) -> None:
        if kept.started_at is not None or kept.result is not None:
            return
        status = kept.dir.read_status()
        if status.started_at is not None and not status.start_failure:
            kept.started_at = status.started_at
            self._on_change(kept.key.job_id)
            if kept.stopping:
                self._terminate(kept)

    def _on_gone(self, kept: Kept) -> None:
        """The process we followed ended: the attempt is over, unless its sandbox lives on."""
        self._watcher.unwatch(kept.pidfd)
        os.close(kept.pidfd)
        kept.pidfd = -1
        with contextlib.suppress(ChildProcessError):
            os.waitpid(kept.pid, os.WNOHANG)
        kept.rounds = 0
        self._settle_when_empty(kept)

    def _settle_when_empty(self, kept: Kept) -> None:
        if kept.result is not None:
            return
        if linux.is_locked(kept.dir.status):
            self._find_again(kept)
            return
        found = kept.group.kill() if kept.group is not None else set()
        if not kept.is_sandboxed:
            found |= remains.kill_all(remains.carriers(kept.cookie))
        if any(remains.is_running(pid) for pid in found) and kept.rounds < _GIVE_UP_ROUNDS:
            kept.rounds += 1
            self._watcher.after(_RETRY_S, lambda: self._settle_when_empty(kept))
            return
        self._settle(kept, kept.dir.read_status())

    def _find_again(self, kept: Kept) -> None:
        """Alive, but not as the process we knew: look for it by its sandbox and its cookie."""
        pid = self._shim_pid(kept) or min(remains.carriers(kept.cookie), default=None)
        try:
            if pid is None:
                raise ProcessLookupError
            self._follow(kept, pid)
        except ProcessLookupError:
            self._watcher.after(_RETRY_S, lambda: self._settle_when_empty(kept))

    def _settle(self, kept: Kept, status: Status) -> None:
        """Judge and write down how it ended; after this nothing about it changes."""
        self._let_go_of_words(kept)
        termination = b""
        with contextlib.suppress(OSError), open(kept.dir.termination, "rb") as file:
            termination = file.read(MAX_MESSAGE_BYTES)
        facts = Facts(
            status=status,
            termination_log=termination,
            out_of_memory_kills=kept.group.out_of_memory_kills() if kept.group else 0,
            memory_bytes=kept.memory_bytes,
            seen_at=time.time(),
        )
        self._end(kept, judge(facts))

    def _end(self, kept: Kept, result: Result) -> None:
        try:
            self._shorten(kept)
            kept.dir.write_result(result)
        except OSError:
            # A full disk: known now, judged again from the status file by a successor.
            log.exception("cannot write the result of %s", kept.dir.path)
        else:
            (self._live_dir / marker_name(kept.key)).unlink(missing_ok=True)
        kept.started_at = result.started_at
        kept.result = result
        if kept.group is not None:
            kept.group.remove()
        with self._lock:
            self._live.pop(kept.key, None)
        self._on_change(kept.key.job_id)

    def _let_go_of_words(self, kept: Kept) -> None:
        if kept.notify_fd >= 0:
            self._watcher.unwatch(kept.notify_fd)
            os.close(kept.notify_fd)
            kept.notify_fd = -1

    # --- stopping -----------------------------------------------------------------------------

    def stop(self, key: ReplicaKey, grace_s: float) -> None:
        kept = self.find(key)
        if kept is None or kept.result is not None:
            return
        with self._lock:
            if kept.stopping:
                return
            kept.stopping = True
        kept.dir.write_stop(time.monotonic() + grace_s)
        self._escalate(kept, grace_s)

    def _escalate(self, kept: Kept, grace_s: float) -> None:
        kept.rounds = 0
        self._watcher.after(0, lambda: self._terminate(kept))
        self._watcher.after(max(0.0, grace_s), lambda: self._kill(kept))

    def _shim_pid(self, kept: Kept) -> int | None:
        """The shim's pid on the host, if it is surely the shim."""
        pid = kept.dir.sandbox_pid() if kept.is_sandboxed else kept.pid
        return pid if pid and remains.carries(pid, kept.cookie) else None

    def _signal_shim(self, kept: Kept, number: signal.Signals) -> bool:
        pid = self._shim_pid(kept)
        if pid is None:
            return False
        try:
            pidfd = os.pidfd_open(pid)
        except OSError:
            return False
        try:
            if not remains.carries(pid, kept.cookie):
                return False
            signal.pidfd_send_signal(pidfd, number)
        except OSError:
            return False
        finally:
            os.close(pidfd)
        return True

    def _terminate(self, kept: Kept) -> None:
        # Before the program runs nobody would hear it; `_look` comes back to this.
        if kept.result is None and kept.started_at is not None:
            self._signal_shim(kept, signal.SIGTERM)

    def _kill(self, kept: Kept) -> None:
        """Comes back until it is over."""
        if kept.result is not None:
            return
        if kept.is_sandboxed:
            if not self._signal_shim(kept, signal.SIGKILL) and kept.pid:
                remains.kill_all([kept.pid])
        elif kept.rounds == 0:
            self._signal_shim(kept, signal.SIGUSR1)  # it kills all that descends from it
        else:
            remains.kill_all(remains.relatives(kept.pid) | remains.carriers(kept.cookie))
        if kept.group is not None:
            kept.group.kill()
        kept.rounds += 1
        self._watcher.after(_KILL_AGAIN_S, lambda: self._kill(kept))

    # --- adopting -----------------------------------------------------------------------------

    def adopt(self) -> None:
        boot_id = linux.boot_id()
        for marker in sorted(self._live_dir.iterdir()):
            key = parse_marker(marker.name)
            if key is not None:
                self._adopt(key, marker, boot_id)
        self._cgroups.sweep([kept.group for kept in self._live.values() if kept.group])
        self._check_logs_soon()

    def _adopt(self, key: ReplicaKey, marker: Path, boot_id: str) -> None:
        directory = AttemptDir(attempt_path(self._jobs_dir, key))
        launch = directory.read_launch()
        has_begun = directory.status.exists() and directory.status.stat().st_size > 0
        is_alive = linux.is_locked(directory.status)
        is_over = directory.read_result() is not None
        is_of_this_boot = launch is not None and launch["boot_id"] == boot_id
        if launch is None or (is_of_this_boot and not (has_begun or is_alive or is_over)):
            shutil.rmtree(directory.path, ignore_errors=True)
            marker.unlink(missing_ok=True)
            return
        if is_over:
            marker.unlink(missing_ok=True)
            return
        kept = self._kept(key, directory, launch)
        with self._lock:
            self._run(key.job_id, key.run)[key] = kept
            self._live[key] = kept
        status = directory.read_status()
        kept.started_at = status.started_at
        if not is_of_this_boot:
            lost = Result(ReplicaState.LOST, status.started_at, time.time(), None)
            self._watcher.after(0, lambda: self._end(kept, lost))
            return
        process = directory.read_process()
        if process and linux.start_ticks(process[0]) == process[1]:
            self._follow(kept, process[0])
            self._look_until_started(kept)
        else:
            self._watcher.after(0, lambda: self._settle_when_empty(kept))
        kill_at_s = directory.read_stop()
        if kill_at_s is not None:
            self._escalate(kept, kill_at_s - time.monotonic())

    def _look_until_started(self, kept: Kept) -> None:
        """An adopted shim cannot call us, and it was just about to start its program."""
        self._look(kept)
        if kept.started_at is None and kept.result is None and kept.pidfd >= 0:
            self._watcher.after(_RETRY_S, lambda: self._look_until_started(kept))

    # --- logs ---------------------------------------------------------------------------------

    def _check_logs_soon(self) -> None:
        with self._lock:
            if self._checks_logs or not self._live:
                return
            self._checks_logs = True
        self._watcher.after(_LOG_CHECK_S, self._check_logs)

    def _check_logs(self) -> None:
        """Only while something runs; oftener while something floods."""
        with self._lock:
            live = list(self._live.values())
            self._checks_logs = bool(live)
        floods = False
        for kept in live:
            size = kept.log.size()
            floods |= size - kept.log_bytes > self._config.log_cap_bytes // 16
            kept.log_bytes = size
            try:
                self._shorten(kept)
            except OSError:
                log.exception("cannot shorten %s", kept.dir.log)
        if live:
            self._watcher.after(_LOG_CHECK_BUSY_S if floods else _LOG_CHECK_S, self._check_logs)

    def _shorten(self, kept: Kept) -> None:
        kept.log.shorten(self._config.log_cap_bytes, self._config.log_head_bytes)

    def close(self) -> None:
        self._watcher.close()
        with self._lock:
            live = list(self._live.values())
        for kept in live:
            for fd in (kept.pidfd, kept.notify_fd):
                if fd >= 0:
                    os.close(fd)
            kept.pidfd = kept.notify_fd = -1
        if not live:
            self._cgroups.close()
