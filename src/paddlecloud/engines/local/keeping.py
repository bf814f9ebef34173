"""Keeps attempts: begins them, hears how they fare, stops them, and settles how they ended.

`Processes` is the door; this is the room behind it. Everything that happens to an attempt passes
here in one order that survives a kill -9 between any two steps:

    marker in live/ → directory → launch.json → spawn → … → result.json → no marker

so a successor looks only at the markers, and finds each attempt either not begun (nothing was
spawned: it is forgotten and may be begun again), alive (its status file is locked), or over.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from paddlecloud.clock import SteadyClock
from paddlecloud.core.observed import ReplicaKey
from paddlecloud.engines.local import linux, remains
from paddlecloud.engines.local.attempts import (
    AttemptDir,
    Process,
    Result,
    Status,
    attempt_path,
    describe,
    marker_name,
    parse_marker,
)
from paddlecloud.engines.local.bounding import LogBounder
from paddlecloud.engines.local.cgroups import Cgroups
from paddlecloud.engines.local.config import LocalConfig
from paddlecloud.engines.local.kept import Kept
from paddlecloud.engines.local.outcomes import MAX_MESSAGE_BYTES, Facts, judge
from paddlecloud.engines.local.remembering import Remembered, lost
from paddlecloud.engines.local.removal import Remover
from paddlecloud.engines.local.spawning import GO, CannotStart, Spawner
from paddlecloud.engines.local.stopping import Stopper
from paddlecloud.engines.local.tailing import Tail
from paddlecloud.engines.local.watching import Watcher
from paddlecloud.engines.protocols import Launch

log = logging.getLogger(__name__)

_RETRY_S = 0.02  # looking again for what the kernel is about to finish
_RETRY_CAP_S = 1.0
_GIVE_UP_S = 5.0  # a process stuck in the kernel must not hold its job for ever


class Keeper:
    def __init__(
        self,
        config: LocalConfig,
        spawner: Spawner,
        cgroups: Cgroups,
        remover: Remover,
        clock: SteadyClock,
        *,
        is_sandboxed: bool,
        has_gpus: bool,
        on_change: Callable[[str], None],
    ) -> None:
        self._jobs_dir = config.state_dir / "jobs"
        self._live_dir = config.state_dir / "live"
        self._live_dir.mkdir(parents=True, exist_ok=True)
        self._spawner = spawner
        self._cgroups = cgroups
        self._remover = remover
        self._clock = clock
        self._is_sandboxed = is_sandboxed
        self._has_gpus = has_gpus
        self._on_change = on_change
        self.known = Remembered(self._jobs_dir, clock)
        self._watcher = Watcher("replicas")
        self._stopper = Stopper(self._watcher)
        self.bounder = LogBounder(config, self._watcher, self.known.live)
        self.tail = Tail(self._watcher)

    # --- beginning ----------------------------------------------------------------------------

    def create(self, launch: Launch) -> None:
        key = launch.key
        kept = Kept(key, AttemptDir(attempt_path(self._jobs_dir, key)))
        with kept.beginning:
            if not self.known.begin(kept):
                return
            kept.cookie = secrets.token_hex(16)
            kept.address = launch.address
            kept.memory_bytes = launch.resources.memory_bytes
            kept.is_sandboxed = self._is_sandboxed
            try:
                self._begin(kept, launch)
            except CannotStart as error:
                self._fail_start(kept, str(error))
            except OSError as error:
                self._fail_start(kept, f"{error.strerror}: {error.filename or 'spawn'}")
        self.bounder.wake()

    def _marker(self, key: ReplicaKey) -> Path:
        return self._live_dir / marker_name(key)

    def _begin(self, kept: Kept, launch: Launch) -> None:
        os.close(os.open(self._marker(kept.key), os.O_CREAT | os.O_CLOEXEC, 0o600))
        os.makedirs(kept.dir.path)
        kept.group = self._cgroups.planned(kept.cookie)
        intent = describe(launch, kept.cookie, linux.boot_id(), self._clock.now())
        intent["is_sandboxed"] = kept.is_sandboxed
        intent["cgroup_dirs"] = [str(path) for path in kept.group.dirs] if kept.group else []
        kept.dir.write_launch(intent)
        if kept.group is not None:
            self._cgroups.make(kept.group, launch.resources)
        spawned = self._spawner.spawn(
            launch,
            kept.dir,
            kept.cookie,
            data_limit_bytes=0 if self._cgroups.controls_memory else kept.memory_bytes,
            entrances=self._cgroups.entrances(kept.group),
            has_gpus=self._has_gpus,
        )
        kept.shim_fd, kept.info_fd = spawned.shim_fd, spawned.info_fd
        self._follow(kept, Process.of(spawned.pid))
        if kept.info_fd >= 0:
            self._watcher.watch(kept.info_fd, lambda: self._on_sandbox(kept))
        else:
            self._let_go(kept, kept.process)

    def _on_sandbox(self, kept: Kept) -> None:
        """Bubblewrap tells, in several pieces, which process it made; or it ends."""
        try:
            piece = os.read(kept.info_fd, 4096)
        except BlockingIOError:
            return
        kept.info += piece
        try:
            shim = Process.of(json.loads(kept.info)["child-pid"])
        except ValueError:
            if piece:
                return  # the rest is still to come
            shim = None
        self._drop_info(kept)
        self._let_go(kept, shim)

    def _let_go(self, kept: Kept, shim: Process | None) -> None:
        """Write down who it is, put it where it is held to its limits, then let it start."""
        if kept.process is None or shim is None:
            self._drop_shim(kept)  # gone already; if not, it goes when it hears nothing
            return
        try:
            kept.dir.write_process(kept.process, shim)
            kept.shim = shim
            if kept.group is not None:
                self._cgroups.put_in(kept.group, shim.pid)
            self._watcher.watch(kept.shim_fd, lambda: self._on_word(kept))
            os.write(kept.shim_fd, GO)
        except OSError:
            # It never gets the word, so it ends by itself.
            log.exception("cannot let %s start", kept.dir.path)
            self._drop_shim(kept)

    def _fail_start(self, kept: Kept, reason: str) -> None:
        self._watcher.after(0, lambda: self._settle(kept, Status(start_failure=reason)))

    # --- hearing ------------------------------------------------------------------------------

    def _follow(self, kept: Kept, process: Process | None) -> None:
        """Be told when this process is gone; raises ProcessLookupError if it is already."""
        if process is None:
            raise ProcessLookupError
        pidfd = os.pidfd_open(process.pid)
        if not process.is_there():
            os.close(pidfd)
            raise ProcessLookupError
        kept.process, kept.pidfd = process, pidfd
        self._watcher.watch(pidfd, lambda: self._on_gone(kept))

    def _on_word(self, kept: Kept) -> None:
        """The shim said something; what it said is in the status file."""
        try:
            said = os.read(kept.shim_fd, 4096)
        except BlockingIOError:
            return
        except ConnectionResetError:
            said = b""
        if not said:
            self._drop_shim(kept)
        self._look(kept)

    def _look(self, kept: Kept) -> None:
        if kept.result is not None:
            return
        status = kept.dir.read_status()
        if kept.started_at is None and status.started_at is not None:
            kept.started_at = status.started_at
            self._on_change(kept.key.job_id)
            if kept.stopping:
                self._stopper.terminate(kept)
        has_leftovers = status.wait_status is not None and not kept.is_sandboxed
        if has_leftovers and kept.group is not None and not kept.stopping:
            # The shim kills them too, but the group is quicker than a program that keeps forking.
            kept.group.kill()

    def _on_gone(self, kept: Kept) -> None:
        """The process we followed ended: the attempt is over, unless its sandbox lives on."""
        self._watcher.unwatch(kept.pidfd)
        os.close(kept.pidfd)
        kept.pidfd = -1
        assert kept.process is not None
        with contextlib.suppress(ChildProcessError):
            os.waitpid(kept.process.pid, os.WNOHANG)
        kept.rounds = 0
        self._settle_when_empty(kept)

    def _again(self, kept: Kept) -> None:
        delay_s = min(_RETRY_CAP_S, _RETRY_S * 1.2**kept.rounds)
        kept.rounds += 1
        self._watcher.after(delay_s, lambda: self._settle_when_empty(kept))

    def _settle_when_empty(self, kept: Kept) -> None:
        """It is over when nobody holds its lock and nothing of it runs."""
        if kept.result is not None or kept.pidfd >= 0:
            return
        try:
            if linux.is_locked(kept.dir.status):
                self._find_again(kept)
            elif kept.is_adopted and not kept.dir.has_begun():
                self._forget(kept)
            elif not self._has_remains(kept) or kept.rounds * _RETRY_S > _GIVE_UP_S:
                self._settle(kept, kept.dir.read_status())
            else:
                self._again(kept)
        except OSError:
            log.exception("cannot see how %s ended; looking again", kept.dir.path)
            self._again(kept)

    def _has_remains(self, kept: Kept) -> bool:
        """Kill what is left of it; whether there was something."""
        found = kept.group.kill() if kept.group is not None else set()
        if not kept.is_sandboxed:
            found |= remains.kill_all(remains.carriers(kept.cookie))
        return any(remains.is_running(pid) for pid in found)

    def _find_again(self, kept: Kept) -> None:
        """Its lock is held although the process we followed is gone: its sandbox lives on, or
        never got so far as to be told GO and never will."""
        if kept.shim is None:
            remains.end_family(kept.cookie)
        try:
            self._follow(kept, kept.shim)
        except ProcessLookupError:
            self._again(kept)

    def _forget(self, kept: Kept) -> None:
        """Our predecessor died before it said GO, so this never was and may be begun again."""
        if kept.group is not None:
            kept.group.remove()
        self._remover.remove(kept.dir.path)
        self._marker(kept.key).unlink(missing_ok=True)
        self.known.forget(kept)
        self._on_change(kept.key.job_id)

    def _settle(self, kept: Kept, status: Status) -> None:
        """Judge and write down how it ended; after this nothing about it changes."""
        termination = b""
        with contextlib.suppress(OSError), open(kept.dir.termination, "rb") as file:
            termination = file.read(MAX_MESSAGE_BYTES)
        facts = Facts(
            status=status,
            termination_log=termination,
            out_of_memory_kills=kept.group.out_of_memory_kills() if kept.group else 0,
            memory_bytes=kept.memory_bytes,
            seen_at=self._clock.now(),
        )
        self._end(kept, judge(facts))

    def _end(self, kept: Kept, result: Result) -> None:
        self._drop_info(kept)
        self._drop_shim(kept)
        self.bounder.shorten(kept)
        try:
            kept.dir.write_result(result)
        except OSError:
            # A full disk: known now, judged again from the status file by a successor.
            log.exception("cannot write the result of %s", kept.dir.path)
        else:
            self._marker(kept.key).unlink(missing_ok=True)
        if kept.group is not None:
            kept.group.remove()
        self.known.end(kept, result)
        self.tail.wake_all()
        self._on_change(kept.key.job_id)

    def _drop_shim(self, kept: Kept) -> None:
        if kept.shim_fd >= 0:
            self._watcher.unwatch(kept.shim_fd)
            os.close(kept.shim_fd)
            kept.shim_fd = -1

    def _drop_info(self, kept: Kept) -> None:
        if kept.info_fd >= 0:
            self._watcher.unwatch(kept.info_fd)
            os.close(kept.info_fd)
            kept.info_fd = -1

    # --- stopping -----------------------------------------------------------------------------

    def stop(self, key: ReplicaKey, grace_s: float) -> None:
        kept = self.known.find(key)
        if kept is None:
            return
        with kept.beginning:
            if kept.result is not None or kept.stopping:
                return
            kept.stopping = True
            with contextlib.suppress(FileNotFoundError):  # it could not even be begun
                kept.dir.write_stop(time.monotonic() + grace_s)
        self._stopper.begin(kept, grace_s)

    # --- adopting -----------------------------------------------------------------------------

    def adopt(self) -> None:
        boot_id = linux.boot_id()
        for marker in sorted(self._live_dir.iterdir()):
            key = parse_marker(marker.name)
            if key is not None and not self._adopt(key, boot_id):
                marker.unlink(missing_ok=True)
        live = self.known.live()
        self._cgroups.sweep([kept.group for kept in live if kept.group])
        if live:
            self.bounder.wake()

    def _adopt(self, key: ReplicaKey, boot_id: str) -> bool:
        """Take over what is not over; False if there is nothing to take over."""
        directory = AttemptDir(attempt_path(self._jobs_dir, key))
        launch = directory.read_launch()
        if directory.read_result() is not None:
            return False
        is_of_this_boot = launch is not None and launch["boot_id"] == boot_id
        if launch is not None and is_of_this_boot and directory.read_status().process is None:
            # It never got the word to start, and never will.
            remains.end_family(launch["cookie"])
        if launch is None or (is_of_this_boot and not directory.has_begun()):
            self._remover.remove(directory.path)  # nothing was ever started
            return False
        kept = Kept.from_disk(key, directory, launch)
        kept.is_adopted = True
        kept.started_at = directory.read_status().started_at
        self.known.adopt(kept)
        if is_of_this_boot:
            self._take_over(kept)
        else:
            result = lost(directory.read_status(), self._clock.now())
            self._watcher.after(0, lambda: self._end(kept, result))
        return True

    def _take_over(self, kept: Kept) -> None:
        status = kept.dir.read_status()
        kept.shim = status.shim
        try:
            self._follow(kept, status.process)
        except ProcessLookupError:
            self._watcher.after(0, lambda: self._settle_when_empty(kept))
        self._look_until_started(kept)
        kill_at_s = kept.dir.read_stop()
        if kill_at_s is not None:
            self._stopper.begin(kept, kill_at_s - time.monotonic())

    def _look_until_started(self, kept: Kept) -> None:
        """An adopted shim cannot call us, and it was just about to start its program."""
        self._look(kept)
        if kept.started_at is None and kept.result is None and self.known.is_live(kept.key):
            self._watcher.after(_RETRY_S, lambda: self._look_until_started(kept))

    def discard_job(self, job_id: str) -> None:
        self.known.forget_job(job_id)
        self._remover.remove(self._jobs_dir / job_id)

    def close(self) -> None:
        self._watcher.close()
        self.tail.close()
        live = self.known.live()
        for kept in live:
            for fd in (kept.pidfd, kept.shim_fd, kept.info_fd):
                if fd >= 0:
                    os.close(fd)
            kept.pidfd = kept.shim_fd = kept.info_fd = -1
